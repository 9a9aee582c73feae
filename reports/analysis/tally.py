"""The numbers about two versions as a table that adds up: where a page or the gate shows a number, it is that of a row."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Sized
from typing import Literal, NamedTuple

from conformance.core.observation import FrozenRecord
from conformance.judging.comparison import MEANINGS
from conformance.suite.conditions import Condition, ConditionKind, counts
from reports.analysis.change import Changes
from reports.analysis.checkpoints import Checkpoints
from reports.analysis.gate import Passing, Ruling
from reports.results.checkpoint_status import NORMAL, WORST_FIRST, Colour, colour_of, mark_of
from reports.results.records import Cell


class TallyRow(FrozenRecord):
    """A number, and the rows and the conditions that it is the sum of."""

    name: str
    count: int
    conditions: dict[ConditionKind, int]
    """The number of changes by condition; empty in a row that counts no changes."""
    gate: dict[Passing | Literal["fixed"], int]
    """The number of changes by what the gate decides; empty in a row that counts no changes of cases."""
    parts: tuple["TallyRow", ...]

    def rows(self, depth: int = 0) -> Iterator[tuple[int, "TallyRow"]]:
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
    in_order = (*NORMAL, *WORST_FIRST)
    cells = sorted(known.cells, key=lambda cell: in_order.index(colour_of(cell.status, cell.outcome)))
    return _row("checkpoints", [_checkpoint(known, cell) for cell in cells])


_NOT_SO = "tried", "do not resume so"
_PATHS: Mapping[Colour, tuple[str, ...]] = {
    "not-run": ("not tried", "not run"),
    "not-applicable": ("not tried", "no checkpoint between these versions"),
    "conforms": ("tried", "resume as if the version had not changed"),
    "refused": (*_NOT_SO, "refused"),
    "unsupported": (*_NOT_SO, "refused"),
    "differs": (*_NOT_SO, "resume with other results"),
}


def _checkpoint(known: Checkpoints, cell: Cell) -> _Counted:
    colour, change, entry = colour_of(cell.status, cell.outcome), known.change(cell), cell.differs
    if colour in NORMAL:
        return _Counted((*_PATHS[colour], *cell.notes[:1]) if colour == "not-run" else _PATHS[colour])
    if colour not in _PATHS:
        return _Counted((*_NOT_SO, mark_of(cell.status, cell.outcome).word), change.condition)
    if colour == "differs":
        why = f"other {', '.join(change.differs_in) or 'results'}"
    else:
        why = entry.reason if entry is not None else "no case says why"
        why += f"; {entry.workaround} helps" if entry is not None and entry.proven else ""
    return _Counted((*_PATHS[colour], why), change.condition)


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
