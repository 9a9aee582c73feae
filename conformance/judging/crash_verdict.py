"""The verdict on a query that was restarted from what a crash left.

A query that writes each micro-batch by its id (``foreachBatch``) may get one twice, with the same rows
(https://spark.apache.org/docs/latest/streaming/apis-on-dataframes-and-datasets.html#foreachbatch). So after any crash it goes on with the
same rows, or it refuses with an error that says what is wrong; it never emits other rows, and loses none.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from conformance.core.observation import ErrorSeen, Observation
from conformance.core.wording import counted

CrashStatus: TypeAlias = Literal["continues", "refused", "unclear", "violates", "broken"]
"""``unclear``: it fails with an error that does not say what is wrong. ``broken``: there is no answer."""

Emitted: TypeAlias = Mapping[int, tuple[str, ...]]
"""Micro-batch → its rows as JSON, sorted."""


@dataclass(frozen=True)
class Reference:
    """What a sink gets without a crash."""

    emitted: Emitted
    stopped_after: frozenset[int] = frozenset()
    """The micro-batches before the point at which the query was stopped and started; empty if it ran without a break.

    A query that starts between two micro-batches may leave out the one without rows that would have come next.
    """

    def is_about(self, restart: Restart) -> bool:
        """Whether that point is not after the crash."""
        return self.stopped_after <= restart.before.keys()


_ACCIDENTS = frozenset(
    {
        "ArrayIndexOutOfBoundsException",
        "AssertionError",
        "ClassCastException",
        "EOFException",
        "IndexOutOfBoundsException",
        "JsonEOFException",
        "JsonParseException",
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
    """In one line; empty if it continues with the rows of the uninterrupted query."""


class Restart:
    """What a sink has got when a query was restarted: from before the crash, and from after it.

    Args:
        before: the micro-batches that were emitted before.
        observations: of the restarted query; several if it was restarted several times.
    """

    def __init__(self, before: Emitted, *observations: Observation) -> None:
        self.before = before
        self.error = observations[-1].error
        emitted = dict(before)
        again: dict[int, tuple[str, ...]] = {}
        changed: set[int] = set()
        for id, rows in _in_order(observations):
            changed |= {id} if emitted.get(id, rows) != rows else set()
            emitted[id] = again[id] = rows
        self.emitted: Emitted = emitted
        self.again: Emitted = again
        self.changed = sorted(changed)
        """Micro-batches that emitted other rows when they ran again."""


def _in_order(observations: Iterable[Observation]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Each micro-batch, committed or not, with its rows."""
    for observation in observations:
        for step in observation.steps:
            for batch in step.batches:
                yield batch.id, batch.behaviour.rows
            if step.interrupted is not None:
                yield step.interrupted.id, rows_as_json(step.interrupted.rows)


def rows_as_json(rows: Iterable[Sequence[object]]) -> tuple[str, ...]:
    """Rows in the form in which they are compared."""
    return tuple(sorted(json.dumps(row) for row in rows))


def judge_crash(restart: Restart, references: Sequence[Reference]) -> CrashVerdict:
    """Judge what a query did with an image.

    Args:
        restart: what the sink got.
        references: what a sink gets without a crash: of the uninterrupted query first.
    """
    name = restart.error.name if restart.error is not None else ""
    uninterrupted, *stopped = (one.emitted for one in references if one.is_about(restart))
    difference = _wrong(restart, uninterrupted)
    like_a_stop = bool(difference) and not all(_wrong(restart, one) for one in stopped)
    if difference and not like_a_stop:
        return CrashVerdict("violates", name, difference)
    if restart.error is None:
        return CrashVerdict(
            "continues", why=f"as after a stop between two micro-batches: {difference}" if difference else ""
        )
    why = (restart.error.message.strip().splitlines() or [""])[0]
    return CrashVerdict("refused" if is_named(restart.error) else "unclear", name, why)


def is_named(error: ErrorSeen) -> bool:
    """Whether an error says what is wrong: it has an error condition of Spark, or a message that names a file or a micro-batch."""
    if error.name.isupper() or error.name not in _ACCIDENTS:
        return bool(error.name)
    return "/checkpoint/" in error.message


def _wrong(restart: Restart, reference: Emitted) -> str:
    """How the rows are other than those of the reference; empty if they are not."""
    if restart.changed:
        id = restart.changed[0]
        return f"micro-batch {id} emitted other rows when it ran again: {_difference(restart, reference, id)}"
    if restart.error is not None:
        # It may stop early, but what it has emitted stays.
        other = [id for id, rows in sorted(restart.again.items()) if rows and rows != reference.get(id)]
        return (
            f"micro-batch {other[0]}, then the query failed: {_difference(restart, reference, other[0])}"
            if other
            else ""
        )
    if _sequence(restart.emitted) == _sequence(reference):
        return ""
    ids = sorted({*restart.emitted, *reference})
    id = next(id for id in ids if restart.emitted.get(id, ()) != reference.get(id, ()))
    return f"micro-batch {id}: {_difference(restart, reference, id)}"


def _sequence(emitted: Emitted) -> list[tuple[str, ...]]:
    """The micro-batches with rows, in order: one without rows may come or not."""
    return [rows for _, rows in sorted(emitted.items()) if rows]


def _difference(restart: Restart, reference: Emitted, id: int) -> str:
    found, wanted = restart.emitted.get(id, ()), reference.get(id, ())
    sides = ((_minus(wanted, found), "lost"), (_minus(found, wanted), "added"))
    return "; ".join(f"{counted(len(rows), 'row')} {what}: {rows[0]}" for rows, what in sides if rows)


def _minus(one: Sequence[str], two: Sequence[str]) -> list[str]:
    return sorted((Counter(one) - Counter(two)).elements())
