"""Mistakes in the code of a case's author: what was raised, where in their code, and how it got there.

What their functions raise is their mistake unless the innermost frame is of Spark: Spark's own refusals say something about its
version and are judged. The traceback of a UDF arrives as text inside Spark's error, and is theirs if a frame lies in their folders.
"""

from __future__ import annotations

import os
import re
import traceback
from dataclasses import dataclass, replace
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from .origin import of_the_standard_library

BUILDING = "while building the query"
IN_A_UDF = "in a UDF"
IN_THE_SINK = "in the sink"

_OF_SPARK = re.compile(r"[/\\](pyspark|py4j|grpc)[/\\]")
_FRAME = re.compile(r'^(\s*)File "([^"\n]+)", line (\d+), in (\S+)')
_WORKER_GONE = "Python worker exited unexpectedly"
_LONGEST = 2_000
"""Characters of a message that are kept."""


@dataclass(frozen=True)
class Mistake:
    """The fields of ``OwnCodeError`` of the host's ``observation.py``."""

    raised: str
    at: Optional[str]
    during: str
    traceback: str = ""
    printed: str = ""

    def having_printed(self, text: str) -> Mistake:
        return replace(self, printed=text)

    def fields(self) -> Dict[str, Any]:
        return dict(vars(self))


class _Frame(NamedTuple):
    file: str
    line: int
    function: str
    source: str


def mistake_in(error: BaseException, folders: List[str], during: str) -> Optional[Mistake]:
    """The author's mistake that an exception is which one of their functions raised in this process; None if it is Spark's.

    No line of theirs raised it if a module is not there, or a function has the wrong result.
    """
    if isinstance(error, SyntaxError) and error.filename and path_inside(error.filename, folders):
        at = "{}:{}".format(path_inside(error.filename, folders), error.lineno)
        return Mistake("{}({!r})".format(type(error).__name__, error.msg), at, during)
    frames = [
        _Frame(one.filename, one.lineno or 0, one.name, one.line or "")
        for one in traceback.extract_tb(error.__traceback__)
    ]
    if _is_of_spark(frames):
        return None
    shown = repr(error)[:_LONGEST]
    return _mistake(shown, _line(error), frames, folders, during) or Mistake(shown, None, during)


def mistake_told(message: str, folders: List[str]) -> Optional[Mistake]:
    """The author's mistake that the text of an error of Spark reports: the traceback of a Python worker."""
    for frames, last in _tracebacks(message):
        kind, _, said = last.partition(": ")
        name = kind.rpartition(".")[2]
        # KeyError's text is the repr of its key.
        shown = "{}({})".format(name, said if name == "KeyError" else repr(said) if said else "")
        # Through Connect, Spark's own exception ends with the frames of the one that it reports, which follows.
        of_spark = _is_of_spark(frames) or last.startswith("pyspark.")
        found = None if of_spark else _mistake(shown[:_LONGEST], last, frames, folders, IN_A_UDF)
        if found is not None:
            return found
    if _WORKER_GONE in message:
        return Mistake("SystemExit, or ended its Python worker in another way", None, IN_A_UDF)
    return None


def _mistake(raised: str, last: str, frames: List[_Frame], folders: List[str], during: str) -> Optional[Mistake]:
    theirs = [frame for frame in frames if path_inside(frame.file, folders)]
    if not theirs:
        return None
    lines = []
    for frame in theirs:
        lines.append('File "{}", line {}, in {}'.format(path_inside(frame.file, folders), frame.line, frame.function))
        if frame.source:
            lines.append("  " + frame.source)
    at = "{}:{}".format(path_inside(theirs[-1].file, folders), theirs[-1].line)
    return Mistake(raised, at, during, "\n".join([*lines, last[:_LONGEST]]))


def _is_of_spark(frames: List[_Frame]) -> bool:
    others = [frame for frame in frames if not of_the_standard_library(frame.file)]
    return bool(others) and _OF_SPARK.search(others[-1].file) is not None


def _tracebacks(message: str) -> Iterator[Any]:
    """The frames of each traceback in a text, and its last line."""
    frames: List[_Frame] = []
    indent = 0
    for line in message.splitlines():
        found = _FRAME.match(line)
        if found is not None:
            indent = len(found.group(1))
            frames.append(_Frame(found.group(2), int(found.group(3)), found.group(4), ""))
        elif frames and line.strip():
            if len(line) - len(line.lstrip()) > indent:
                if not frames[-1].source:
                    frames[-1] = frames[-1]._replace(source=line.strip())
            else:
                yield frames, line.strip()
                frames = []


def path_inside(file: str, folders: List[str]) -> Optional[str]:
    """The path of a file relative to the innermost folder that holds it; None if none does, or it is of an installed package."""
    real = os.path.realpath(file)
    if "site-packages" in real or "dist-packages" in real:
        return None
    held = [folder for folder in map(os.path.realpath, folders) if real.startswith(folder.rstrip(os.sep) + os.sep)]
    return os.path.relpath(real, max(held, key=len)).replace(os.sep, "/") if held else None


def _line(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(type(error), error)).strip()
