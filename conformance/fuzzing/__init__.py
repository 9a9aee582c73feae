"""Generated cases: draw a case, ask several oracles, compare their answers, and shrink and keep each discrepancy.

``oracle`` is the Protocol; ``model_oracle`` asks the reference model, ``engine_oracle`` a real Spark. ``generation`` draws cases,
``comparison`` judges answers, ``causes`` names the rule that explains a difference; ``campaign`` is the loop, ``shrinking`` makes a
discrepancy small, ``case_files`` writes it.
"""

from typing import ClassVar

try:
    import hypothesis as _  # noqa: F401
except ModuleNotFoundError as missing:
    if missing.name != "hypothesis":
        raise

    class NoHypothesis(ImportError):
        """What draws cases is not installed."""

        exit_code: ClassVar[int] = 3

    raise NoHypothesis(
        "cases are drawn by hypothesis, which is not installed here: pip install 'watermark-conformance[fuzz]'"
    ) from None
