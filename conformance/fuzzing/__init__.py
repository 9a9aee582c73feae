"""Cases nobody thought of: drawn, put to several voices, compared, shrunk and kept where the voices disagree.

``voice`` is whoever answers: the reference model (``model_voice``) or an engine (``engine_voice``). ``drawing`` says where cases come from,
``judging`` what answers mean, ``causes`` by which rule they part; ``hunt`` goes round with all of them, ``shrinking`` makes a find small,
``find`` and ``writing`` keep it.
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
