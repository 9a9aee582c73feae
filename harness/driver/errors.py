"""Failures that say nothing about Spark's semantics, and what an exception and its causes say: Spark's conditions, class names and text.

Whose exception it is, too: Spark's, that of a user's function, or the driver's own, which says nothing about Spark.
"""

from __future__ import annotations

import errno
import functools
import inspect
import os
import re
import sysconfig
import traceback
from contextlib import contextmanager
from enum import Enum
from typing import Any, Callable, Iterable, Iterator

_TOO_GENERAL = {"Object", "Throwable", "Exception", "RuntimeException", "Error", "BaseException", "object"}
_DOTTED = re.compile(r"([\w.]+)(:?)")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z][A-Z0-9_]*)*)\]")
_MOST_CAUSES = 20
_THROWABLES = ("java_exception", "java_throwable", "_origin")
"""Where py4j, ``keep_origins`` and pyspark keep the Java throwable of an exception."""
_LONGEST_MESSAGE = 100_000
WORKER_GONE = "Python worker exited unexpectedly"
"""Spark's message when a Python worker has ended, for whatever reason. Source: ``PythonRunner``."""
_TO_WORKERS = "org.apache.spark.api.python."
"""The package of what starts Python workers and talks to them."""
_NO_DIRECTORY = "Mkdirs failed to create"
"""Hadoop's message when it cannot make a directory, whatever the reason."""


class FailureReason(str, Enum):
    """Why there is no answer; ``harness/driver/errors.py`` raises them."""

    DRIVER_ERROR = "driver-error"
    """An exception of the driver's own."""
    PYSPARK_MISSING = "pyspark-missing"
    PYTHON_UNSUPPORTED = "python-unsupported"
    """The driver or pyspark cannot be imported."""
    PACKAGES_MISSING = "packages-missing"
    STORAGE_UNWRITABLE = "storage-unwritable"
    CONNECT_REFUSED = "connect-refused"
    """The Spark Connect server opened no session; the message is its reason."""
    ENGINE_LOST = "engine-lost"
    """The JVM or the server no longer answers; the driver ends."""
    DISK_FULL = "disk-full"
    FILES_UNWRITABLE = "files-unwritable"
    MACHINE_OVERLOADED = "machine-overloaded"
    EXECUTORS_LOST = "executors-lost"
    """Spark gave up on a job because the cluster lost executors repeatedly."""
    NO_EXECUTORS = "no-executors"
    """The cluster gives no executor; the message is why, as far as its master says it."""
    NO_BROKER = "no-broker"
    KAFKA_FAILED = "kafka-failed"
    """The broker did not do what the case needs."""
    NOT_PERMITTED = "not-permitted"
    """The plan of the case does what only ``--allow-code`` permits, or its code what nothing permits."""


class DriverFailure(Exception):
    """The driver, the engine or the machine failed; this says nothing about Spark's semantics."""

    def __init__(self, message: str, reason: FailureReason = FailureReason.DRIVER_ERROR) -> None:
        super().__init__(message)
        self.reason = reason


class EngineLost(DriverFailure):
    """The JVM or the server no longer answers."""

    def __init__(self, message: str) -> None:
        super().__init__(message, FailureReason.ENGINE_LOST)


class NotPermitted(DriverFailure):
    """The case does what only ``--allow-code`` permits."""

    def __init__(self, what: str) -> None:
        super().__init__("{}; only --allow-code permits that".format(what), FailureReason.NOT_PERMITTED)


def reason_of(error: BaseException, *, starting: bool = False) -> FailureReason:
    """The reason that the host is given for an error. ``starting``: it was raised before the engine was up."""
    if isinstance(error, DriverFailure):
        return error.reason
    # pyspark, or the driver itself, does not import in this Python.
    if starting and isinstance(error, (ImportError, SyntaxError)):
        return FailureReason.PYTHON_UNSUPPORTED
    return FailureReason.DRIVER_ERROR


def unwritable(url: str, why: str) -> DriverFailure:
    """The failure of the directory that ``--storage`` names. ``why``: the file system's message."""
    return DriverFailure("cannot write to {}: {}".format(url, why), FailureReason.STORAGE_UNWRITABLE)


def grpc_details(error: BaseException) -> str:
    """The server's or gRPC's own message, if there is one; pyspark puts it into a text with status and addresses."""
    inner: BaseException | None = error
    while inner is not None:
        details = getattr(inner, "details", None)  # of a grpc.RpcError; pyspark raises its own class `from None`
        if callable(details):
            return str(details())
        inner = inner.__cause__ or inner.__context__
    return str(error)


def root_cause(error: BaseException) -> Any:
    """The innermost Java throwable behind an exception of py4j's or pyspark's; None if there is none."""
    throwable = _throwable(error)
    while throwable is not None and throwable.getCause() is not None:
        throwable = throwable.getCause()
    return throwable


def keep_origins() -> None:
    """Make every exception that pyspark converts keep its Java throwable, which older releases lose."""
    try:
        from pyspark.errors.exceptions import captured as module  # 3.4 and newer
    except ImportError:
        from pyspark.sql import utils as module
    convert = getattr(module, "convert_exception", None)
    if convert is None:  # before 3.0: `_throwable` finds it
        return

    def convert_and_remember(throwable: Any) -> Any:
        converted = convert(throwable)
        converted.java_throwable = throwable
        return converted

    module.convert_exception = convert_and_remember


def describe(error: BaseException, stage: str) -> dict[str, Any]:
    """The fields of ``ErrorSeen`` for an exception raised at the given stage."""
    classes: list[str] = []
    texts: list[str] = []
    _walk(error, classes, texts)
    message = "\nCaused by: ".join(_without_repeats(texts))
    if len(message) > _LONGEST_MESSAGE:
        message = message[:_LONGEST_MESSAGE] + " … ({} characters more)".format(len(message) - _LONGEST_MESSAGE)
    # What a foreachBatch function raised comes back as text only, so take the qualified class names in it.
    classes += [*_qualified_classes(message), *_CONDITION.findall(message)]
    return {
        "stage": stage,
        "classes": [name for name in _without_repeats(classes) if name not in _TOO_GENERAL],
        "message": message,
    }


def _qualified_classes(message: str) -> Iterator[str]:
    # One pattern for a whole name would take quadratic time on hostile text.
    for dotted, colon in _DOTTED.findall(message):
        parts = dotted.split(".")
        for package, name in zip(parts, parts[1:]):
            of_a_package = package[:1].islower() or package[:1] == "_"
            # Java shows an exception as `package.Class: message`; not every class of Spark is called an exception.
            is_error = name.endswith(("Exception", "Error")) or (colon and name is parts[-1])
            if of_a_package and name[:1].isupper() and is_error:
                yield name


_HELPER_ENDED = re.compile(r"ExitCodeException exitCode=1[2-9]\d")
"""By a signal. Source: ``Shell.ExitCodeException`` of Hadoop, which sets the mode of a file by ``chmod``."""


def machine_failure(error: BaseException, directory: str) -> DriverFailure | None:
    """The failure of the machine that an error reports; None if the error says something about Spark's semantics.

    Only texts of the operating system, Hadoop and Spark tell: in many places the exception is a plain ``IOException`` or
    ``SparkException``. ``directory``: where the case runs.
    """
    described = describe(error, "run")
    message = described["message"]

    def says(*codes: int) -> bool:
        return any(os.strerror(code) in message for code in codes)

    if "OutOfMemoryError" in described["classes"]:
        return EngineLost("java.lang.OutOfMemoryError: {}".format(message.split("\nCaused by: ")[-1]))
    if says(errno.ENOSPC, errno.EDQUOT):
        return DriverFailure("no space is left on the device of {}".format(directory), FailureReason.DISK_FULL)
    if _NO_DIRECTORY in message or says(errno.EACCES, errno.EROFS):
        return DriverFailure("cannot write to {}".format(directory), FailureReason.FILES_UNWRITABLE)
    if "ExecutorLostFailure" in message:
        lost = "the cluster lost executors repeatedly while a case ran in {}".format(directory)
        return DriverFailure(lost, FailureReason.EXECUTORS_LOST)
    if "Python worker failed to connect back" in message:
        why = "no Python worker started for the case in {}: no time, no memory, or a Python without pandas and pyarrow"
        return DriverFailure(why.format(directory), FailureReason.MACHINE_OVERLOADED)
    if _HELPER_ENDED.search(message):
        ended = "the system ended a process that Hadoop starts for the files of the case in {}".format(directory)
        return DriverFailure(ended, FailureReason.MACHINE_OVERLOADED)
    if WORKER_GONE in message or _reached_no_worker(error):  # an author's code that ends its worker is known before
        ended = "the system ended a Python worker of the case in {}, such as for lack of memory".format(directory)
        return DriverFailure(ended, FailureReason.MACHINE_OVERLOADED)
    return None


def _reached_no_worker(error: BaseException) -> bool:
    """Whether Spark could not read from a Python worker or write to it, which it reports as a plain ``IOException``."""
    cause = root_cause(error)
    kind = cause.getClass() if cause is not None else None
    while kind is not None and kind.getSimpleName() != "IOException":
        kind = kind.getSuperclass()
    return kind is not None and any(at.getClassName().startswith(_TO_WORKERS) for at in cause.getStackTrace())


def _walk(error: BaseException | None, classes: list[str], texts: list[str]) -> None:
    """Collect the conditions, the class names and the messages of an exception and of its causes, in Python and then in Java."""
    for _ in range(_MOST_CAUSES + 1):
        if error is None:
            return
        classes.extend(_conditions(error))
        classes.extend(parent.__name__ for parent in type(error).__mro__)
        throwable = _throwable(error)
        if throwable is None:
            texts.append(str(error))
        for _ in range(_MOST_CAUSES):
            if throwable is None:
                break
            classes.extend(_conditions(throwable))
            java_class = throwable.getClass()
            while java_class is not None:
                classes.append(java_class.getSimpleName())
                java_class = java_class.getSuperclass()
            texts.append(throwable.getMessage() or "")
            throwable = throwable.getCause()
        error = error.__cause__


def _throwable(error: BaseException) -> Any:
    """The Java throwable behind an exception, None if it is Python's own."""
    kept = next(filter(None, (getattr(error, name, None) for name in _THROWABLES)), None)
    # Before 3.0 pyspark raises what it converts while it handles py4j's exception.
    if kept is None and hasattr(error, "stackTrace"):
        return getattr(error.__context__, "java_exception", None)
    return kept


def _conditions(error: Any) -> list[str]:
    """The Spark error class, under whichever name this release has it."""
    for method in ("getCondition", "getErrorClass"):
        try:
            condition = getattr(error, method)()
        except Exception:  # no such method on this release or on this type
            continue
        if condition:
            return [str(condition)]
    return []


def _without_repeats(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(item for item in items if item))


_STANDARD_LIBRARY = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib")})
_OTHER_PACKAGES = ("site-packages", "dist-packages")
"""The folders of installed packages, which lie below the standard library."""


class DriverError(Exception):
    """A state function of the driver failed by its own fault. Its name reaches the driver in the text of Spark's error."""


class MissingName(Exception):
    """A name of the case stands for nothing here: a method or an argument that this release lacks.

    ``error``: what Python says about it; without frames, because the driver only asked for the name.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error.with_traceback(None)


def method(owner: Any, name: str) -> Any:
    """A method that not every release has. Raises ``MissingName`` if this release lacks it."""
    try:
        return getattr(owner, name)
    except AttributeError as error:
        raise MissingName(error) from None


def check_argument(called: Callable[..., Any], name: str) -> None:
    """Raise ``MissingName`` if in this release the method has no such argument."""
    try:
        inspect.signature(called).bind(**{name: True})
    except TypeError as error:
        raise MissingName(error) from None


def raised_by_driver(error: BaseException) -> bool:
    """Whether the innermost frame of an exception, apart from the standard library's, is the driver's; one of the JVM has no frame."""
    innermost = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if not of_the_standard_library(frame.f_code.co_filename):
            innermost = frame
    package = innermost.f_globals.get("__package__") if innermost is not None else None
    return "{}.".format(package).startswith("{}.".format(__package__))


def own_failures_marked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A state function, or a method of a processor, that raises ``DriverError`` if it fails by its own fault.

    Spark runs it in another process and passes on the text only.
    """

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        with _own_failures():
            answer = function(*arguments, **named)
        return _iterated(answer) if inspect.isgenerator(answer) else answer

    return call


def _iterated(answer: Iterator[Any]) -> Iterator[Any]:
    with _own_failures():
        yield from answer


@contextmanager
def _own_failures() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # The frames of this module are outside of those of the function.
        if raised_by_driver(error):
            raise DriverError("{}: {}".format(type(error).__name__, error)) from error
        raise


def of_the_standard_library(file: str) -> bool:
    if file.startswith("<frozen "):
        return True
    return file.startswith(_STANDARD_LIBRARY) and not any(folder in file for folder in _OTHER_PACKAGES)
