"""The lines of a results file as records, one after the other."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from reports.results.compression import open_results
from reports.results.errors import (
    EmptyResults,
    NoResultsFile,
    NotARecord,
    NotJson,
    NotReadable,
    NotResults,
    OtherFormat,
    TruncatedResults,
)
from reports.results.records import FORMAT, RECORD, AnyRecord, Cell, Header, UpgradeCell

MOST_BYTES = 4 * 1024**3
"""Of a results file, as it lies on the disk."""
LONGEST_LINE = 32 * 1024**2
"""In bytes, of one record."""
MOST_BLANK = 10_000
"""Lines without content that are skipped: a small compressed file can hold a thousand million of them."""


class RecordLine(NamedTuple):
    """One line, with its end."""

    number: int
    """From 1."""
    offset: int
    """Of its first byte in the file."""
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")


def records(path: Path) -> Generator[tuple[RecordLine, AnyRecord]]:
    """Every record of a file, with its line. The first is the header, in the format this code reads.

    Raises:
        UnusableResults: one of its kinds, for a line that is none or a file that cannot be read.
    """
    header: Header | None = None
    cells = blank = 0
    for line in _lines(path):
        text = line.text
        if not text.strip():
            blank += 1
            if blank > MOST_BLANK:
                raise NotJson(path, line.number, f"more than {MOST_BLANK:,} lines are empty")
            continue
        if header is None:
            _check_first(path, line.number, text)
        try:
            record = RECORD.validate_json(text)
        except ValidationError as problem:
            try:
                _object(path, line.number, text)
            except NotJson:
                if text.endswith("\n") or header is None:
                    raise
                # The run was interrupted while it wrote this line.
                raise TruncatedResults(path, cells, len(header.expected_cells())) from None
            raise NotARecord(path, line.number, _first(problem)) from None
        header = header or (record if isinstance(record, Header) else None)
        cells += isinstance(record, Cell | UpgradeCell)
        yield line, record
    if header is None:
        raise EmptyResults(path)


def header_of(path: Path) -> Header:
    """What a file announces, read from its first line alone.

    Raises:
        UnusableResults: as ``records``.
    """
    reading = records(path)
    try:
        header = next(reading)[1]
    finally:
        reading.close()
    assert isinstance(header, Header)
    return header


def _lines(path: Path) -> Iterator[RecordLine]:
    """As far as they are not too long to be records.

    Raises:
        NoResultsFile: there is none.
        NotReadable: it cannot be read, or is too big.
        NotDecompressed: it is compressed, and damaged or too big.
        NotJson: a line is too long.
    """
    if not path.exists():
        raise NoResultsFile(path)
    try:
        if (size := path.stat().st_size) > MOST_BYTES:
            raise NotReadable(path, f"it has {size:,} bytes; at most {MOST_BYTES:,} are read")
        offset = 0
        with open_results(path) as file:
            for number, content in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), 1):
                if len(content) > LONGEST_LINE:
                    raise NotJson(path, number, f"it has more than {LONGEST_LINE:,} bytes")
                yield RecordLine(number, offset, content)
                offset += len(content)
    except OSError as error:
        raise NotReadable(path, error.strerror or str(error)) from None


def _check_first(path: Path, number: int, line: str) -> None:
    """It is a header, in the format this code reads: what is in another one nobody here can know."""
    try:
        content = _object(path, number, line)
    except NotJson as error:
        raise NotResults(path, f"is not JSON ({error.reason})") from None
    except NotARecord as error:
        raise NotResults(path, f"is {error.reason}") from None
    if content.get("record") != "header":
        raise NotResults(path, "is not a header")
    written = content.get("format")
    if type(written) is int and written != FORMAT:
        raise OtherFormat(path, written, FORMAT)


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except ValueError as problem:
        raise NotJson(path, number, str(problem)) from None
    except RecursionError:
        raise NotJson(path, number, "nested too deeply") from None
    if not isinstance(content, dict):
        raise NotARecord(path, number, "not a JSON object")
    return content


def _first(problem: ValidationError) -> str:
    error = problem.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in error["loc"])
    return f"{where}: {error['msg']}" if where else error["msg"]
