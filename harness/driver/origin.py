"""Whose exception it is: Spark's, that of a user's function, or the driver's own, which says nothing about Spark."""

from __future__ import annotations

import functools
import inspect
import sysconfig
import traceback
from contextlib import contextmanager
from typing import Any, Callable, Iterator

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
