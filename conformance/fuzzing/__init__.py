"""Generated cases: draw a case, ask several oracles, compare their answers, and shrink and save each discrepancy.

``comparison`` has the protocol of an oracle and the reference model behind it, judges answers and explains differences by rules.
``coverage`` draws cases and keeps those that cover something new in the model. ``campaign`` is the loop, with real Sparks as oracles;
``shrinking`` makes a case smaller, and ``case_files`` writes it.
"""

from harness.errors import HarnessError

try:
    import hypothesis as _  # noqa: F401
except ModuleNotFoundError as missing:
    if missing.name != "hypothesis":
        raise
    raise HarnessError(
        "generating cases requires hypothesis, which is not installed: pip install 'watermark-conformance[fuzz]'"
    ) from None
