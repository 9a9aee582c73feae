"""The codes of failures, the reason that a Connect server gives, and the Java throwable behind an exception of any pyspark."""

import sys
from functools import partial
from types import SimpleNamespace

import pytest

from harness.driver import errors
from harness.driver.errors import EngineLost, FailureReason, grpc_details, machine_failure, reason_of, unwritable


class Py4JJavaError(Exception):
    def __init__(self, java_exception):
        super().__init__("An error occurred while calling o1.start.")
        self.java_exception = java_exception


def throwable(name, message, cause=None):
    """An exception of Java, of a class whose parent is ``Exception``."""
    above = SimpleNamespace(getSimpleName=lambda: "Exception", getSuperclass=lambda: None)
    of = SimpleNamespace(getSimpleName=lambda: name, getSuperclass=lambda: above)
    return SimpleNamespace(getClass=lambda: of, getMessage=lambda: message, getCause=lambda: cause)


FAILED = throwable("StreamingQueryException", "the query failed", throwable("NoSuchElementException", "None.get"))


class CapturedException(Exception):
    """pyspark 2.4's, ``pyspark/sql/utils.py``: raised while py4j's exception is handled."""

    def __init__(self, desc, stack_trace):
        self.desc, self.stackTrace = desc, stack_trace

    def __str__(self):
        return repr(self.desc)


def raised_by_2_4():
    try:
        raise Py4JJavaError(FAILED)
    except Py4JJavaError:
        raise CapturedException("the query failed", "\n\t at …")  # noqa: B904 — as pyspark does


def raised_by_3_4():
    error = CapturedException("the query failed", "")
    error._origin = FAILED
    raise error from None


def raised_by_py4j():
    raise Py4JJavaError(FAILED)


@pytest.mark.parametrize("raised", [raised_by_2_4, raised_by_3_4, raised_by_py4j])
def test_the_causes_of_an_error_are_those_of_the_throwable(raised):
    with pytest.raises(Exception) as caught:  # noqa: PT011 — each release has its own
        raised()
    seen = errors.describe(caught.value, "run")
    assert seen["message"] == "the query failed\nCaused by: None.get"
    assert {"StreamingQueryException", "NoSuchElementException"} <= set(seen["classes"])


def test_what_python_raises_while_it_handles_an_error_of_java_is_pythons():
    def fails():
        try:
            raise Py4JJavaError(FAILED)
        except Py4JJavaError:
            raise KeyError("no such stream")  # noqa: B904

    with pytest.raises(KeyError) as caught:
        fails()
    assert errors.describe(caught.value, "run")["classes"] == ["KeyError", "LookupError"]


def test_a_pyspark_that_converts_nothing_by_a_function_of_its_own_is_left_alone(monkeypatch):
    utils = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "pyspark.sql", SimpleNamespace(utils=utils))
    errors.keep_origins()
    assert vars(utils) == {}
    refused = throwable("AnalysisException", "refused")
    utils.convert_exception = lambda thrown: CapturedException(thrown.getMessage(), "")
    errors.keep_origins()
    assert utils.convert_exception(refused).java_throwable is refused


@pytest.mark.parametrize(
    ("error", "starting", "reason"),
    [
        (unwritable("hdfs://host/tests", "refused"), True, "storage-unwritable"),
        (EngineLost("gone"), False, "engine-lost"),
        (ModuleNotFoundError("pandas"), True, "python-unsupported"),
        (ModuleNotFoundError("pandas"), False, "driver-error"),
        (KeyError("x"), True, "driver-error"),
    ],
)
def test_the_code_of_an_error(error, starting, reason):
    assert reason_of(error, starting=starting) == reason


class RpcError(Exception):
    """As much of gRPC's as is needed."""

    def details(self):
        return "Invalid authentication token"


def converted(error):
    """As pyspark raises its own class ``from None``."""
    try:
        raise error
    except RpcError:
        raise RuntimeError("status = UNAUTHENTICATED, details = ...") from None


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Python worker exited unexpectedly (crashed)", FailureReason.MACHINE_OVERLOADED),
        ("Python worker failed to connect back.", FailureReason.MACHINE_OVERLOADED),
        ("Caused by: ExitCodeException exitCode=137: ", FailureReason.MACHINE_OVERLOADED),
        ("Caused by: ExitCodeException exitCode=1: chmod: cannot access", None),
        ("ExecutorLostFailure (executor 1 exited)", FailureReason.EXECUTORS_LOST),
        ("java.io.IOException: No space left on device", FailureReason.DISK_FULL),
        ("Mkdirs failed to create file:/x", FailureReason.FILES_UNWRITABLE),
        ("None.get", None),
    ],
)
def test_what_the_machine_did_is_no_error_of_a_query(message, reason):
    error = Py4JJavaError(throwable("SparkException", "Job aborted", throwable("SparkException", message)))
    failed = machine_failure(error, "cases/a")
    assert (failed and failed.reason) == reason
    assert failed is None or "cases/a" in str(failed)
    spark_says_no_more = "connect back" in message
    assert ("pandas" in str(failed)) is spark_says_no_more


@pytest.mark.parametrize("kind", ["OutOfMemoryError", "SparkOutOfMemoryError"])
def test_a_jvm_without_memory_is_lost_and_its_query_not_judged(kind):
    lacking = throwable(kind, "Java heap space")
    if kind != "OutOfMemoryError":
        lacking.getClass().getSuperclass = lambda: throwable("OutOfMemoryError", "").getClass()
    failed = machine_failure(Py4JJavaError(throwable("StreamingQueryException", "Job aborted", lacking)), "cases/a")
    assert isinstance(failed, EngineLost)
    assert str(failed) == "java.lang.OutOfMemoryError: Java heap space"


@pytest.mark.parametrize(
    ("kind", "at", "reason"),
    [
        ("IOException", "org.apache.spark.api.python.BasePythonRunner$ReaderInputStream", "machine-overloaded"),
        ("IOException", "org.apache.spark.sql.execution.streaming.state.StateStore", None),
        ("PythonException", "org.apache.spark.api.python.BasePythonRunner$ReaderIterator", None),
    ],
)
def test_a_worker_that_is_gone_is_the_machines_where_spark_only_says_that_it_could_not_write(kind, at, reason):
    cause = throwable(kind, "Broken pipe")
    frames = [SimpleNamespace(getClassName=partial(str, name)) for name in ("sun.nio.ch.IOUtil", at)]
    cause.getStackTrace = lambda: frames
    failed = machine_failure(Py4JJavaError(throwable("SparkException", "Job aborted", cause)), "cases/a")
    assert (failed and failed.reason.value) == reason


def test_the_reason_of_a_server_is_grpcs_own():
    with pytest.raises(RuntimeError) as raised:
        converted(RpcError())
    assert grpc_details(raised.value) == "Invalid authentication token"


def test_without_grpc_it_is_the_errors_text():
    assert grpc_details(ImportError("grpcio >= 1.48 must be installed")) == "grpcio >= 1.48 must be installed"
