"""What a case expects of a handoff, the checkpoint that one version writes and another resumes, and whether it is so.

What the resuming version did is `conformance.judging.checkpoint_verdict`.

The steps before the cut are judged by what the case expects of the first version, the others by what it expects of the second. A cut is
the number of the step before which the versions change. The rules are those of ``docs/upgrade.md``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

from conformance.core.case import CLASSIC, Add, Backlog, Case, Interfaces, Restart, Upgrade
from conformance.core.observation import ErrorSeen, Observation
from conformance.core.patterns import PatternTooSlow
from conformance.core.versions import SparkVersion
from conformance.judging.checkpoint_verdict import resumed_at
from conformance.judging.expected import NotApplicable, Steps, Unsupported, expected, overlaid, until_the_end
from conformance.judging.finding import Finding, StaleEntry
from conformance.judging.judgement import (
    another_refusal,
    compare_steps,
    error_differs,
    judgement,
    lacks_the_feature,
    mismatching,
    mistake_of_the_author,
    stale_entry,
    why_incoherent,
)
from conformance.judging.wall_clock import behaviour

UpgradeStatus: TypeAlias = Literal[
    "resumes", "differs", "refused", "unsupported", "violates", "broken", "not-applicable", "not-run"
]


@dataclass(frozen=True)
class CheckpointHandoff:
    """A case, and the step before which it changes versions."""

    case: Case
    cut: int
    """At least 2."""


@dataclass(frozen=True)
class VersionPair:
    """The version that writes a checkpoint, and the one that resumes it."""

    origin: SparkVersion
    to: SparkVersion
    interfaces: Interfaces = CLASSIC

    def __str__(self) -> str:
        """``3.5.9 → 4.3.0``, ``4.2.1 → 4.3.0 through Connect``."""
        sides = zip((self.origin, self.to), self.interfaces, strict=True)
        return " → ".join(f"{version}{' through Connect' * (by == 'connect')}" for version, by in sides)


@dataclass(frozen=True)
class UpgradeVerdict:
    """One cell of the upgrade matrix."""

    case: str
    pair: VersionPair
    cut: int
    status: UpgradeStatus
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    entry: Upgrade | None = None
    """The entry of the case that covers it."""
    error: ErrorSeen | None = None
    """The error of the resuming version, if it ended with one."""
    behaviour: str | None = None
    """Digest of what was observed."""


def cuts(case: Case, *, each: bool = False) -> tuple[int, ...]:
    """Where a case may change versions: before ``each`` step but the first, or only where it matters most.

    That is where the case itself restarts its query or, if it does not, after the first rows have arrived. Empty for a case of one
    step, or one that ends with its first rows.
    """
    if each:
        return tuple(range(2, len(case.steps) + 1))
    restarts = [step.number for step in case.steps[1:] if isinstance(step.action, Restart)]
    after_data = [step.number + 1 for step in case.steps[:-1] if isinstance(step.action, Add | Backlog)]
    return tuple((restarts or after_data)[:1])


def handoffs(cases: Iterable[Case], *, each: bool = False) -> tuple[CheckpointHandoff, ...]:
    """Every case that keeps state, with each of its cuts."""
    return tuple(CheckpointHandoff(case, cut) for case in cases if case.keeps_state for cut in cuts(case, each=each))


def not_applicable(handoff: CheckpointHandoff, pair: VersionPair) -> UpgradeVerdict | None:
    """The verdict if one version writes no checkpoint or the case is not about one of them; None if the cell needs to run."""
    reason = _why_not_applicable(handoff, pair)
    return without_answer(handoff, pair, "not-applicable", reason) if reason is not None else None


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


def without_answer(
    handoff: CheckpointHandoff,
    pair: VersionPair,
    status: Literal["broken", "not-applicable", "not-run"],
    reason: str,
) -> UpgradeVerdict:
    """The verdict on a cell that no engine answered: the harness failed, there is nothing to hand over, or it did not run."""
    return UpgradeVerdict(handoff.case.id, pair, handoff.cut, status, notes=(reason,))


def judge_upgrade(handoff: CheckpointHandoff, pair: VersionPair, observation: Observation) -> UpgradeVerdict:
    """Judge what two engines did with a case, one before the cut and the other from there on.

    Never raises for what an engine did.
    """
    case = handoff.case
    if (verdict := not_applicable(handoff, pair)) is not None:
        return verdict
    verdict = UpgradeVerdict(case.id, pair, handoff.cut, "resumes", behaviour=behaviour(case, observation))
    if incoherent := why_incoherent(case, observation):
        return replace(verdict, status="broken", notes=(incoherent,))
    try:
        return _judged(verdict, handoff, observation)
    except PatternTooSlow as problem:
        return replace(verdict, status="broken", notes=(str(problem),))


def _judged(verdict: UpgradeVerdict, handoff: CheckpointHandoff, observation: Observation) -> UpgradeVerdict:
    """The verdict on an observation that is one of this case.

    Raises:
        PatternTooSlow: a pattern of the case was not searched to the end.
    """
    case, cut, pair = handoff.case, handoff.cut, verdict.pair
    last = observation.steps[-1]
    verdict = replace(verdict, error=last.error if last.number >= cut else None)
    to = expected(case, pair.to)
    if isinstance(to, Unsupported):
        if lacks_the_feature(to, verdict.error):
            return replace(verdict, status="unsupported", notes=(to.reason,))
        if mistake := mistake_of_the_author(last):
            return replace(verdict, status="broken", notes=mistake)
        wrong, notes = another_refusal(case, last, to)
        return replace(verdict, status="violates", findings=(wrong,), notes=notes)
    wanted = _expected_over(handoff, pair)
    entry = case.upgrade_between(pair.origin, pair.to, cut, pair.interfaces)
    if entry is not None and entry.error is not None:
        return _judge_refusal(entry, wanted, handoff, replace(verdict, entry=entry), observation)
    compared = partial(
        compare_steps,
        case=case,
        observation=observation,
        version_of=lambda number: pair.origin if number < cut else pair.to,
    )
    stale: tuple[StaleEntry, ...] = ()
    if entry is not None and compared(wanted).clean:
        saw = "it goes on as if it had written the checkpoint itself"
        stale = (stale_entry(case, entry, str(pair), entry.because, saw),)
    results = compared(wanted if entry is None else _with_entry(wanted, entry, handoff))
    found = judgement(case, observation, results, stale)
    status: UpgradeStatus = found.failure or ("resumes" if entry is None else "differs")
    documented = None if status == "broken" else entry
    return replace(verdict, status=status, findings=found.findings, notes=found.notes, entry=documented)


def _expected_over(handoff: CheckpointHandoff, pair: VersionPair) -> Steps:
    """What each step must show: before the cut as on the first version, then as on the second.

    If the second would have ended with an error before the cut, it ends with that error when it resumes.
    """
    origin, to = expected(handoff.case, pair.origin), expected(handoff.case, pair.to)
    assert isinstance(origin, Steps)
    assert isinstance(to, Steps)
    before = origin.steps[: handoff.cut - 1]
    after = to.steps[handoff.cut - 1 :]
    if len(to.steps) < handoff.cut and to.steps and to.steps[-1].ends_the_case:
        after = (replace(to.steps[-1], step=handoff.case.steps[handoff.cut - 1]),)
    return Steps(until_the_end((*before, *after)))


def _with_entry(wanted: Steps, entry: Upgrade, handoff: CheckpointHandoff) -> Steps:
    """The expectations, after the cut with those of the entry laid over them."""
    return Steps(
        until_the_end(
            overlaid(step, entry.steps[step.step.number], handoff.case)
            if step.step.number >= handoff.cut and step.step.number in entry.steps
            else step
            for step in wanted.steps
        )
    )


def _judge_refusal(
    entry: Upgrade, wanted: Steps, handoff: CheckpointHandoff, verdict: UpgradeVerdict, observation: Observation
) -> UpgradeVerdict:
    """The second version must refuse the checkpoint with the error of the entry, before it has done anything."""
    case, cut = handoff.case, handoff.cut
    assert entry.error is not None
    written = observation.model_copy(update={"steps": observation.steps[: cut - 1]})
    before = compare_steps(Steps(wanted.steps[: cut - 1]), case, written, lambda _: verdict.pair.origin)
    if before.findings:
        return replace(verdict, status="violates", findings=before.findings)
    if verdict.error is None:
        saw = "the checkpoint is resumed to the end of the case"
        stale = stale_entry(case, entry, str(verdict.pair), f"refused, {entry.because}", saw)
        return replace(verdict, status="violates", findings=(stale,))
    ran = resumed_at(cut, observation).batch is not None
    refused = not ran and not tuple(mismatching(entry.error, verdict.error))
    if not refused and (mistake := mistake_of_the_author(observation.steps[-1])):
        return replace(verdict, status="broken", notes=mistake, entry=None)
    if not refused:
        wrong = error_differs(case, observation.steps[-1], entry.error)
        return replace(verdict, status="violates", findings=(wrong,))
    return replace(verdict, status="refused")
