"""The verdict on a checkpoint: what a query did when an engine resumed it.

Every command that has a checkpoint resumed asks here. `resumed_at` judges a query by another query (``check``, ``checkpoint resume``),
`judge_crash` by what a sink gets without a crash (``crash``), and `judge_upgrade` by what a case expects (``upgrade``).

A query that writes each micro-batch by its id (``foreachBatch``) may get one twice, with the same rows
(https://spark.apache.org/docs/latest/streaming/apis-on-dataframes-and-datasets.html#foreachbatch). So after any crash it goes on with the
same rows, or it refuses with an error that says what is wrong; it never emits other rows, and loses none.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from conformance.checkpoints.state import StateDifference, state_differences
from conformance.core.case import CLASSIC, Add, Backlog, Case, Expectation, Interfaces, Restart, Upgrade
from conformance.core.observation import EmittedRow, ErrorSeen, Observation
from conformance.core.patterns import PatternTooSlow
from conformance.core.versions import SparkVersion
from conformance.core.wording import counted
from conformance.judging import verdict as cell_verdict
from conformance.judging.comparison import divergences, only_moved
from conformance.judging.consistency import behaviour
from conformance.judging.expected import NotApplicable, Steps, Unsupported, expected, overlaid, until_the_end
from conformance.judging.finding import StaleEntry
from conformance.judging.verdict import Outcome, Verdict, as_documented, compare_steps, lacks_the_feature, no_answer

RowsByBatch: TypeAlias = Mapping[int, tuple[str, ...]]
"""Micro-batch → its rows as JSON, sorted."""


@dataclass(frozen=True)
class CheckpointVerdict:
    """What a query did with one checkpoint, compared with another run of it: no case says what to expect, so that it has an outcome and no
    status, unlike the ``Verdict`` on a cell."""

    outcome: Outcome
    error: ErrorSeen | None = None
    difference: str = ""
    """Where its rows differ first from those of the query it is compared with; if it resumed, the difference is allowed."""
    batch: int | None = None
    """The micro-batch that differs or, before an error, the last one that ran; None if none did."""
    reason: str = ""
    moved: str = ""
    """Which rows come later or earlier, if nothing else about the rows differs: ``2 rows later``."""
    fails_anyway: bool = False
    """Whether the query ends with an error also on the version that wrote the checkpoint."""

    @property
    def why(self) -> str:
        """Why the outcome is what it is: the first difference, the first line of the error, or the reason for no answer."""
        message = self.error.first_line if self.error is not None else ""
        return self.difference or message or self.reason

    @property
    def differences(self) -> tuple[StateDifference, ...]:
        """The columns of the state for which the checkpoint was refused; empty if it was not, or for another reason."""
        return state_differences(self.error.message) if self.error is not None else ()


def with_same_reason(verdicts: Mapping[int, CheckpointVerdict]) -> dict[tuple[int, ...], CheckpointVerdict]:
    """Put steps together before which checkpoints have the same outcome, error and reason, with the verdict on the first of them."""
    groups: dict[tuple[Outcome | None, tuple[str, ...]], list[int]] = {}
    for cut, verdict in verdicts.items():
        error = (verdict.error.title,) if verdict.error is not None else (verdict.reason,)
        outcome = None if verdict.fails_anyway else verdict.outcome  # ways to fail are alike where it fails anyway
        groups.setdefault((outcome, (*error, *map(str, verdict.differences))), []).append(cut)
    return {tuple(steps): verdicts[steps[0]] for steps in groups.values()}


def resumed_at(
    cut: int,
    seen: Observation | None,
    restarted: Observation | None = None,
    reason: str | None = None,
    whole: Observation | None = None,
) -> CheckpointVerdict:
    """Judge what a query did with a checkpoint.

    Args:
        cut: the number of the step before which the checkpoint was resumed.
        seen: what the engine that resumed it did; None without an answer.
        restarted: what the version that wrote it did with the same checkpoint; None if the two are not compared.
        reason: why there is no answer.
        whole: what the version that resumed it does with the whole query, without a checkpoint. An error that ends it there, too, such as
            that of a row, is no refusal.
    """
    if seen is None:
        return CheckpointVerdict("no answer", reason=reason or "")
    last = next((batch.id for step in reversed(seen.steps) if step.number >= cut for batch in step.batches[::-1]), None)
    fails_anyway = restarted is not None and restarted.error is not None
    if seen.error is not None:
        outcome = _failed(seen.error, last)
        if outcome == "refused" and whole is not None and whole.error and whole.error.name == seen.error.name:
            outcome = "fails later"
        return CheckpointVerdict(outcome, seen.error, batch=last, fails_anyway=fails_anyway)
    if restarted is None:
        if last is None:
            return CheckpointVerdict("no answer", reason="no micro-batch ran, so the state was not read")
        return CheckpointVerdict("resumed", batch=last)
    first = next((place for place in divergences(restarted, seen) if place.what in ("rows", "steps", "error")), None)
    if first is None:
        return CheckpointVerdict("resumed", batch=last)
    if fails_anyway:  # of a query that fails where it was, any end is as good
        return CheckpointVerdict("resumed", difference=str(first), batch=first.batch)
    moved = only_moved(restarted, seen) or ""
    return CheckpointVerdict("other rows", difference=str(first), batch=first.batch, moved=moved)


def _failed(error: ErrorSeen, last: int | None) -> Outcome:
    """The outcome of a query that an error ended; ``last``: the last micro-batch that ran before."""
    if error.own_code is None and not is_named(error):
        return "unclear"
    return "refused" if last is None and error.own_code is None else "fails later"


@dataclass(frozen=True)
class SinkReference:
    """What a sink gets without a crash."""

    emitted: RowsByBatch
    stopped_after: frozenset[int] = frozenset()
    """The micro-batches before the point at which the query was stopped and started; empty if it ran without a break.

    A query that starts between two micro-batches may leave out the one without rows that would have come next.
    """


ROWS_CHANGED = "RowsChanged"
"""The error of the driver (``harness/driver/sinks.py``) that finds other rows in a sink than before."""


class Restarted:
    """What a sink has got when a query was restarted: ``before`` the crash, and from the observations of each restart.

    ``first``: of a query with a sink of Spark's own, the first micro-batch that counts; then a reader of the sink finds the rows.
    """

    def __init__(self, before: RowsByBatch, *observations: Observation, first: int | None = None) -> None:
        self.before = before
        self.error = observations[-1].error
        emitted = dict(before)
        again: dict[int, tuple[str, ...]] = {}
        changed: set[int] = set()
        for id, rows in _in_order(observations):
            changed |= {id} if emitted.get(id, rows) != rows else set()
            emitted[id] = again[id] = rows
        written = observations[-1].steps[-1].written if self.error is None and first is not None else None
        self.in_a_sink = written is not None
        """Whether ``emitted`` is what a reader finds in a sink."""
        if first is not None and written is not None:
            emitted = {batch.id: _sorted(batch.rows) for batch in written if batch.id >= first}
        self.emitted: RowsByBatch = emitted
        self.again: RowsByBatch = again
        self.changed = sorted(changed)
        """Micro-batches that emitted other rows when they ran again."""


def _in_order(observations: Iterable[Observation]) -> Iterator[tuple[int, tuple[str, ...]]]:
    for observation in observations:
        for step in observation.steps:
            for batch in step.batches:
                yield batch.id, batch.behaviour.rows
            if step.interrupted is not None:
                yield step.interrupted.id, _sorted(step.interrupted.rows)


def _sorted(rows: Iterable[EmittedRow]) -> tuple[str, ...]:
    return tuple(sorted(json.dumps(row) for row in rows))


def judge_crash(restart: Restarted, references: Sequence[SinkReference]) -> CheckpointVerdict:
    """Judge what a query did with what a crash left; ``references`` is what a sink gets without one, of the uninterrupted query first."""
    error, last = restart.error, max(restart.again, default=None)
    if error is not None and error.name == ROWS_CHANGED:
        return CheckpointVerdict("other rows", error, error.message, last)
    # A query that was stopped after the crash says nothing about this one.
    uninterrupted, *stopped = (
        reference.emitted for reference in references if reference.stopped_after <= restart.before.keys()
    )
    different = _difference(restart, uninterrupted)
    if different is not None and restart.in_a_sink and _all_rows(restart.emitted) == _all_rows(uninterrupted):
        text = f"the sink has each row once, some in another micro-batch than without a crash: {different[1]}"
        return CheckpointVerdict("resumed", difference=text, batch=last)
    like_a_stop = different is not None and not all(_difference(restart, emitted) for emitted in stopped)
    if different is not None and not like_a_stop:
        return CheckpointVerdict("other rows", error, different[1], different[0])
    if error is not None:
        return CheckpointVerdict(_failed(error, last), error, batch=last)
    text = f"as after a stop between two micro-batches: {different[1]}" if different is not None else ""
    return CheckpointVerdict("resumed", difference=text, batch=last)


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
    """Whether an error says what is wrong: it has an error condition of Spark, a message that names a file or a micro-batch, or the
    sentence of an assertion."""
    if error.name.isupper() or error.name not in _ACCIDENTS:
        return bool(error.name)
    if error.name == "AssertionError" and re.search(r"\w \w", error.first_line.removeprefix("assertion failed")):
        return True
    return "/checkpoint/" in error.message or "/sink/" in error.message


def _difference(restart: Restarted, reference: RowsByBatch) -> tuple[int, str] | None:
    """The first micro-batch with other rows than the reference, and how they differ."""
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


def _sequence(emitted: RowsByBatch) -> list[tuple[str, ...]]:
    """The micro-batches with rows, in order: whether one without rows runs does not matter."""
    return [rows for _, rows in sorted(emitted.items()) if rows]


def _all_rows(emitted: RowsByBatch) -> Counter[str]:
    return Counter(row for rows in emitted.values() for row in rows)


def _rows(restart: Restarted, reference: RowsByBatch, id: int) -> str:
    emitted, wanted = Counter(restart.emitted.get(id, ())), Counter(reference.get(id, ()))
    sides = ((sorted((wanted - emitted).elements()), "lost"), (sorted((emitted - wanted).elements()), "added"))
    return "; ".join(f"{counted(len(rows), 'row')} {what}: {rows[0]}" for rows, what in sides if rows)


@dataclass(frozen=True)
class CheckpointHandoff:
    case: Case
    cut: int


@dataclass(frozen=True)
class VersionPair:
    origin: SparkVersion
    to: SparkVersion
    interfaces: Interfaces = CLASSIC

    def __str__(self) -> str:
        sides = zip((self.origin, self.to), self.interfaces, strict=True)
        return " → ".join(f"{version}{' through Connect' * (by == 'connect')}" for version, by in sides)


def cuts(case: Case, *, each: bool = False) -> tuple[int, ...]:
    """Where a case may change versions: before ``each`` step but the first, or only where it matters most.

    That is where the case itself restarts its query or, if it does not, after the first rows have arrived. Empty for a case of one
    step, or one that ends with its first rows, and where a restart of its own would trigger one more micro-batch.
    """
    if case.interval_ms is not None:
        return tuple(step.number for step in case.steps[1:] if isinstance(step.action, Restart))
    if each:
        return tuple(range(2, len(case.steps) + 1))
    restarts = [step.number for step in case.steps[1:] if isinstance(step.action, Restart)]
    after_data = [step.number + 1 for step in case.steps[:-1] if isinstance(step.action, Add | Backlog)]
    return tuple((restarts or after_data)[:1])


def handoffs(cases: Iterable[Case], *, each: bool = False) -> tuple[CheckpointHandoff, ...]:
    return tuple(CheckpointHandoff(case, cut) for case in cases if case.keeps_state for cut in cuts(case, each=each))


def no_checkpoint(handoff: CheckpointHandoff, pair: VersionPair) -> Verdict | None:
    """The verdict if one version writes no checkpoint or the case is not about one of them; None if the cell needs to run."""
    reason = _why_not_applicable(handoff, pair)
    if reason is None:
        return None
    return no_answer(handoff.case, pair.to, "not-applicable", reason, origin=pair.origin, cut=handoff.cut)


def _why_not_applicable(handoff: CheckpointHandoff, pair: VersionPair) -> str | None:
    origin = expected(handoff.case, pair.origin)
    for version, wanted in ((pair.origin, origin), (pair.to, expected(handoff.case, pair.to))):
        if isinstance(wanted, NotApplicable):
            return f"the case is about Spark {wanted.spark}, not about {version}"
    if isinstance(origin, Unsupported):
        return f"{pair.origin} writes no checkpoint: {origin.reason}"
    if isinstance(origin, Steps) and len(origin.steps) < handoff.cut and origin.steps[-1].ends_the_case:
        return f"on {pair.origin} the case ends with an error before step {handoff.cut}"
    return None


def judge_upgrade(
    handoff: CheckpointHandoff, pair: VersionPair, observation: Observation, with_workaround: Observation | None = None
) -> Verdict:
    """Judge what two engines did with a case, one before the cut and the other from there on.

    Never raises for what an engine did. ``with_workaround``: the same with the setting that the case documents as the workaround.
    """
    case = handoff.case
    if (verdict := no_checkpoint(handoff, pair)) is not None:
        return verdict
    broken = no_answer(case, pair.to, "broken", "", origin=pair.origin, cut=handoff.cut)
    broken = replace(broken, behaviour=behaviour(case, observation))
    if incoherent := cell_verdict.why_incoherent(case, observation):
        return replace(broken, notes=(incoherent,))
    try:
        judged = _judged(broken, handoff, pair, observation)
        judged = replace(judged, outcome=_outcome(judged, handoff, pair, observation))
        if with_workaround is None or not isinstance(judged.differs, Upgrade):
            return judged
        return _with_workaround(judged, judged.differs, handoff, pair, with_workaround)
    except PatternTooSlow as problem:
        return replace(broken, notes=(str(problem),))


def _judged(verdict: Verdict, handoff: CheckpointHandoff, pair: VersionPair, observation: Observation) -> Verdict:
    case, cut = handoff.case, handoff.cut
    last = observation.steps[-1]
    verdict = replace(verdict, notes=(), error=last.error if last.number >= cut else None)
    entry = case.upgrade_between(pair.origin, pair.to, cut, pair.interfaces)
    refusal = entry is not None and entry.error is not None
    to = expected(case, pair.to)
    # If only the steps before the cut need what the version lacks, it starts the query and may refuse the checkpoint.
    if isinstance(to, Unsupported) and (not refusal or lacks_the_feature(to, verdict.error)):
        if lacks_the_feature(to, verdict.error):
            return replace(verdict, status="unsupported", differs=to.entry)
        if mistake := cell_verdict.mistake_of_the_author(last):
            return replace(verdict, notes=mistake)
        wrong, notes = cell_verdict.another_refusal(case, last, to)
        return replace(verdict, status="violates", findings=(wrong,), notes=notes)
    wanted = _expected_over(handoff, pair)
    if entry is not None and refusal:
        return _judge_refusal(entry, wanted, handoff, pair, verdict, observation)
    compared = partial(
        compare_steps,
        case=case,
        observation=observation,
        version_of=lambda number: pair.origin if number < cut else pair.to,
    )
    stale: tuple[StaleEntry, ...] = ()
    if entry is not None and compared(wanted).clean:
        saw = "it goes on as if it had written the checkpoint itself"
        stale = (cell_verdict.stale_entry(case, entry, str(pair), entry.because, saw),)
    if entry is not None:
        wanted = _changed(wanted, entry, handoff)
    return cell_verdict.with_findings(verdict, case, observation, compared(wanted), stale, entry)


def _outcome(
    verdict: Verdict, handoff: CheckpointHandoff, pair: VersionPair, observation: Observation
) -> Outcome | None:
    """Return what the query did with the checkpoint: as the case says if the verdict is so, else as it was observed."""
    if verdict.status == "broken":
        return "no answer"
    if verdict.status == "unsupported":
        return "refused"
    if verdict.status != "violates":
        return documented_outcome(handoff, pair)[0]
    outcome = resumed_at(handoff.cut, observation).outcome
    rows_differ = any(
        finding.aspect == "rows" and (finding.place.step or 0) >= handoff.cut for finding in verdict.findings
    )
    return "other rows" if rows_differ and outcome in ("resumed", "no answer") else outcome


def documented_outcome(handoff: CheckpointHandoff, pair: VersionPair) -> tuple[Outcome, tuple[str, ...]]:
    """Return what becomes of a checkpoint according to its case, of which no version lacks a feature.

    With it, what of the expectations its entry changes if the query goes on: ``rows``, ``error``, ``watermark`` …
    """
    case, cut = handoff.case, handoff.cut
    if (entry := case.upgrade_between(pair.origin, pair.to, cut, pair.interfaces)) is None:
        return "resumed", ()
    if entry.error is not None:
        return "refused", ()
    plain = _expected_over(handoff, pair)
    changed: set[str] = set()
    for step in _changed(plain, entry, handoff).steps[cut - 1 :]:
        if step.ends_the_case:
            if step.changed:
                return "fails later", (*sorted(changed), "error")
            break
        other = plain.of(step.step.number)
        if other is None or other.ends_the_case:
            changed |= {"error"} if other is not None else set()
            other = replace(step, expectation=Expectation(), checked=frozenset({"rows"}))
        asked = step.checked & other.checked
        changed |= {key for key in asked if getattr(step.expectation, key) != getattr(other.expectation, key)}
    return "other rows" if "rows" in changed else "resumed", tuple(sorted(changed))


def _changed(wanted: Steps, entry: Upgrade, handoff: CheckpointHandoff) -> Steps:
    """Overlay what each step must show with what an entry changes from the cut on."""
    changes = {number: change for number, change in entry.steps.items() if number >= handoff.cut}
    steps = (
        overlaid(step, changes[step.step.number], handoff.case) if step.step.number in changes else step
        for step in wanted.steps
    )
    return Steps(until_the_end(steps))


_OF_A_RESTART = frozenset({"batches", "watermark", "state", "dropped"})
"""What a restart alone may change: after it, a query with several watermarks waits until every stream has passed the watermark again."""


def _with_workaround(
    verdict: Verdict, entry: Upgrade, handoff: CheckpointHandoff, pair: VersionPair, observation: Observation
) -> Verdict:
    """The verdict, saying whether the query emitted the right rows with the workaround: those of one of the two versions."""
    case = handoff.case
    origin = expected(case, pair.origin)
    for wanted in (_expected_over(handoff, pair), *([origin] if isinstance(origin, Steps) else [])):
        results = compare_steps(
            wanted, case, observation, lambda number: pair.origin if number < handoff.cut else pair.to
        )
        if results.broken is None and all(finding.aspect in _OF_A_RESTART for finding in results.findings):
            return replace(verdict, proven=True)
    note = f"the workaround {entry.workaround} was tried and is none: with it, the query does not emit the right rows"
    return replace(verdict, notes=(*verdict.notes, note))


def _expected_over(handoff: CheckpointHandoff, pair: VersionPair) -> Steps:
    """What each step must show: before the cut as on the first version, then as on the second.

    An error that would have ended the second before the cut ends it when it resumes. If it lacks a feature, it must do as the first.
    """
    origin, to = expected(handoff.case, pair.origin), expected(handoff.case, pair.to)
    assert isinstance(origin, Steps)
    to = to if isinstance(to, Steps) else origin
    before = origin.steps[: handoff.cut - 1]
    after = to.steps[handoff.cut - 1 :]
    if len(to.steps) < handoff.cut and to.steps and to.steps[-1].ends_the_case:
        after = (replace(to.steps[-1], step=handoff.case.steps[handoff.cut - 1]),)
    return Steps(until_the_end((*before, *after)))


def _judge_refusal(
    entry: Upgrade,
    wanted: Steps,
    handoff: CheckpointHandoff,
    pair: VersionPair,
    verdict: Verdict,
    observation: Observation,
) -> Verdict:
    """The second version must refuse the checkpoint with the error of the entry, before it has done anything."""
    case, cut = handoff.case, handoff.cut
    assert entry.error is not None
    violates = replace(verdict, status="violates", differs=entry)
    written = observation.model_copy(update={"steps": observation.steps[: cut - 1]})
    before = compare_steps(wanted, case, written, lambda _: pair.origin)
    if before.findings:
        return replace(violates, findings=before.findings)
    if verdict.error is None:
        saw = "the checkpoint is resumed to the end of the case"
        stale = cell_verdict.stale_entry(case, entry, str(pair), f"refused, {entry.because}", saw)
        return replace(violates, findings=(stale,))
    ran = resumed_at(cut, observation).batch is not None
    if not ran and not tuple(cell_verdict.mismatching(entry.error, verdict.error)):
        return replace(verdict, status=as_documented(entry), differs=entry)
    if mistake := cell_verdict.mistake_of_the_author(observation.steps[-1]):
        return replace(verdict, notes=mistake)
    return replace(violates, findings=(cell_verdict.error_differs(case, observation.steps[-1], entry.error),))
