"""What went wrong, as classes and text: error classes and type names of an exception and of everything that caused it."""

from __future__ import annotations

import errno
import os
import re
from typing import Any, Iterable, NamedTuple

from py4j.protocol import Py4JJavaError

_TOO_GENERAL = {"Object", "Throwable", "Exception", "RuntimeException", "Error", "BaseException", "object"}
_QUALIFIED = re.compile(r"\b(?:[a-z_][\w]*\.)+([A-Z]\w*(?:Exception|Error))\b")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z][A-Z0-9_]*)*)\]")
_DEEPEST = 20
_NO_DIRECTORY = "Mkdirs failed to create"
"""What Hadoop says for whatever reason a directory cannot be made on a disk."""


def keep_origins() -> None:
    """Let every exception that pyspark converts remember the Java throwable it came from (older releases lose it)."""
    try:
        from pyspark.errors.exceptions import captured as module  # 3.4 and newer
    except ImportError:
        from pyspark.sql import utils as module
    convert = module.convert_exception

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
    # What a foreachBatch function raised comes back as text only: a qualified class name in it counts.
    classes += _QUALIFIED.findall(message) + _CONDITION.findall(message)
    return {
        "stage": stage,
        "classes": [c for c in _without_repeats(classes) if c not in _TOO_GENERAL],
        "message": message,
    }


class MissingResource(NamedTuple):
    """What the machine had not, and whether it may have it the next time."""

    what: str
    passing: bool


def surroundings(error: BaseException) -> MissingResource | None:
    """What the machine lacked, where that is all the error says; None where it says something about Spark's semantics."""
    message = describe(error, "run")["message"]
    if any(os.strerror(code) in message for code in (errno.ENOSPC, errno.EDQUOT)):
        return MissingResource("no space is left", passing=False)
    if _NO_DIRECTORY in message or any(os.strerror(code) in message for code in (errno.EACCES, errno.EROFS)):
        return MissingResource("nothing can be written", passing=False)
    if "ExecutorLostFailure" in message:
        return MissingResource("executors were lost again and again", passing=True)
    if "Python worker failed to connect back" in message:
        return MissingResource("there was no time or memory to start a Python worker", passing=True)
    return None


def _walk_python(error: BaseException | None, classes: list[str], texts: list[str], depth: int) -> None:
    if error is None or depth > _DEEPEST:
        return
    classes.extend(_conditions(error))
    classes.extend(parent.__name__ for parent in type(error).__mro__)
    throwable = getattr(error, "java_throwable", None) or getattr(error, "_origin", None)
    if isinstance(error, Py4JJavaError):
        throwable = error.java_exception
    if throwable is not None:
        _walk_java(throwable, classes, texts)
    else:
        texts.append(str(error))
    _walk_python(error.__cause__, classes, texts, depth + 1)


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
