"""The verdict on a checkpoint: what a query did when an engine resumed it.

Every command that has a checkpoint resumed asks here: on another version (``upgrade``, ``check``, ``checkpoint resume``) and after a
crash (``crash``). What a case expects of an upgrade is judged on top of it: `conformance.judging.handoff_verdict`.

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
from conformance.judging.divergence import divergences

Outcome: TypeAlias = Literal["resumed", "other rows", "refused", "fails later", "unclear", "no answer"]
"""What became of a checkpoint.

- ``resumed``: the query went on, with the same rows as the query it is compared with, if there is one.
- ``other rows``: it went on with other rows, or lost some.
- ``refused``: it ended before any micro-batch, with an error that says what is wrong.
- ``fails later``: it ended with such an error after a micro-batch, or the author's own code failed.
- ``unclear``: it ended, at any time, with an error that does not say what is wrong.
- ``no answer``: nothing ran that would tell.
"""

Emitted: TypeAlias = Mapping[int, tuple[str, ...]]
"""Micro-batch → its rows as JSON, sorted."""


@dataclass(frozen=True)
class CheckpointVerdict:
    """What a query did with a checkpoint."""

    outcome: Outcome
    error: ErrorSeen | None = None
    """The error that ended the query."""
    difference: str = ""
    """Where its rows differ first from those of the query it is compared with; if it resumed, the difference is allowed."""
    batch: int | None = None
    """The micro-batch that differs or, before an error, the last one that ran; None if none did."""
    reason: str = ""
    """Why there is no answer."""
    fails_anyway: bool = False
    """Whether the query ends with an error also when the version that wrote the checkpoint resumes it."""

    @property
    def why(self) -> str:
        """The verdict's reason in one line: the difference, the error's first line, or why there is no answer."""
        message = self.error.message.strip().splitlines()[:1] if self.error is not None else []
        return self.difference or "".join(message) or self.reason


def resumed_at(
    cut: int, seen: Observation | None, restarted: Observation | None = None, reason: str | None = None
) -> CheckpointVerdict:
    """Judge what a query did with a checkpoint.

    Args:
        cut: the number of the step before which the checkpoint was resumed.
        seen: what the engine did that resumed it; None without an answer.
        restarted: what the version that wrote it did with the same checkpoint; None if the two are not compared.
        reason: why there is no answer.
    """
    if seen is None:
        return CheckpointVerdict("no answer", reason=reason or "")
    last = next((batch.id for step in reversed(seen.steps) if step.number >= cut for batch in step.batches[::-1]), None)
    fails_anyway = restarted is not None and restarted.error is not None
    if seen.error is not None:
        return CheckpointVerdict(_failed(seen.error, last), seen.error, batch=last, fails_anyway=fails_anyway)
    if restarted is None:
        if last is None:
            return CheckpointVerdict("no answer", reason="no micro-batch ran, so the state was not read")
        return CheckpointVerdict("resumed", batch=last)
    other = (place for place in divergences(restarted, seen) if place.what in ("rows", "steps", "error"))
    first = next(other, None)
    if first is None:
        return CheckpointVerdict("resumed", batch=last)
    # Of a query that fails where it was, any end is as good.
    return CheckpointVerdict("resumed" if fails_anyway else "other rows", difference=str(first), batch=first.batch)


def _failed(error: ErrorSeen, last: int | None) -> Outcome:
    """The outcome of a query that an error ended; ``last``: the last micro-batch that ran before."""
    if error.own_code is None and not is_named(error):
        return "unclear"
    return "refused" if last is None and error.own_code is None else "fails later"


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
                yield step.interrupted.id, tuple(sorted(json.dumps(row) for row in step.interrupted.rows))


def judge_crash(restart: Restart, references: Sequence[Reference]) -> CheckpointVerdict:
    """Judge what a query did with what a crash left.

    Args:
        restart: what the sink got.
        references: what a sink gets without a crash: of the uninterrupted query first.
    """
    error, last = restart.error, max(restart.again, default=None)
    uninterrupted, *stopped = (reference.emitted for reference in references if reference.is_about(restart))
    different = _difference(restart, uninterrupted)
    like_a_stop = different is not None and not all(_difference(restart, emitted) for emitted in stopped)
    if different is not None and not like_a_stop:
        return CheckpointVerdict("other rows", error, different[1], different[0])
    if error is not None:
        return CheckpointVerdict(_failed(error, last), error, batch=last)
    return CheckpointVerdict(
        "resumed",
        difference=f"as after a stop between two micro-batches: {different[1]}" if different is not None else "",
        batch=last,
    )


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


def is_named(error: ErrorSeen) -> bool:
    """Whether an error says what is wrong: it has an error condition of Spark, or a message that names a file or a micro-batch."""
    if error.name.isupper() or error.name not in _ACCIDENTS:
        return bool(error.name)
    return "/checkpoint/" in error.message


def _difference(restart: Restart, reference: Emitted) -> tuple[int, str] | None:
    """The first micro-batch whose rows are other than those of the reference, and how; None if there is none."""
    if restart.changed:
        id = restart.changed[0]
        return id, f"micro-batch {id} emitted other rows when it ran again: {_rows(restart, reference, id)}"
    if restart.error is not None:
        # It may stop early, but what it has emitted stays.
        for id, rows in sorted(restart.again.items()):
            if rows and rows != reference.get(id):
                return id, f"micro-batch {id}, then the query failed: {_rows(restart, reference, id)}"
        return None
    if _sequence(restart.emitted) == _sequence(reference):
        return None
    ids = sorted({*restart.emitted, *reference})
    id = next(id for id in ids if restart.emitted.get(id, ()) != reference.get(id, ()))
    return id, f"micro-batch {id}: {_rows(restart, reference, id)}"


def _sequence(emitted: Emitted) -> list[tuple[str, ...]]:
    """The micro-batches with rows, in order: one without rows may come or not."""
    return [rows for _, rows in sorted(emitted.items()) if rows]


def _rows(restart: Restart, reference: Emitted, id: int) -> str:
    """``1 row lost: ["a"]; 1 row added: ["b"]``"""
    emitted, wanted = Counter(restart.emitted.get(id, ())), Counter(reference.get(id, ()))
    sides = ((sorted((wanted - emitted).elements()), "lost"), (sorted((emitted - wanted).elements()), "added"))
    return "; ".join(f"{counted(len(rows), 'row')} {what}: {rows[0]}" for rows, what in sides if rows)
