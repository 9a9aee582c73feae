"""The verdict on a cell of the matrix: what one engine showed, judged by what the case expects of its version.

The statuses are those of ``docs/case-language/statuses.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeAlias

from conformance.core.case import Case, Differs
from conformance.core.observation import Observation
from conformance.core.patterns import PatternTooSlow
from conformance.core.versions import SparkVersion, VersionRange
from conformance.core.wording import ticket
from conformance.judging.expected import NotApplicable, Steps, Unsupported, as_newest, expected
from conformance.judging.finding import INDENT, Finding, StaleEntry, described
from conformance.judging.judgement import (
    StepResults,
    another_refusal,
    compare_steps,
    judgement,
    lacks_the_feature,
    mistake_of_the_author,
    rejects_the_query,
    stale_entry,
    why_incoherent,
)
from conformance.judging.wall_clock import behaviour

Status: TypeAlias = Literal[
    "conforms", "differs", "bug", "unsupported", "violates", "flaky", "broken", "not-applicable", "not-run"
]

AS_THE_CASE_SAYS: frozenset[Status] = frozenset({"conforms", "differs", "bug", "unsupported"})
"""The statuses of a version that does what its case says about it, known bugs included."""

AS_THE_NEWEST = "this version behaves as the newest does"
WITHOUT_THE_BUG = "this version behaves as the case says, without the bug"


@dataclass(frozen=True)
class Verdict:
    """One cell of the matrix."""

    case: str
    version: SparkVersion
    status: Status
    findings: tuple[Finding, ...] = ()
    """In the order of the steps; the first is where the behaviour diverged."""
    notes: tuple[str, ...] = ()
    """What was not compared, and why; for ``broken`` and ``not-run``, what happened."""
    differs: Differs | None = None
    """The entry of the case that covers this version."""
    behaviour: str | None = None
    """Digest of what was observed: equal digests, equal behaviour. None if nothing was observed."""
    runs: tuple[Verdict, ...] = field(default=(), repr=False)
    """If the cell ran more than once: the verdict on each run, in order."""

    def describe(self) -> str:
        """The whole verdict as plain text, without a line end."""
        return "\n".join([f"{self.case} on {self.version}: {self.status}", *self._lines()])

    def _lines(self) -> Iterator[str]:
        if self.differs is not None and self.status in ("differs", "bug", "unsupported"):
            link = ticket(self.differs.link, self.differs.introduced_by, bug=self.differs.bug)
            known = "known bug: " if self.status == "bug" else ""
            yield f"{INDENT}{known}{self.differs.because or self.differs.unsupported}{link}"
        yield from (INDENT + line for line in described(self.findings))
        yield from (f"{INDENT}note: {note}" for note in self.notes)
        if self.status == "flaky":
            for number, run in enumerate(self.runs, 1):
                seen = f", behaviour {run.behaviour[:12]}" if run.behaviour else ""
                yield f"{INDENT}run {number}: {run.status}{seen}"
                yield from (INDENT + line for line in run._lines())


def judge(case: Case, version: SparkVersion, observation: Observation) -> Verdict:
    """Judge what an engine of this version did with the case.

    Never raises for what an engine did: an observation that cannot be one of this case is ``broken``.
    """
    wanted = expected(case, version)
    if isinstance(wanted, NotApplicable):
        return _outside(wanted.spark, case, version)
    verdict = Verdict(case.id, version, "conforms", behaviour=behaviour(case, observation))
    if incoherent := why_incoherent(case, observation):
        return replace(verdict, status="broken", notes=(incoherent,))
    try:
        return _judged(verdict, wanted, case, observation)
    except PatternTooSlow as problem:
        return replace(verdict, status="broken", notes=(str(problem),))


def _judged(verdict: Verdict, wanted: Unsupported | Steps, case: Case, observation: Observation) -> Verdict:
    """The verdict on an observation that is one of this case.

    Raises:
        PatternTooSlow: a pattern of the case was not searched to the end.
    """
    compared = partial(compare_steps, case=case, observation=observation, version_of=lambda _: verdict.version)
    newest = as_newest(case)
    if isinstance(wanted, Unsupported):
        verdict = replace(verdict, differs=wanted.entry)
        last = observation.steps[-1]
        if lacks_the_feature(wanted, last.error):
            return replace(verdict, status="unsupported")
        if mistake := mistake_of_the_author(last):
            return replace(verdict, status="broken", notes=mistake, differs=None)
        if rejects_the_query(last.error):
            wrong, notes = another_refusal(case, last, wanted)
            return replace(verdict, status="violates", findings=(wrong,), notes=notes)
        saw = _seen_instead(observation, compared(newest))
        finding = stale_entry(case, wanted.entry, str(wanted.entry.spark), f"unsupported, {wanted.reason}", saw)
        return replace(verdict, status="violates", findings=(finding,))
    entry, results = wanted.differs, compared(wanted)
    stale: tuple[StaleEntry, ...] = ()
    if entry is not None and _is_stale(wanted, newest, results, compared(newest)):
        saw = WITHOUT_THE_BUG if entry.bug else AS_THE_NEWEST
        stale = (stale_entry(case, entry, str(entry.spark), entry.because or "it behaves otherwise", saw),)
    found = judgement(case, observation, results, stale)
    status: Status = found.failure or ("conforms" if entry is None else "bug" if entry.bug else "differs")
    documented = None if status == "broken" else entry
    return replace(verdict, status=status, findings=found.findings, notes=found.notes, differs=documented)


def not_applicable(case: Case, version: SparkVersion) -> Verdict | None:
    """The verdict on a cell that does not need to run, None if it does."""
    if case.spark is None or version in case.spark:
        return None
    return _outside(case.spark, case, version)


def beyond(case: Case, version: SparkVersion, why: str) -> Verdict:
    """The runtime cannot run the case, though Spark itself might."""
    return Verdict(case.id, version, "not-applicable", notes=(why,))


def broken(case: Case, version: SparkVersion, reason: str) -> Verdict:
    """The harness failed, not the engine."""
    return Verdict(case.id, version, "broken", notes=(reason,))


def not_run(case: Case, version: SparkVersion, reason: str) -> Verdict:
    """There is no result."""
    return Verdict(case.id, version, "not-run", notes=(reason,))


def combine(verdicts: Sequence[Verdict]) -> Verdict:
    """One verdict from repeated runs of the same cell: ``flaky`` if their behaviours disagree.

    A ``broken`` run showed no behaviour. Unless the others disagree, it makes the cell ``broken``: what it would have shown is unknown.

    Raises:
        ValueError: there are none, or they are of several cells.
    """
    if not verdicts:
        raise ValueError("no verdicts to combine")
    first, runs = verdicts[0], tuple(verdicts)
    if any((run.case, run.version) != (first.case, first.version) for run in runs):
        raise ValueError("verdicts of several cells cannot be combined into one")
    if len(runs) == 1:
        return first
    seen = {(run.status, run.behaviour) for run in runs if run.status not in ("broken", "not-run")}
    if len(seen) > 1:
        agreed = f"{len(runs)} runs of this cell showed {len(seen)} behaviours"
        return Verdict(first.case, first.version, "flaky", notes=(agreed,), differs=first.differs, runs=runs)
    worst = next((run for run in runs if run.status in ("broken", "not-run")), first)
    return replace(worst, runs=runs)


def _outside(spark: VersionRange, case: Case, version: SparkVersion) -> Verdict:
    return Verdict(case.id, version, "not-applicable", notes=(f"the case is about Spark {spark}",))


def _seen_instead(observation: Observation, by_newest: StepResults) -> str:
    """What happened although the case says that the version does not support it."""
    error = observation.steps[-1].error
    if error is not None:
        return f"the query started and then failed: {' < '.join(error.classes)} at {error.stage}"
    return "the case runs here, and " + (AS_THE_NEWEST if by_newest.clean else "not as it should on the newest")


def _is_stale(wanted: Steps, newest: Steps, results: StepResults, by_newest: StepResults) -> bool:
    """Whether the version behaves as the newest does although an entry says otherwise.

    It does if the observation does not match the entry but matches the case without it. If it matches both, the entry is stale only
    if everything it says could tell them apart: it gives only keys that the case without it checks too, and no metric was missing.

    Args:
        wanted: what is expected with the entry.
        newest: what is expected without it.
        results: the observation compared with the former.
        by_newest: the observation compared with the latter.
    """
    if not by_newest.clean:
        return False
    if results.findings:
        return True
    comparable = True
    for step in wanted.steps:
        written = newest.of(step.step.number)
        comparable &= written is not None and step.changed & step.checked <= written.checked
    says_something = any(step.changed & step.checked for step in wanted.steps)
    return comparable and says_something and not results.notes and not by_newest.notes
