"""The standard: the case language, what is expected of each Spark version, and the verdict.

The names in ``__all__`` are the public interface; everything else may change in any release. They are imported when they are first
used, so ``import conformance`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.core.case import Case
    from conformance.own_job.case_run import CaseResult, NotAsExpected, run_case
    from conformance.own_job.watermark_case import WatermarkCase, watermark_case
    from conformance.query_progress.answer import explain_progress

__all__ = ["Case", "CaseResult", "NotAsExpected", "WatermarkCase", "explain_progress", "run_case", "watermark_case"]

_MODULES = {
    "Case": "conformance.core.case",
    "CaseResult": "conformance.own_job.case_run",
    "NotAsExpected": "conformance.own_job.case_run",
    "WatermarkCase": "conformance.own_job.watermark_case",
    "explain_progress": "conformance.query_progress.answer",
    "run_case": "conformance.own_job.case_run",
    "watermark_case": "conformance.own_job.watermark_case",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
