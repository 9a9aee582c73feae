"""The verdict on a query that was restarted from what a crash left.

A query that writes each micro-batch by its id (``foreachBatch``) may get one twice, with the same rows
(https://spark.apache.org/docs/latest/streaming/apis-on-dataframes-and-datasets.html#foreachbatch). So after any crash it goes on with the
same rows, or it refuses with an error that says what is wrong; it never emits other rows, and loses none.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from conformance.core.observation import ErrorSeen, Observation
from conformance.core.wording import counted

CrashStatus: TypeAlias = Literal["continues", "refused", "unclear", "violates", "broken"]
"""``unclear``: it fails with an error that does not say what is wrong. ``broken``: there is no answer."""

Emitted: TypeAlias = Mapping[int, tuple[str, ...]]
"""Micro-batch → its rows as JSON, sorted."""

_ACCIDENTS = frozenset(
    {
        "ArrayIndexOutOfBoundsException",
        "AssertionError",
        "ClassCastException",
        "EOFException",
        "IndexOutOfBoundsException",
        "MatchError",
        "NegativeArraySizeException",
        "NoSuchElementException",
        "NullPointerException",
        "NumberFormatException",
        "StringIndexOutOfBoundsException",
        "UnsupportedOperationException",
    }
)
"""Exceptions of Java and Scala that say where a program stumbled, not what is wrong with a file."""


@dataclass(frozen=True)
class CrashVerdict:
    """What a query did with one image of a crash."""

    status: CrashStatus
    error: str = ""
    """The name of the error that ended it."""
    why: str = ""
    """For any status but ``continues``: in one line."""


class Restart:
    """What a sink has got when a query was restarted: from before the crash, and from after it.

    Args:
        before: the micro-batches that were emitted before.
        observation: of the restarted query.
    """

    def __init__(self, before: Emitted, observation: Observation) -> None:
        again: dict[int, tuple[str, ...]] = {}
        for step in observation.steps:
            again.update({batch.id: batch.behaviour.rows for batch in step.batches})
            if step.interrupted is not None:
                again[step.interrupted.id] = rows_as_json(step.interrupted.rows)
        self.error = observation.error
        self.again: Emitted = again
        self.emitted: Emitted = {**before, **again}
        self.changed = [id for id in sorted(again.keys() & before.keys()) if again[id] != before[id]]
        """Replays that emitted other rows than before."""


def rows_as_json(rows: Iterable[Sequence[object]]) -> tuple[str, ...]:
    """Rows in the form in which they are compared."""
    return tuple(sorted(json.dumps(row) for row in rows))


def judge_crash(restart: Restart, references: Sequence[Emitted]) -> CrashVerdict:
    """Judge what a query did with an image.

    Args:
        restart: what the sink got.
        references: what a sink gets without a crash: of the uninterrupted query first, then of one that was stopped and started between
            two micro-batches. There a query may leave out the micro-batch without rows that would have come next.
    """
    name = restart.error.name if restart.error is not None else ""
    wrong = _wrong(restart, references)
    if wrong:
        return CrashVerdict("violates", name, wrong)
    if restart.error is None:
        return CrashVerdict("continues")
    why = (restart.error.message.strip().splitlines() or [""])[0]
    return CrashVerdict("refused" if is_named(restart.error) else "unclear", name, why)


def is_named(error: ErrorSeen) -> bool:
    """Whether an error says what is wrong: it has an error condition of Spark, or a message that names a file or a micro-batch."""
    if error.name.isupper() or error.name not in _ACCIDENTS:
        return bool(error.name)
    return "/checkpoint/" in error.message


def _wrong(restart: Restart, references: Sequence[Emitted]) -> str:
    """What is wrong with the rows; empty if nothing is."""
    if restart.changed:
        id = restart.changed[0]
        return f"micro-batch {id} emitted other rows when it ran again: {_difference(restart.emitted[id], references[0].get(id, ()))}"
    if restart.error is not None:
        # It may stop early, but what it has emitted stays.
        bad = [id for id, rows in restart.again.items() if rows and all(rows != one.get(id) for one in references)]
        if not bad:
            return ""
        id = bad[0]
        return f"micro-batch {id} emitted other rows, then the query failed: {_difference(restart.emitted[id], references[0].get(id, ()))}"
    if any(_sequence(restart.emitted) == _sequence(one) for one in references):
        return ""
    closest = min(references, key=lambda one: len(_other(restart.emitted, one)))
    id = min(_other(restart.emitted, closest))
    return f"micro-batch {id}: {_difference(restart.emitted.get(id, ()), closest.get(id, ()))}"


def _sequence(emitted: Emitted) -> list[tuple[str, ...]]:
    """The micro-batches with rows, in order: one without rows may come or not."""
    return [rows for _, rows in sorted(emitted.items()) if rows]


def _other(one: Emitted, two: Emitted) -> list[int]:
    return [id for id in sorted({*one, *two}) if one.get(id, ()) != two.get(id, ())]


def _difference(found: Sequence[str], wanted: Sequence[str]) -> str:
    more, lacking = _minus(found, wanted), _minus(wanted, found)
    parts = [
        f"{counted(len(rows), 'row')} {what}: {rows[0]}" for rows, what in ((lacking, "lost"), (more, "added")) if rows
    ]
    return "; ".join(parts) or "the same rows in another order of micro-batches"


def _minus(one: Sequence[str], two: Sequence[str]) -> list[str]:
    return sorted((Counter(one) - Counter(two)).elements())
