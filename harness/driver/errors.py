"""Errors as classes and text: the error conditions and type names of an exception and of all its causes."""

from __future__ import annotations

import errno
import os
import re
from typing import Any, Iterable, Iterator

from py4j.protocol import Py4JJavaError

from .failures import DiskFull, DriverFailure, ExecutorsLost, FilesUnwritable, MachineOverloaded

_TOO_GENERAL = {"Object", "Throwable", "Exception", "RuntimeException", "Error", "BaseException", "object"}
_DOTTED = re.compile(r"([\w.]+)(:?)")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z][A-Z0-9_]*)*)\]")
_DEEPEST = 20
_LONGEST_MESSAGE = 100_000
_NO_DIRECTORY = "Mkdirs failed to create"
"""Hadoop's message when it cannot make a directory, whatever the reason."""


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
    _walk_python(error, classes, texts, 0)
    message = "\n".join(_without_repeats(texts))
    if len(message) > _LONGEST_MESSAGE:
        message = message[:_LONGEST_MESSAGE] + " … ({} characters more)".format(len(message) - _LONGEST_MESSAGE)
    # What a foreachBatch function raised comes back as text only, so take the qualified class names in it.
    classes += [*_qualified_classes(message), *_CONDITION.findall(message)]
    return {
        "stage": stage,
        "classes": [c for c in _without_repeats(classes) if c not in _TOO_GENERAL],
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


def machine_failure(error: BaseException, directory: str) -> DriverFailure | None:
    """The failure of the machine that an error reports; None if the error says something about Spark's semantics.

    The texts are those of the operating system, Hadoop and Spark, which give no other sign: in many places the exception is a plain
    ``IOException`` or ``SparkException``.

    ``directory``: where the case runs.
    """
    message = describe(error, "run")["message"]
    if any(os.strerror(code) in message for code in (errno.ENOSPC, errno.EDQUOT)):
        return DiskFull("no space is left on the device of {}".format(directory))
    if _NO_DIRECTORY in message or any(os.strerror(code) in message for code in (errno.EACCES, errno.EROFS)):
        return FilesUnwritable("cannot write to {}".format(directory))
    if "ExecutorLostFailure" in message:
        return ExecutorsLost("the cluster lost executors repeatedly while a case ran in {}".format(directory))
    if "Python worker failed to connect back" in message:
        return MachineOverloaded("no time or memory to start a Python worker for the case in {}".format(directory))
    return None


def _walk_python(error: BaseException | None, classes: list[str], texts: list[str], depth: int) -> None:
    if error is None or depth > _DEEPEST:
        return
    classes.extend(_conditions(error))
    classes.extend(parent.__name__ for parent in type(error).__mro__)
    throwable = _throwable(error)
    if throwable is not None:
        _walk_java(throwable, classes, texts)
    else:
        texts.append(str(error))
    _walk_python(error.__cause__, classes, texts, depth + 1)


def _throwable(error: BaseException) -> Any:
    """The Java throwable behind an exception, None if it is Python's own."""
    if isinstance(error, Py4JJavaError):
        return error.java_exception
    kept = getattr(error, "java_throwable", None) or getattr(error, "_origin", None)
    # Before 3.0 pyspark raises what it converts while it handles py4j's exception.
    if kept is None and hasattr(error, "stackTrace") and isinstance(error.__context__, Py4JJavaError):
        return error.__context__.java_exception
    return kept


def _walk_java(throwable: Any, classes: list[str], texts: list[str]) -> None:
    for _ in range(_DEEPEST):
        if throwable is None:
            return
        classes.extend(_conditions(throwable))
        java_class = throwable.getClass()
        while java_class is not None:
            classes.append(java_class.getSimpleName())
            java_class = java_class.getSuperclass()
        texts.append(throwable.getMessage() or "")
        throwable = throwable.getCause()


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
