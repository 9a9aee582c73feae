"""Which of the classes of an error says what it is: errors come wrapped in others, and many types stand for many errors."""

from __future__ import annotations

from collections.abc import Sequence

WRAPPERS = frozenset(
    {
        # of the driver: what a Connect server sends of an exception
        "ServerFailure",
        # of pyspark and py4j
        "CapturedException",
        "PySparkException",
        "PythonException",
        "PYTHON_EXCEPTION",
        "Py4JError",
        "Py4JException",
        "Py4JJavaError",
        "Py4JNetworkError",
        # of Spark
        "FOREACH_BATCH_USER_FUNCTION_ERROR",
        "ForeachBatchUserFuncException",
        "INTERNAL_ERROR",
        "STREAM_FAILED",
        "SparkException",
        "SparkRuntimeException",
        "StreamingQueryException",
    }
)
"""Classes of an error that only passes on another one."""

_BROAD = frozenset(
    {
        "ExtendedAnalysisException",
        "IllegalStateException",
        "SparkUnsupportedOperationException",
        "UnsupportedOperationException",
    }
)
"""Types that say less than another type of the same error."""

GENERIC = (
    WRAPPERS
    | _BROAD
    | {
        "AnalysisException",
        "ArithmeticException",
        "AssertionError",
        "AttributeError",
        "ClassCastException",
        "IOException",
        "IllegalArgumentException",
        "KeyError",
        "MatchError",
        "NoSuchElementException",
        "NotImplementedError",
        "ParseException",
        "PySparkAttributeError",
        "PySparkRuntimeError",
        "PySparkTypeError",
        "PySparkValueError",
        "RuntimeError",
        "SparkIllegalArgumentException",
        "TypeError",
        "ValueError",
    }
)
"""Classes of so many errors that they alone do not tell which one a case expects. A ``NullPointerException`` has no message."""

_PLACEHOLDER = "_LEGACY_ERROR_TEMP_"
"""Spark numbers errors that have no name yet; the numbers are not part of its interface (``common/utils/.../error/README.md``)."""


def most_specific(classes: Sequence[str]) -> str:
    """The class to search for: Spark's error condition if there is one, else the type that says most; empty without classes.

    Args:
        classes: of an error and its causes, outermost first.
    """
    known = [name for name in classes if not name.startswith(_PLACEHOLDER)]
    conditions = [name for name in known if name.isupper() and name not in WRAPPERS]
    types = [name for name in known if name not in WRAPPERS]
    specific = [name for name in types if name not in _BROAD]
    return next(iter([*conditions, *specific, *types, *known, *classes]), "")
