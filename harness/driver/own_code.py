"""The code of the case's author: finds and calls its functions, and keeps what they print."""

from __future__ import annotations

import importlib
import inspect
import sys
import threading
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, NamedTuple, Optional

from .mistakes import BUILDING, IN_THE_SINK, Mistake, mistake_in, path_inside

_LONGEST_OUTPUT = 10_000
"""Characters of a function's output that are kept: the last ones."""


class AuthorFailed(Exception):
    """A function of the author failed by its own fault. ``mistake``: what it did; ``error``: what it raised."""

    def __init__(self, mistake: Mistake, error: BaseException) -> None:
        super().__init__(str(error))
        self.mistake = mistake
        self.error = error


class Sink(NamedTuple):
    """What the author's code does with the result: exactly one of both."""

    batch: Optional[Callable[[Any, int], None]] = None
    """Writes a micro-batch, with its id, as for ``foreachBatch``."""
    whole: Optional[Callable[[Any], None]] = None
    """Starts queries on the streaming DataFrame."""


class OwnCode:
    """The modules of a case's author.

    ``folders``: where Python finds them; ``by_value``: whether Python workers, which do not see the folders, get functions by value.
    """

    def __init__(self, folders: List[str], by_value: bool = False) -> None:
        self.folders = folders
        self._by_value = by_value
        self.used = False
        """Whether a function was looked up: what fails from then on may be the author's."""

    def function(self, named: str) -> Callable[..., Any]:
        """The function that ``module:function`` names.

        Raises:
            AuthorFailed: it cannot be imported.
        """
        self.used = True
        sys.path[:0] = [folder for folder in self.folders if folder not in sys.path]
        module, _, name = named.partition(":")
        with self._failures(BUILDING):
            found = getattr(importlib.import_module(module), name)
            if not callable(found):
                raise TypeError("{} is not a function".format(named))
        if self._by_value:
            self._send_modules()
        function: Callable[..., Any] = found
        return function

    def sink(self, named: str) -> Sink:
        """The function that ``module:function`` names; it raises ``AuthorFailed`` for its own faults.

        Raises:
            AuthorFailed: it cannot be imported.
        """
        function = self.function(named)

        def write(*arguments: Any) -> None:
            with self._failures(IN_THE_SINK):
                function(*arguments)

        return Sink(whole=write) if _takes_one(function) else Sink(batch=write)

    def _send_modules(self) -> None:
        """Make functions of the author's modules, as far as they are imported, part of what refers to them."""
        from pyspark.cloudpickle import register_pickle_by_value

        for module in list(sys.modules.values()):
            if path_inside(getattr(module, "__file__", None) or "", self.folders):
                register_pickle_by_value(module)

    def frame(self, named: str, *arguments: Any) -> Any:
        """The DataFrame that a function makes of the session and of DataFrames.

        Raises:
            AuthorFailed: it fails by its own fault, or returns something else. What Spark refuses is raised as it is.
        """
        function = self.function(named)
        with self._failures(BUILDING):
            _check_arguments(named, function, arguments)
        with self._failures(BUILDING):
            frame = function(*arguments)
        with self._failures(BUILDING):
            if not (hasattr(frame, "writeStream") and hasattr(frame, "schema")):
                raise TypeError("{} returned {!r:.200}, not a DataFrame".format(named, frame))
        return frame

    @contextmanager
    def _failures(self, during: str) -> Iterator[None]:
        with printed() as output:
            try:
                yield
            # SystemExit would end this thread without an answer to the host.
            except BaseException as error:
                mistake = mistake_in(error, self.folders, during)
                if mistake is None:
                    raise
                raise AuthorFailed(mistake.having_printed(output.text()), error) from error


def _takes_one(function: Callable[..., Any]) -> bool:
    """Whether a function takes one argument and not two."""
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return True
    except ValueError:  # of a builtin
        return False
    return False


def _check_arguments(named: str, function: Callable[..., Any], arguments: Any) -> None:
    try:
        signature = inspect.signature(function)
    except ValueError:  # of a builtin
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise TypeError(
            "{}{} does not take the {} arguments of the case, the session and {} DataFrame{}: {}".format(
                named, signature, len(arguments), len(arguments) - 1, "" if len(arguments) == 2 else "s", error
            )
        ) from None


class _Output:
    """What one thread prints."""

    def __init__(self) -> None:
        self._parts: List[str] = []

    def add(self, text: str) -> None:
        self._parts.append(text)

    def text(self) -> str:
        return "".join(self._parts)[-_LONGEST_OUTPUT:]


class _ByThread:
    """Standard output that also keeps what a thread prints, while ``printed`` asks for it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._kept = threading.local()

    def write(self, text: str) -> int:
        output: Optional[_Output] = getattr(self._kept, "output", None)
        if output is not None:
            output.add(text)
        return int(self._stream.write(text))

    def keep(self, output: Optional[_Output]) -> Optional[_Output]:
        """Keep what this thread prints from here on; returns where it was kept before."""
        before: Optional[_Output] = getattr(self._kept, "output", None)
        self._kept.output = output
        return before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_installing = threading.Lock()


@contextmanager
def printed() -> Iterator[_Output]:
    """What this thread prints in the block, beside its usual place: other cases run in other threads."""
    with _installing:
        if not isinstance(sys.stdout, _ByThread):
            sys.stdout = _ByThread(sys.stdout)
        stream: Any = sys.stdout
    output = _Output()
    before = stream.keep(output)
    try:
        yield output
    finally:
        stream.keep(before)
