"""Reads progress from what a person has: JSON lines, a driver's log, an event log, objects of PySpark.

It holds one line, or one object that a log prints over many lines, at a time. What is no progress of a version that it knows is skipped
and counted.
"""

from __future__ import annotations

import ast
import io
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias, cast

from pydantic import ValidationError

from conformance.core.errors import WrongUsage
from conformance.core.unpacking import BUFFER, unpacked
from conformance.query_progress.wire import Environment, LoggedProgress, Progress, QueryEvent

Event: TypeAlias = Progress | QueryEvent | Environment
_LONGEST: Final = 16_000_000
"""Bytes of a line; what is longer is no progress."""
_MOST_LINES: Final = 20_000
"""Lines that one object may take in a log."""
_FEW: Final = 5
_OF_A_QUERY: Final = "org.apache.spark.sql.streaming.StreamingQueryListener$Query"
_EVENT: Final = re.compile(rb'\{"Event":\s?"([^"]+)"')
_EVENT_FILE: Final = re.compile(r"events_(\d+)_")
_STRING: Final = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
_TOKEN: Final = re.compile(rf"{_STRING}|[{{}}]")
_PART: Final = re.compile(
    rf"(?:^|\s)([\[{{]*{_STRING}\s*(?::.*|[,\]}}]*)|[\[\]{{}}][\[\]{{}}, ]*|-?\d[\d.eE+-]*,?)\s*$"
)
"""The part of a pretty-printed object, of JSON or Python, in a line of a log, after the log's own prefix."""
_LOGGED: Final = re.compile(rb'[{,]\s?"(?:log|msg|message|textPayload)":\s?("(?:[^"\\]|\\.)*")', re.IGNORECASE)
"""The text of a log whose lines are JSON, as of Spark's structured logging and of containers."""
_NEXT: Final = re.compile(r":\s*\{\s*$")
_BEGINS: Final = re.compile(r"""\{(?=\s*(?:$|["']\w))""")


@dataclass
class Skipped:
    """What was not read, and where."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, where: str, why: str) -> None:
        self.count += 1
        if len(self.first) < _FEW:
            self.first.append(f"{where}: {why}")


Watched: TypeAlias = Callable[[Path], BinaryIO]
"""What opens a file, and may show how much of it is read."""


def events_in(
    paths: Iterable[Path], skipped: Skipped, opened: Watched = lambda path: path.open("rb")
) -> Iterator[Event]:
    """Yield what files and folders tell of queries; raises WrongUsage if a file is compressed by what is not installed or not known."""
    for file in _by_time([file for path in paths for file in _files(path)]):
        with opened(file) as raw:
            yield from events(_lines(raw, file, skipped), skipped, str(file))


def events(lines: Iterable[object], skipped: Skipped, name: str = "line") -> Iterator[Event]:
    """Yield what lines, or objects of PySpark, tell of queries."""
    text = _Text(skipped, name)
    for number, line in enumerate(lines, 1):
        own = getattr(line, "json", None)
        if isinstance(own, str):
            line = own
        if isinstance(line, Mapping):
            yield from text.whole(lambda line=line: Progress.model_validate(line), number)  # type: ignore[misc]
        else:
            raw = line if isinstance(line, bytes) else str(line).encode("utf-8", "replace")
            yield from text.read(raw.strip(b" \t\r\n\xef\xbb\xbf"), number)
    text.end()


class _Text:
    """Progress in text: an object a line, several in one, or one over many lines with a log's prefix before each."""

    def __init__(self, skipped: Skipped, name: str) -> None:
        self._skipped, self._name = skipped, name
        self._parts: list[str] = []
        self._depth = self._begun = 0

    def read(self, line: bytes, number: int) -> Iterator[Event]:
        if (logged := _logged(line)) is not None:
            for inner in logged:
                yield from self.read(inner.strip().encode(), number)
            return
        if b'{""' in line:  # in a column of a CSV file
            line = line.replace(b'""', b'"')
        if self._parts:
            text = line.decode("utf-8", "replace")
            part = _PART.search(text) if len(self._parts) < _MOST_LINES else None
            # A key follows the first brace; a brace after the text of a log, or before a key, begins another object.
            within = len(self._parts) > 1 and not _NEXT.search(text)
            if part is not None and not text.startswith('{"') and (within or part[1][0] in "\"'"):
                yield from self._scan(part[1], number)
                return
            self.end()
        if (event := _EVENT.match(line)) is not None:
            yield from self._event(event[1].decode(), line, number)
        elif line.startswith(b"{") and line.endswith(b"}"):
            yield from self.whole(lambda: _progress_or_event(line), number)
        elif b"{" in line:
            text = line.decode("utf-8", "replace")
            if (begin := _BEGINS.search(text)) is not None:
                yield from self._scan(text[begin.start() :], number)

    def whole(self, made: Callable[[], Event], number: int) -> Iterator[Event]:
        try:
            read = made()
        except (ValidationError, ValueError, SyntaxError, RecursionError, MemoryError):
            self._skipped.add(f"{self._name}:{number}", "no progress of a streaming query, or a part of it")
        else:
            yield read

    def end(self) -> None:
        """Count what has begun and does not go on, if it is of a progress."""
        if any("runId" in part or "batchId" in part for part in self._parts):
            self._skipped.add(f"{self._name}:{self._begun}", "the progress is cut off")
        self._parts, self._depth = [], 0

    def _scan(self, text: str, number: int) -> Iterator[Event]:
        start = 0
        for token in _TOKEN.finditer(text):
            if token[0] == "{":
                if not self._depth:
                    start, self._begun = token.start(), number
                self._depth += 1
            elif token[0] == "}" and self._depth:
                self._depth -= 1
                if not self._depth:
                    whole = "\n".join([*self._parts, text[start : token.end()]])
                    self._parts, start = [], token.end()
                    if "runId" in whole:
                        yield from self.whole(lambda whole=whole: _progress_or_event(whole.encode()), self._begun)  # type: ignore[misc]
        if self._depth:
            self._parts.append(text[start:])

    def _event(self, kind: str, line: bytes, number: int) -> Iterator[Event]:
        if kind.endswith("$QueryProgressEvent"):
            yield from self.whole(lambda: LoggedProgress.model_validate_json(line).progress, number)
        elif kind.startswith(_OF_A_QUERY):
            yield from self.whole(lambda: QueryEvent.model_validate_json(line), number)
        elif kind in ("SparkListenerLogStart", "SparkListenerEnvironmentUpdate"):
            yield from self.whole(lambda: Environment.model_validate_json(line), number)


def _logged(line: bytes) -> list[str] | None:
    """Return the lines of text in a line of a log that is JSON; None for another line."""
    if not line.startswith(b'{"') or line.startswith(b'{"Event"') or b'"runId"' in line:
        return None
    text = _LOGGED.search(line)
    try:
        return None if text is None else str(json.loads(text[1], strict=False)).splitlines()
    except ValueError:
        return None


def _progress_or_event(text: bytes) -> Progress | QueryEvent:
    try:
        return Progress.model_validate_json(text)
    except ValidationError:
        # PySpark before 4.0 prints a dict.
        if text.lstrip().startswith(b"{'"):
            return Progress.model_validate(ast.literal_eval(text.decode()))
        # What `json` gives of a listener's events, since 3.5, does not say which event it is.
        if b'"progress"' in text:
            return LoggedProgress.model_validate_json(text).progress
        if b'"batchId"' in text:
            raise
        return QueryEvent.model_validate_json(text)


def _files(path: Path) -> Iterator[Path]:
    """Yield a file, or those of a folder: of a rolled event log in the order in which Spark wrote them."""
    if not path.exists():
        raise WrongUsage(f"{path}: there is no such file or folder")
    if not path.is_dir():
        yield path
        return
    numbered = ((int(n[1]) if (n := _EVENT_FILE.match(one.name)) else 0, one.name, one) for one in path.iterdir())
    for _, _, inner in sorted(numbered):
        if not inner.name.startswith((".", "appstatus_", "_")):
            yield from _files(inner)


def _by_time(files: Sequence[Path]) -> Sequence[Path]:
    """Sort files, as rotated logs, by their first progress; one without it stays after the file before it, as parts of event logs do."""
    began, keys, folder = 0, dict[Path, int](), None
    for file in files if len(files) > 1 else ():
        if _EVENT_FILE.match(file.name) is None or file.parent != folder:
            with file.open("rb") as raw:
                read = events(_lines(raw, file, Skipped()), Skipped())
                began = next((event.timestamp for event in read if isinstance(event, Progress)), began)
        keys[file], folder = began, file.parent
    return sorted(files, key=lambda file: keys.get(file, 0))


def _lines(raw: BinaryIO, path: Path, skipped: Skipped) -> Iterator[bytes]:
    """Yield the lines of a file, whatever it is compressed by; a file that ends early is counted."""
    buffered = io.BufferedReader(cast(io.RawIOBase, raw), BUFFER)
    number = 0
    try:
        with unpacked(buffered, path) as file:
            while line := file.readline(_LONGEST):
                number += 1
                if len(line) == _LONGEST and not line.endswith(b"\n"):
                    skipped.add(f"{path}:{number}", f"a line of more than {_LONGEST:,} bytes")
                    while (rest := file.readline(_LONGEST)) and not rest.endswith(b"\n"):
                        pass
                    line = b""
                yield line
    except (EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        skipped.add(f"{path}:{number + 1}", f"the compressed file is damaged or still being written ({error})")
