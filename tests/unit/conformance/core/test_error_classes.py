"""Which class of an error says what it is; the classes are those of published results."""

import pytest

from conformance.core.observation import GENERIC, WRAPPERS, most_specific


@pytest.mark.parametrize(
    ("classes", "name"),
    [
        (("AnalysisException", "CapturedException"), "AnalysisException"),
        (
            ("STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION", "AnalysisException", "CapturedException"),
            "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION",
        ),
        # A number instead of a name says no more than the type.
        (("_LEGACY_ERROR_TEMP_3102", "AnalysisException", "ExtendedAnalysisException"), "AnalysisException"),
        (
            ("STREAM_FAILED", "StreamingQueryException", "_LEGACY_ERROR_TEMP_1181", "AnalysisException"),
            "AnalysisException",
        ),
        (("STREAM_FAILED", "StreamingQueryException", "IllegalStateException"), "IllegalStateException"),
        (
            ("Py4JJavaError", "Py4JError", "SparkException", "IllegalStateException", "JsonEOFException"),
            "JsonEOFException",
        ),
        (
            ("PYTHON_EXCEPTION", "PythonException", "PySparkValueError", "INVALID_TIMEOUT_TIMESTAMP"),
            "INVALID_TIMEOUT_TIMESTAMP",
        ),
        (("STREAM_FAILED", "INTERNAL_ERROR", "SparkException", "MatchError"), "MatchError"),
        (("PythonException", "CapturedException", "SparkException"), "PythonException"),
        (("ServerFailure", "SparkException", "StateSchemaNotCompatible"), "StateSchemaNotCompatible"),
        (("_LEGACY_ERROR_TEMP_3102",), "_LEGACY_ERROR_TEMP_3102"),
        ((), ""),
    ],
)
def test_the_most_specific_class(classes: tuple[str, ...], name: str) -> None:
    assert most_specific(classes) == name


def test_a_wrapper_tells_no_error_from_another() -> None:
    assert WRAPPERS <= GENERIC
