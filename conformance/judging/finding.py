"""Findings: what is not as expected, as values that carry their data and render themselves as plain text.

Values inside a finding are JSON in the notation of the case language (an instant is ``12:05``), readable by people and by
programs.
"""

import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field

from conformance.core.case import Case, ErrorStage
from conformance.core.data import Json
from conformance.core.observation import ErrorSeen, FrozenRecord
from conformance.core.wording import counted, shortened

ErrorPart: TypeAlias = Literal["class", "message", "stage"]
Section: TypeAlias = Literal["differs", "upgrades"]
"""The key of a case under which an entry is."""
Evidence: TypeAlias = Literal["progress", "commit log of the batch before", "data source statestore"]
Cells: TypeAlias = tuple[Json, ...]

INDENT = "  "
LONGEST_NAME = 72
LINES_OF_A_MESSAGE = 4
ROWS_THAT_DIFFER = 20
ROWS_THAT_AGREE = 5
MOST_PAIRS = 250_000
MISSING, EXTRA = "- ", "+ "


class FindingLocation(FrozenRecord):
    """The step and the micro-batches that a finding is about."""

    file: str
    line: int | None
    """None if the case was not read from a file."""
    step: int | None
    """None for a ``differs`` entry or the whole case."""
    name: str | None = None
    batches: tuple[int, ...] = ()

    @classmethod
    def of_step(cls, case: Case, number: int, batches: tuple[int, ...] = ()) -> Self:
        name = case.steps[number - 1].name if number <= len(case.steps) else None
        line = case.lines.get(f"steps.{number}")
        return cls(file=case.file, line=line, step=number, name=name, batches=batches)

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        if self.step is None:
            return where
        name = f' "{textwrap.shorten(self.name, LONGEST_NAME, placeholder="…")}"' if self.name else ""
        ids = ", ".join(str(id_) for id_ in self.batches)
        batches = f", micro-batch{'es' if len(self.batches) > 1 else ''} {ids}" if ids else ""
        return f"step {self.step}{name} ({where}){batches}"


class _Finding(FrozenRecord):
    place: FindingLocation

    def body(self) -> Iterator[str]:
        raise NotImplementedError

    def describe(self) -> str:
        """Location and body as plain text, without a final newline."""
        return "\n".join([str(self.place), *(INDENT + line for line in self.body())])


class ExtraRow(FrozenRecord):
    cells: Cells
    batch: int | None


class RowsDiffer(_Finding):
    """The emitted rows are not the expected ones; duplicates are listed as often as they occur."""

    kind: Literal["rows"] = "rows"
    aspect: Literal["rows"] = "rows"
    columns: tuple[str, ...]
    missing: tuple[Cells, ...]
    extra: tuple[ExtraRow, ...]
    common: tuple[Cells, ...]

    @property
    def expected(self) -> tuple[Cells, ...]:
        return (*self.common, *self.missing)

    @property
    def observed(self) -> tuple[Cells, ...]:
        return (*self.common, *(row.cells for row in self.extra))

    def body(self) -> Iterator[str]:
        yield "rows"
        differing = list(self._differing())
        agreeing = [("  ", row, "") for row in sorted(self.common, key=_order)]
        shown = differing[:ROWS_THAT_DIFFER] + agreeing[:ROWS_THAT_AGREE]
        table = [("  ", [*self.columns], ""), *((sign, [*map(cell, row)], word) for sign, row, word in shown)]
        yield from (INDENT + line for line in _aligned(table, _numeric([row for _, row, _ in shown])))
        hidden = differing[ROWS_THAT_DIFFER:]
        for sign, words in ((MISSING, "expected, not emitted"), (EXTRA, "emitted, not expected")):
            if count := sum(1 for line in hidden if line[0] == sign):
                yield f"{INDENT}… {count} more {words}"
        if len(agreeing) > ROWS_THAT_AGREE:
            yield f"{INDENT}… {len(agreeing) - ROWS_THAT_AGREE} more as expected"

    def _differing(self) -> Iterator[tuple[str, Cells, str]]:
        """Sign, row and words of each missing row, then of the extra row with the most equal cells; at last the other extra rows."""
        extra = sorted(self.extra, key=lambda row: _order(row.cells))
        pairing = len(self.missing) * len(extra) <= MOST_PAIRS
        for missing in sorted(self.missing, key=_order):
            yield MISSING, missing, "expected, not emitted"
            instead = max(extra, key=lambda row: _shared(row.cells, missing), default=None) if pairing else None
            if instead is not None and _shared(instead.cells, missing):
                extra.remove(instead)
                yield EXTRA, instead.cells, self._emitted(instead)
        for row in extra:
            yield EXTRA, row.cells, self._emitted(row)

    def _emitted(self, row: ExtraRow) -> str:
        several = len(self.place.batches) > 1 and row.batch is not None
        return "emitted, not expected" + (f" (micro-batch {row.batch})" if several else "")


class ValueDiffers(_Finding):
    """A value is not the expected one."""

    kind: Literal["value"] = "value"
    aspect: str
    expected: Json
    observed: Json
    because: str | None = None

    def body(self) -> Iterator[str]:
        yield f"{self.aspect}: expected {cell(self.expected)}, observed {cell(self.observed)}"
        if self.because:
            yield INDENT + self.because


class NotOfTheType(_Finding):
    """The case expects a row that the query cannot emit: a value has the wrong type, or the row has the wrong width."""

    kind: Literal["not of the type"] = "not of the type"
    aspect: Literal["rows"] = "rows"
    expected: Json
    observed: tuple[str, ...]
    problem: str

    def body(self) -> Iterator[str]:
        yield f"rows: {cell(self.expected)} does not match the output columns: {self.problem}"
        yield f"{INDENT}the query emits {', '.join(self.observed)}"


class PlanDiffers(_Finding):
    """A regular expression does not match the plan."""

    kind: Literal["plan"] = "plan"
    aspect: Literal["plan"] = "plan"
    expected: str
    observed: str

    def body(self) -> Iterator[str]:
        yield f"plan: /{self.expected}/ is not found in the plan:"
        yield from _first(12, self.observed.strip().splitlines(), 110)


class ErrorExpectedAs(FrozenRecord):
    """An expected error, as the case states it."""

    classes: tuple[str, ...] = ()
    message: str | None = None
    stage: ErrorStage | None = None

    def __str__(self) -> str:
        classes = " or ".join(self.classes) or "an error"
        stage = f" at {self.stage}" if self.stage else ""
        return classes + stage + (f" with a message matching /{self.message}/" if self.message else "")


class ErrorDiffers(_Finding):
    """An unexpected error, a different error than expected, or no error where one was expected."""

    kind: Literal["error"] = "error"
    aspect: Literal["error"] = "error"
    expected: ErrorExpectedAs | None
    observed: ErrorSeen | None
    mismatches: tuple[ErrorPart, ...] = ()
    unreached: tuple[int, ...] = ()
    """The steps that did not run because of the error."""

    def body(self) -> Iterator[str]:
        yield f"error: expected {self.expected or 'none'}, observed {self._observed()}"
        if self.mismatches:
            yield f"{INDENT}not as expected: {', '.join(self.mismatches)}"
        if self.observed is not None:
            yield from _first(LINES_OF_A_MESSAGE, self.observed.reason, 160)
        if self.unreached:
            last = f"–{self.unreached[-1]}" if len(self.unreached) > 1 else ""
            yield f"{INDENT}step{'s' if last else ''} {self.unreached[0]}{last} not reached"

    def _observed(self) -> str:
        if self.observed is None:
            return "none"
        return f"{' < '.join(self.observed.classes) or 'an error without a class'} at {self.observed.stage}"


class StaleEntry(_Finding):
    """An entry of ``differs`` or ``upgrades`` documents a difference that does not occur."""

    kind: Literal["stale"] = "stale"
    aspect: Section = "differs"
    spark: str
    expected: str
    observed: str

    def body(self) -> Iterator[str]:
        yield f"stale {self.aspect} entry for {self.spark}: {self.observed}"
        yield f"{INDENT}the entry says: {self.expected}"


class EvidenceDisagrees(_Finding):
    """Independent sources disagree on the watermark of a micro-batch, or on the state after it."""

    kind: Literal["evidence"] = "evidence"
    aspect: Literal["watermark", "state"] = "watermark"
    expected: Json
    """The watermark in the checkpoint's offset log; the state rows of each operator in the progress."""
    observed: Json
    evidence: Evidence

    def body(self) -> Iterator[str]:
        source = "the progress says" if self.aspect == "state" else "the offset log says the batch ran with"
        yield f"{self.aspect}: {source} {cell(self.expected)}, the {self.evidence} says {cell(self.observed)}"


class ReplayDiffers(_Finding):
    """A micro-batch emitted different rows when it ran again after a kill: rows are lost or duplicated."""

    kind: Literal["replay"] = "replay"
    aspect: Literal["rows"] = "rows"
    expected: tuple[Cells, ...]
    """The rows before the kill, as the engine encodes them."""
    observed: tuple[Cells, ...]

    def body(self) -> Iterator[str]:
        yield "rows: a micro-batch that runs again after a kill must emit the same rows"
        yield f"{INDENT}before: {cell([list(row) for row in self.expected])}"
        yield f"{INDENT}again:  {cell([list(row) for row in self.observed])}"


Finding: TypeAlias = Annotated[
    RowsDiffer
    | ValueDiffers
    | NotOfTheType
    | PlanDiffers
    | ErrorDiffers
    | StaleEntry
    | EvidenceDisagrees
    | ReplayDiffers,
    Field(discriminator="kind"),
]


def described(findings: Iterable[Finding]) -> Iterator[str]:
    """The findings as lines of plain text, grouped by location."""
    for place, here in groupby(findings, key=lambda finding: finding.place):
        yield str(place)
        for finding in here:
            yield from (INDENT + line for line in finding.body())


def cell(value: Json) -> str:
    """A value as YAML in one line, with quotes only where needed."""
    if isinstance(value, str):
        return value if _plain(value) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(cell(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {cell(item)}' for key, item in value.items())}}}"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return str(value)


def _plain(text: str) -> bool:
    if not text or text != text.strip() or text in ("null", "true", "false") or {*'|[]{},"\n\t'} & {*text}:
        return False
    try:
        float(text)
    except ValueError:
        return True
    return text in ("NaN", "Infinity", "-Infinity")


def _order(row: Cells) -> tuple[tuple[int, float, str], ...]:
    """Rows by their cells: null first, then numbers by value, then text."""
    return tuple(
        (1, float(value), "") if isinstance(value, (int, float)) else (0 if value is None else 2, 0.0, cell(value))
        for value in row
    )


def _shared(row: Cells, other: Cells) -> int:
    return sum(a == b for a, b in zip(row, other, strict=False))


def _numeric(rows: list[Cells]) -> set[int]:
    width = max((len(row) for row in rows), default=0)
    columns = ([row[at] for row in rows if at < len(row) and row[at] is not None] for at in range(width))
    return {at for at, values in enumerate(columns) if values and {*map(type, values)} <= {int, float}}


def _aligned(table: list[tuple[str, list[str], str]], numeric: set[int]) -> Iterator[str]:
    """Lines with the sign, the cells in columns, and the words in a last column."""
    width = max(len(cells) for _, cells, _ in table)
    widths = [max((len(cells[at]) for _, cells, _ in table if at < len(cells)), default=0) for at in range(width)]
    rows = [
        " | ".join(text.rjust(widths[at]) if at in numeric else text.ljust(widths[at]) for at, text in enumerate(cells))
        for _, cells, _ in table
    ]
    longest = max(len(row) for row in rows)
    for (sign, _, word), row in zip(table, rows, strict=True):
        yield f"{sign}{row.ljust(longest)}   {word}".rstrip()


def _first(most: int, lines: Sequence[str], width: int) -> Iterator[str]:
    for line in lines[:most]:
        yield INDENT + shortened(line, width)
    if len(lines) > most:
        yield f"{INDENT}… {counted(len(lines) - most, 'more line')}"
