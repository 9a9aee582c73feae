"""The code of the case's author: finds and calls its functions, keeps what they print, and says where they failed.

What their functions raise is their mistake unless the innermost frame is of Spark: Spark's own refusals say something about its
version and are judged. The traceback of a UDF arrives as text inside Spark's error, and is theirs if a frame lies in their folders.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
import threading
import traceback
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from traceback import FrameSummary
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..errors import WORKER_GONE, DriverFailure, FailureReason, of_the_standard_library
from ..session import NO_STARTS
from . import jvm_methods, main_program
from .program import ProgramCall, ProgramRun, ProgramSource, for_each
from .program import run as run_program
from .query_starts import THROUGH_THE_JVM, guard_pyspark
from .threads import CodeRun, belonging_to, inherit

BUILDING = "while building the query"
IN_A_UDF = "in a UDF"
IN_THE_SINK = "in the sink"

_OF_SPARK = re.compile(r"[/\\](pyspark|py4j|grpc)[/\\]")
_FRAME = re.compile(r'^(\s*)File "([^"\n]+)", line (\d+), in (\S+)')
_NO_CLASS = re.compile(r"(ClassNotFoundException|NoClassDefFoundError): ")
_LONGEST = 2_000
"""Characters of a message that are kept."""
_LONGEST_OUTPUT = 10_000
"""Characters of a function's output that are kept: the last ones."""


@dataclass(frozen=True)
class AuthorMistake:
    """The fields of ``OwnCodeError`` of the host's ``observation.py``."""

    raised: str
    at: Optional[str]
    during: str
    traceback: str = ""
    printed: str = ""


def mistake_in(error: BaseException, folders: List[str], during: str) -> Optional[AuthorMistake]:
    """The author's mistake behind an exception that their function raised in this process; None if Spark raised it.

    No line of theirs raised it if a module is not there, or a function has the wrong result.
    """
    if isinstance(error, SyntaxError) and error.filename and path_inside(error.filename, folders):
        at = "{}:{}".format(path_inside(error.filename, folders), error.lineno)
        return AuthorMistake("{}({!r})".format(type(error).__name__, error.msg), at, during)
    frames = traceback.extract_tb(error.__traceback__)
    if NO_STARTS in str(error):
        shown = "QueryStarted: " + THROUGH_THE_JVM
        return _mistake(shown, shown, frames, folders, during) or AuthorMistake(shown, None, during)
    if _is_of_spark(frames):
        return None
    shown = repr(error)[:_LONGEST]
    last = "".join(traceback.format_exception_only(type(error), error)).strip()
    return _mistake(shown, last, frames, folders, during) or AuthorMistake(shown, None, during)


def mistake_in_text(message: str, folders: List[str]) -> Optional[AuthorMistake]:
    """The author's mistake in the text of an error of Spark, which has the traceback of a Python worker; None if there is none."""
    for frames, last in _tracebacks(message):
        kind, _, said = last.partition(": ")
        name = kind.rpartition(".")[2]
        # KeyError's text is the repr of its key.
        shown = "{}({})".format(name, said if name == "KeyError" else repr(said) if said else "")
        # Through Connect, Spark's own exception ends with the frames of the one that it reports, which follows.
        of_spark = _is_of_spark(frames) or last.startswith("pyspark.")
        mistake = None if of_spark else _mistake(shown[:_LONGEST], last, frames, folders, IN_A_UDF)
        if mistake is not None:
            return mistake
    if WORKER_GONE in message:
        return AuthorMistake("SystemExit, or ended its Python worker in another way", None, IN_A_UDF)
    return None


def _mistake(
    raised: str, last: str, frames: List[FrameSummary], folders: List[str], during: str
) -> Optional[AuthorMistake]:
    at = None
    lines = []
    for frame in frames:
        file = path_inside(frame.filename, folders)
        if file:
            at = "{}:{}".format(file, frame.lineno)
            lines.append('File "{}", line {}, in {}'.format(file, frame.lineno, frame.name))
            if frame.line:
                lines.append("  " + frame.line)
    return AuthorMistake(raised, at, during, "\n".join([*lines, last[:_LONGEST]])) if at else None


def _is_of_spark(frames: List[FrameSummary]) -> bool:
    others = [frame.filename for frame in frames if not of_the_standard_library(frame.filename)]
    return bool(others) and _OF_SPARK.search(others[-1]) is not None


def _tracebacks(message: str) -> Iterator[Any]:
    """The frames of each traceback in a text, and its last line."""
    frames: List[FrameSummary] = []
    indent = 0
    for line in message.splitlines():
        frame = _FRAME.match(line)
        if frame is not None:
            indent = len(frame.group(1))
            frames.append(FrameSummary(frame.group(2), int(frame.group(3)), frame.group(4), line=""))
        elif frames and line.strip():
            if len(line) - len(line.lstrip()) > indent:
                if not frames[-1].line:
                    frames[-1] = FrameSummary(*frames[-1][:3], line=line.strip())
            else:
                yield frames, line.strip()
                frames = []


def refused_at(error: BaseException, folders: List[str]) -> AuthorMistake:
    """What Spark refused, as a mistake at the author's line that asked for it."""
    said = [line.strip() for line in str(error).splitlines() if line.strip()]
    # py4j says first what was called, and then what was thrown.
    said = said[1:] if len(said) > 1 and said[0].startswith("An error occurred while calling") else said
    first = next((line for line in said if _NO_CLASS.search(line)), next(iter(said), "")).lstrip(": ")
    shown = "{}: {}".format(type(error).__name__, first)[:_LONGEST]
    frames = traceback.extract_tb(error.__traceback__)
    return _mistake(shown, shown, frames, folders, BUILDING) or AuthorMistake(shown, None, BUILDING)


def path_inside(file: str, folders: Sequence[str]) -> Optional[str]:
    """The path of a file relative to the innermost folder that holds it; None if none does, or it is of an installed package."""
    real = os.path.realpath(file)
    if "site-packages" in real or "dist-packages" in real:
        return None
    held = [folder for folder in map(os.path.realpath, folders) if real.startswith(folder.rstrip(os.sep) + os.sep)]
    return os.path.relpath(real, max(held, key=len)).replace(os.sep, "/") if held else None


def place(folders: Sequence[str]) -> Optional[str]:
    """The line of a file in these folders that calls, ``job.py:12``; None if none does."""
    for frame, line in traceback.walk_stack(sys._getframe(1)):
        file = path_inside(frame.f_code.co_filename, folders)
        if file is not None:
            return "{}:{}".format(file, line)
    return None


class AuthorFailed(Exception):
    """A function of the author failed by its own fault. ``mistake``: what it did; ``error``: what it raised."""

    def __init__(self, mistake: AuthorMistake, error: BaseException) -> None:
        super().__init__(str(error))
        self.mistake = mistake
        self.error = error


class AuthorSink(NamedTuple):
    """What the author's code does with the result: ``batch`` writes a micro-batch, ``whole`` starts queries on the streaming DataFrame."""

    batch: Optional[Callable[[Any, int], None]] = None
    whole: Optional[Callable[[Any], None]] = None


_DRIVER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@lru_cache(maxsize=None)
def _is_of_author(file: str, folders: Tuple[str, ...]) -> bool:
    """Whether a module's file is in the author's folders; looked up once for each of the thousand modules, as that asks the disk."""
    return path_inside(file, folders) is not None and path_inside(file, [_DRIVER]) is None


_IMPORTING = threading.RLock()
"""Held while a case exchanges the modules of its author."""


class AuthorCode:
    """The modules of a case's author.

    ``folders``: where Python finds them; ``by_value``: whether Python workers, which do not see the folders, get functions by value.
    """

    def __init__(self, folders: List[str], by_value: bool = False) -> None:
        self.folders = folders
        self._by_value = by_value
        self.used = False
        """Whether a function was looked up: what fails from then on may be the author's."""
        self.calls = CodeRun(partial(place, folders))
        self.sink_of_program = AuthorSink()
        self._runs = 0
        self._modules: Dict[str, Any] = {}
        """Each case has its own, as a process of its own would: a decorator makes a Python function by the settings then."""
        self._calls_methods = False

    def function(self, named: str) -> Callable[..., Any]:
        """The function that ``module:function`` names. Raises ``AuthorFailed`` if it cannot be imported."""
        self.used = True
        guard_pyspark()
        sys.path[:0] = [folder for folder in self.folders if folder not in sys.path]
        module, _, name = named.partition(":")
        with self._failures(BUILDING), _IMPORTING:
            for of_another_case in self._loaded():
                del sys.modules[of_another_case]
            sys.modules.update(self._modules)
            function: Callable[..., Any] = getattr(importlib.import_module(module), name)
            self._modules = self._loaded()
            if not callable(function):
                raise TypeError("{} is not a function".format(named))
        if self._by_value:
            self._send_modules()
        return function

    def _loaded(self) -> Dict[str, Any]:
        """The modules of the author that Python has now, by their names; those of the driver may lie in the same folders."""
        loaded, folders = list(sys.modules.items()), tuple(self.folders)
        return {name: of for name, of in loaded if _is_of_author(getattr(of, "__file__", None) or "", folders)}

    def sink(self, named: str) -> AuthorSink:
        """The function that ``module:function`` names; it and this raise ``AuthorFailed`` for faults of its own."""
        function = self.function(named)
        write = self._guarded(function)
        return AuthorSink(batch=write) if _misfit(function, 2) is None else AuthorSink(whole=write)

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., None]:
        def write(*arguments: Any) -> None:
            with self._failures(IN_THE_SINK):
                function(*arguments)

        return write

    def _send_modules(self) -> None:
        """Make functions of the author's modules, as far as they are imported, part of what refers to them."""
        from pyspark.cloudpickle import register_pickle_by_value

        for module in self._modules.values():
            register_pickle_by_value(module)

    def frame(self, named: str, *arguments: Any) -> Any:
        """The DataFrame that a function makes of the session and of DataFrames.

        Raises:
            AuthorFailed: it fails by its own fault, or returns something else. What Spark refuses is raised as it is.
        """
        function = self.function(named)
        with self._failures(BUILDING):
            why = _misfit(function, len(arguments))
            if why is not None:
                raise TypeError(
                    "{}{} does not take the {} arguments of the case, the session and {} DataFrame{}: {}".format(
                        named,
                        inspect.signature(function),
                        len(arguments),
                        len(arguments) - 1,
                        "" if len(arguments) == 2 else "s",
                        why,
                    )
                )
            frame = function(*arguments)
        with self._failures(BUILDING):
            if not (hasattr(frame, "writeStream") and hasattr(frame, "schema")):
                raise TypeError("{} returned {!r:.200}, not a DataFrame".format(named, frame))
        return frame

    def method(self, named: str, session: Any, frames: Dict[str, Any]) -> Any:
        """The DataFrame that a method of the author's jars makes of these, by stream. Raises as ``frame`` does."""
        self.used = self._calls_methods = True
        with self._thrown(session):
            return jvm_methods.call(named, session, frames)

    @contextmanager
    def _thrown(self, session: Any) -> Iterator[None]:
        """What the author's jars throw in the block, it raises as their mistake."""
        try:
            yield
        except Exception as error:
            thrown = jvm_methods.thrown(error, session)
            if thrown is None:
                raise
            raise AuthorFailed(AuthorMistake(thrown.what[:_LONGEST], thrown.at, BUILDING), error) from error

    def mistake_in_text(self, message: str) -> Optional[AuthorMistake]:
        """The author's mistake in the text of an error of Spark; None if there is none."""
        thrown = jvm_methods.thrown_in_text(message) if self._calls_methods else None
        if thrown is not None:
            return AuthorMistake(thrown.what[:_LONGEST], thrown.at, IN_A_UDF)
        return mistake_in_text(message, self.folders)

    def program(self, called: Dict[str, Any], session: Any, read: Callable[[ProgramSource], Any]) -> ProgramRun:
        """What a program reads and would have started. ``called``: what ``call`` says. Raises as ``frame`` does."""
        self.used = True
        self._runs += 1
        if self._runs > 1:  # a program that is run again finds no views of its earlier run
            drop_views(session)
        arguments = tuple(called.get("arguments", ()))
        if "main" in called:
            self._calls_methods = True
            with self._failures(BUILDING), self._thrown(session):
                return main_program.run(called["main"], arguments, session, read)
        wanted = ProgramCall(called["program"], arguments, called.get("cells", {}), called.get("set", {}))
        with self._failures(BUILDING):
            return run_program(wanted, session, read, self.folders, path_inside, self.calls)

    def check_starts(self) -> None:
        """Raise ``DriverFailure`` if a query that the code was about to start was refused, whether or not it says so itself."""
        if self.calls.refused:
            what = "your code is about to start a query at {}, where no query can be held: it is not compared. {}".format(
                ", ".join(self.calls.refused),
                "Nothing was started. Start it in the main thread of a program, or in a thread that ends with it, by PySpark itself",
            )
            raise DriverFailure(what, FailureReason.NOT_PERMITTED)

    def query(self, called: Dict[str, Any], session: Any, read: Callable[[ProgramSource], Any]) -> Any:
        """The DataFrame of a query that a program starts: that with the number ``query``, the first is 1. For errors see ``program``.

        With ``sinks``, its function of ``foreachBatch`` or ``foreach`` becomes ``sink_of_program``.
        """
        started, number = self.program(called, session, read).started, called.get("query", 1)
        with self._failures(BUILDING):
            if len(started) < number:
                named = called.get("main") or called["program"]
                raise TypeError("{} started {} queries, not {}".format(named, len(started), number))
        query = started[number - 1]
        if called.get("sinks") and query.function is not None:
            batch = query.function if query.sink == "foreachBatch" else partial(for_each, query.function)
            self.sink_of_program = AuthorSink(batch=self._guarded(batch))
            sys.path[:0] = [folder for folder in self.folders if folder not in sys.path]
        return query.frame

    @contextmanager
    def _failures(self, during: str) -> Iterator[None]:
        inherit()
        with printed() as output, belonging_to(code=self.calls):
            try:
                yield
                self.calls.settle()
            # SystemExit would end this thread without an answer to the host.
            except BaseException as error:
                mistake = mistake_in(error, self.folders, during)
                if mistake is None or isinstance(error, AuthorFailed):
                    raise
                text = "".join(output)[-_LONGEST_OUTPUT:]
                raise AuthorFailed(replace(mistake, printed=text), error) from error


def drop_views(session: Any) -> None:
    for table in session.catalog.listTables("default"):  # the current catalog may have no current namespace
        if table.isTemporary:
            session.catalog.dropTempView(table.name)


def _misfit(function: Callable[..., Any], arguments: int) -> Optional[str]:
    """Why a function does not take so many arguments; None if it does, or if it is a builtin that does not tell."""
    try:
        inspect.signature(function).bind(*range(arguments))
    except TypeError as error:
        return str(error)
    except ValueError:
        pass
    return None


class _ByThread:
    """Standard output that also keeps what a thread prints, while ``printed`` asks for it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._kept = threading.local()

    def write(self, text: str) -> int:
        output: Optional[List[str]] = getattr(self._kept, "output", None)
        if output is not None:
            output.append(text)
        return int(self._stream.write(text))

    def keep(self, output: Optional[List[str]]) -> Optional[List[str]]:
        """Keep what this thread prints from here on. Return where it was kept before."""
        before: Optional[List[str]] = getattr(self._kept, "output", None)
        self._kept.output = output
        return before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_installing = threading.Lock()


@contextmanager
def printed() -> Iterator[List[str]]:
    """The parts of what this thread prints in the block, also as errors, beside its usual place: other cases run in other threads."""
    streams: List[Any] = []
    with _installing:
        for name in ("stdout", "stderr"):
            if not isinstance(getattr(sys, name), _ByThread):
                setattr(sys, name, _ByThread(getattr(sys, name)))
            streams.append(getattr(sys, name))
    output: List[str] = []
    before = [stream.keep(output) for stream in streams]
    try:
        yield output
    finally:
        for stream, earlier in zip(streams, before):
            stream.keep(earlier)


class OwnQueries:
    """The queries that the author's sink starts; none until ``start``."""

    def __init__(self) -> None:
        self._started: List[Any] = []

    def start(self, write: Callable[[Any], None], frame: Any, session: Any, captured: Any) -> None:
        """Call the function with the streaming DataFrame; what it raises, this raises.

        ``session``: of the case, which has no other queries but the captured one; ``captured``: the id of that one.
        """
        write(frame)
        self._started = [query for query in session.streams.active if query.id != captured]

    def drain(self, wait: Callable[..., None]) -> None:
        """Wait until they have processed what has arrived; a query that failed raises its error. ``wait``: until a query is idle."""
        for query in self._started:
            wait(query, query.processAllAvailable, lambda _: [])  # nobody knows what it emits
            error = query.exception()
            if error is not None:
                raise error

    def stop(self) -> None:
        for query in self._started:
            with suppress(Exception):  # a query that failed has stopped already
                query.stop()
        self._started = []
