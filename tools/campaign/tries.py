"""What each try of the campaign was and whether the program held, kept in a file so that a campaign goes on where it stopped."""

from __future__ import annotations

import io
import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from conformance.cli.main import main

ALL = "all"
DEFECT = "a defect of this program"
"""How a command reports an unexpected exception."""


@dataclass(frozen=True)
class Try:
    """An attempt, and what it met: ``number`` and the seed repeat it."""

    number: int
    door: str
    """What was asked: a command, or an export."""
    kind: str
    """What was wrong with what it was asked about."""
    fell: str = ""
    """What it answered, if it must not; empty if it held."""


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def last(self) -> str:
        lines = (self.err or self.out).strip().splitlines()
        return f"exit {self.code}: {lines[-1] if lines else 'nothing'}"

    @property
    def unforeseen(self) -> bool:
        return "Traceback" in self.err or DEFECT in self.err


def answer(*arguments: str | Path) -> Answer:
    """Carry out a command line in this process, which has imported everything."""
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
    code = 0
    with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        try:
            main([*map(str, arguments)])
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
    out, err = (stream.buffer.getvalue().decode("utf-8", "replace") for stream in streams)
    return Answer(code, out, err)


def drawn(seed: int, number: int) -> random.Random:
    """Return what decides all of a try, so that each is repeated alone."""
    return random.Random(f"{seed}/{number}")


def carried_out(file: Path, wanted: Iterable[int], attempt: Callable[[int], Iterable[Try]]) -> Iterator[Try]:
    """Yield every try, those that the file has already included; the others are added to it, a line each, when they end."""
    before = read(file)
    yield from before
    done = {one.number for one in before}
    if file.exists():  # removes an incomplete last line, to which the next try would be appended
        whole = file.read_bytes()
        os.truncate(file, whole.rfind(b"\n") + 1)
    with file.open("a", encoding="utf-8") as lines:
        for number in wanted:
            for one in () if number in done else attempt(number):
                lines.write(json.dumps(asdict(one)) + "\n")
                yield one
            lines.flush()


def read(file: Path) -> list[Try]:
    """Read the tries that have ended; an incomplete last line counts as no try."""
    lines = file.read_text(encoding="utf-8").split("\n")[:-1] if file.exists() else []
    return [Try(**json.loads(line)) for line in lines]


def table(tries: Sequence[Try]) -> str:
    """Return the tries by door, and each that fell."""
    counts = Counter((door, bool(one.fell)) for one in tries for door in (one.door, ALL))
    doors = [*sorted({one.door for one in tries}), ALL]
    rows = [(door, counts[door, False], counts[door, True]) for door in doors]
    lines = ["| door | tries | held | fell |", "|---|---:|---:|---:|"]
    lines += [f"| {door} | {held + fell} | {held} | {fell} |" for door, held, fell in rows]
    lines += [f"fell: {one.number}, {one.kind}, {one.door}: {one.fell}" for one in tries if one.fell]
    return "\n".join(lines)
