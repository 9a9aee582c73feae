"""The numbers about two versions as a table that adds up: where a page or the gate shows a number, it is that of a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Sized
from typing import Literal, NamedTuple

from conformance.core.observation import FrozenRecord
from conformance.judging.comparison import MEANINGS
from conformance.suite.conditions import KINDS, Condition, ConditionKind, counts
from reports.analysis.change import Changes
from reports.analysis.checkpoints import Checkpoints
from reports.analysis.gate import WORDS, Passing, Ruling
from reports.results.checkpoint_status import WORST_FIRST, colour_of, mark_of
from reports.results.records import Cell


class TallyRow(FrozenRecord):
    """A number, and the rows and the conditions that it is the sum of."""

    name: str
    count: int
    conditions: dict[ConditionKind, int]
    """Under which condition a job meets what is counted; empty for what is no change."""
    gate: dict[Passing | Literal["fixed"], int]
    """What the gate says of the changes that are counted; empty for what is no change of a case."""
    parts: tuple[TallyRow, ...]

    @property
    def kinds(self) -> tuple[ConditionKind, ...]:
        """The kinds of condition that any of its rows counts."""
        return tuple(kind for kind in KINDS if any(row.conditions.get(kind) for _, row in self.rows()))

    @property
    def words(self) -> tuple[Passing | Literal["fixed"], ...]:
        """The words of the gate that any of its rows counts."""
        return tuple(word for word in WORDS if any(word in row.gate for _, row in self.rows()))

    def rows(self, depth: int = 0) -> Iterator[tuple[int, TallyRow]]:
        """Yield it and all its parts, each with its depth."""
        yield depth, self
        for row in self.parts:
            yield from row.rows(depth + 1)


class _Counted(NamedTuple):
    path: tuple[str, ...]
    """The names of the rows that count it, below the first."""
    condition: Condition | None = None
    word: Passing | Literal["fixed"] | None = None


def tally_of_cases(pair: Changes, rulings: Sequence[Ruling], left_out: Sized = ()) -> TallyRow:
    """Count each case of the results; ``left_out``: the cases that are not among them, as a version has no answer to them."""
    others = Counter({cell.case: f"without a result: {cell.why}" for cell in reversed(pair.missing)}.values())
    others.update({"not about both versions": len(pair.outside), "left out": len(left_out)})
    changed = "change rows or fail", "change only what Spark accepts or reports"
    ruled = ((changed[not ruling.change.of_rows], MEANINGS[ruling.change.meaning].title, ruling) for ruling in rulings)
    return _row(
        "cases",
        [
            *(_Counted(("compared", "the same")) for _ in pair.same),
            *(_Counted(("compared", "changes", *path), ruling.condition, ruling.word) for *path, ruling in ruled),
            *(_Counted(("not compared", why)) for why in others.elements()),
        ],
    )


def tally_of_checkpoints(known: Checkpoints) -> TallyRow:
    """Count each checkpoint that was tried, or that the results announce."""
    cells = sorted(known.cells, key=lambda cell: WORST_FIRST.index(colour_of(cell.status, cell.outcome)))
    return _row("checkpoints", [_checkpoint(known, cell) for cell in cells])


_NOT_SO = "do not resume so"


def _checkpoint(known: Checkpoints, cell: Cell) -> _Counted:
    change, entry = known.change(cell), cell.differs
    match colour_of(cell.status, cell.outcome):
        case "not-run":
            return _Counted(("not tried", "not run"))
        case "not-applicable":
            return _Counted(("not tried", "no checkpoint between these versions"))
        case "conforms":
            return _Counted(("tried", "resume as if the version had not changed"))
        case "refused" | "unsupported":
            helps = f"; {entry.workaround} helps" if entry is not None and entry.proven else ""
            return _Counted(
                ("tried", _NOT_SO, "refused", f"{entry.reason if entry else cell.status}{helps}"), change.condition
            )
        case "differs":
            what = f"other {', '.join(change.differs_in) or 'results'}"
            return _Counted(("tried", _NOT_SO, "resume with other results", what), change.condition)
    return _Counted(("tried", _NOT_SO, mark_of(cell.status, cell.outcome).word), change.condition)


def _row(name: str, counted: Sequence[_Counted]) -> TallyRow:
    parts: dict[str, list[_Counted]] = {}
    for one in counted:
        if one.path:
            parts.setdefault(one.path[0], []).append(one._replace(path=one.path[1:]))
    conditions = [one.condition for one in counted if one.condition is not None]
    words = Counter(one.word for one in counted if one.word is not None)
    return TallyRow(
        name=name,
        count=len(counted),
        conditions=dict(counts(conditions)) if len(conditions) == len(counted) else {},
        gate=dict(words) if words.total() == len(counted) else {},
        parts=tuple(_row(*part) for part in parts.items()),
    )
