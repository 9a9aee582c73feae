"""What a cell of the matrix says, and why: what one engine showed, judged by what the case expects of its version.

The statuses are those of ``docs/case-language.md``, «What a cell of the matrix can say».
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from conformance.core.case import Case, Differs, ExpectedError
from conformance.core.observation import BatchSeen, ErrorSeen, Observation, StepSeen
from conformance.core.versions import SparkVersion, VersionRange
from conformance.judging.expected import (
    Expected,
    ExpectedStep,
    NotApplicable,
    Steps,
    Unsupported,
    as_newest,
    expected,
)
from conformance.judging.finding import (
    INDENT,
    ErrorDiffers,
    ErrorExpectedAs,
    Finding,
    FindingLocation,
    StaleEntry,
    described,
)
from conformance.judging.log_consistency import disagreements, lost_or_doubled
from conformance.judging.rows import OutputSchema
from conformance.judging.step_comparison import Note, PlanNotTaken, SeenStep, compare
from conformance.judging.wall_clock import behaviour

Status: TypeAlias = Literal[
    "conforms", "differs", "bug", "unsupported", "violates", "flaky", "broken", "not-applicable", "not-run"
]

AS_THE_CASE_SAYS: frozenset[Status] = frozenset({"conforms", "differs", "bug", "unsupported"})
"""The statuses of a version that does what its case says of it, known bugs among them."""

AS_THE_NEWEST = "this version behaves as the newest does"
WITHOUT_THE_BUG = "this version behaves as the case says, without the bug"

_QUALIFIED = re.compile(r"\b(?:[a-z_]\w*\.)+(?:\w+\$)*([A-Z]\w*)")
"""A qualified class name in running text: errors inside ``foreachBatch`` reach us as text only."""
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9]*_[A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")
"""``[STREAM_FAILED]``: through Connect, what made a query fail stands in the text only, behind that."""


@dataclass(frozen=True)
class Verdict:
    """One cell of the matrix."""

    case: str
    version: SparkVersion
    status: Status
    findings: tuple[Finding, ...] = ()
    """In the order of the steps; the first is where the behaviour diverged."""
    notes: tuple[str, ...] = ()
    """What was not compared, and why; for ``broken`` and ``not-run`` what happened."""
    differs: Differs | None = None
    """The entry of the case that this version falls into."""
    behaviour: str | None = None
    """Digest of what was seen: equal digests, equal behaviour. None where nothing was."""
    runs: tuple[Verdict, ...] = field(default=(), repr=False)
    """Of a cell that ran more than once: the verdict on each run, in order."""

    def describe(self) -> str:
        """The whole verdict as plain text, without a line end."""
        return "\n".join([f"{self.case} on {self.version}: {self.status}", *self._lines()])

    def _lines(self) -> Iterator[str]:
        if self.differs is not None and self.status in ("differs", "bug", "unsupported"):
            link = f" ({self.differs.link})" if self.differs.link else ""
            known = "known bug: " if self.status == "bug" else ""
            yield f"{INDENT}{known}{self.differs.because or self.differs.unsupported}{link}"
        yield from (INDENT + line for line in described(self.findings))
        yield from (f"{INDENT}note: {note}" for note in self.notes)
        if self.status == "flaky":
            for number, run in enumerate(self.runs, 1):
                seen = f", behaviour {run.behaviour[:12]}" if run.behaviour else ""
                yield f"{INDENT}run {number}: {run.status}{seen}"
                yield from (INDENT + line for line in run._lines())


@dataclass(frozen=True)
class StepResults:
    """The steps of an observation held against what is expected of them."""

    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    broken: str | None = None
    """Why the observation cannot be judged."""


def judge(case: Case, version: SparkVersion, observation: Observation) -> Verdict:
    """Judge what an engine of this version did with the case.

    Never raises for what an engine did: an observation that cannot be one of this case is ``broken``.
    """
    verdict = Verdict(case.id, version, "conforms", behaviour=behaviour(case, observation))
    wanted: Expected = expected(case, version)
    if isinstance(wanted, NotApplicable):
        return _outside(wanted.spark, case, version)
    if incoherent := why_incoherent(case, observation):
        return replace(verdict, status="broken", notes=(incoherent,))
    if isinstance(wanted, Unsupported):
        return _unsupported(wanted, case, observation, verdict)
    walked = walk(wanted, case, version, observation)
    if walked.broken is not None:
        return replace(verdict, status="broken", findings=walked.findings, notes=(walked.broken, *walked.notes))
    stale: tuple[Finding, ...] = ()
    if wanted.differs is not None and _is_stale(wanted, walked, case, version, observation):
        said = wanted.differs.because or "it behaves otherwise"
        stale = (_stale(case, wanted.differs, said, WITHOUT_THE_BUG if wanted.differs.bug else AS_THE_NEWEST),)
    findings = (
        *stale,
        *by_step([*walked.findings, *disagreements(case, observation), *lost_or_doubled(case, observation)]),
    )
    status: Status = "violates" if findings else _told_by(wanted.differs)
    return replace(verdict, status=status, findings=findings, notes=walked.notes, differs=wanted.differs)


def _told_by(entry: Differs | None) -> Status:
    """The status of a version that does as its entry says, or as the case does where there is none."""
    if entry is None:
        return "conforms"
    return "bug" if entry.bug else "differs"


def not_applicable(case: Case, version: SparkVersion) -> Verdict | None:
    """The verdict on a cell that needs no run, None where it needs one."""
    if case.spark is None or version in case.spark:
        return None
    return _outside(case.spark, case, version)


def beyond(case: Case, version: SparkVersion, why: str) -> Verdict:
    """Whoever runs engines cannot carry the case out, though their Spark may."""
    return Verdict(case.id, version, "not-applicable", notes=(why,))


def broken(case: Case, version: SparkVersion, reason: str) -> Verdict:
    """The harness, not the engine, failed."""
    return Verdict(case.id, version, "broken", notes=(reason,))


def not_run(case: Case, version: SparkVersion, reason: str) -> Verdict:
    """There is no result."""
    return Verdict(case.id, version, "not-run", notes=(reason,))


def combine(verdicts: Sequence[Verdict]) -> Verdict:
    """One verdict from repeated runs of the same cell: ``flaky`` where their behaviours disagree.

    A run that the harness broke showed no behaviour. It takes the cell with it unless the others disagree already, for
    nobody knows what that run would have shown.

    Raises:
        ValueError: there is none, or they are not all of one cell.
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


def why_incoherent(case: Case, observation: Observation) -> str | None:
    """Why this cannot be an observation of the case, None where it can."""
    if observation.case != case.id:
        return f"the observation is of {observation.case}"
    if not observation.steps:
        return "the observation has no steps"
    numbers = [step.number for step in observation.steps]
    if numbers != list(range(1, len(numbers) + 1)) or len(numbers) > len(case.steps):
        return f"the case has steps 1 to {len(case.steps)}, the observation has {', '.join(map(str, numbers))}"
    failed = next((step.number for step in observation.steps[:-1] if step.error is not None), None)
    if failed is not None:
        return f"step {failed} failed and the observation goes on after it"
    return None


def _unsupported(wanted: Unsupported, case: Case, observation: Observation, verdict: Verdict) -> Verdict:
    """The entry is checked: where the case runs, it is stale."""
    error = observation.steps[-1].error
    if error is not None and error.stage in ("analysis", "start"):
        return replace(verdict, status="unsupported", differs=wanted.entry)
    if error is not None:
        saw = f"the query started and then failed: {' < '.join(error.classes)} at {error.stage}"
    else:
        base = walk(as_newest(case), case, verdict.version, observation)
        clean = not base.findings and base.broken is None
        saw = "the case runs here" + (f", and {AS_THE_NEWEST}" if clean else ", and not as it should on the newest")
    finding = _stale(case, wanted.entry, f"unsupported, {wanted.reason}", saw)
    return replace(verdict, status="violates", findings=(finding,), differs=wanted.entry)


def _stale(case: Case, entry: Differs, said: str, saw: str) -> StaleEntry:
    number = next(at for at, other in enumerate(case.differs, 1) if other is entry)
    link = f" ({entry.link})" if entry.link else ""
    return StaleEntry(
        place=FindingLocation.of_entry(case, number), spark=str(entry.spark), expected=f"{said}{link}", observed=saw
    )


def _is_stale(wanted: Steps, walked: StepResults, case: Case, version: SparkVersion, observation: Observation) -> bool:
    """Whether the version behaves as the newest does although an entry says otherwise.

    So it is where the observation does not match the entry and does match the case without it. Where it matches both,
    the entry is stale only if everything it says could have told them apart: it only gives keys that the case without
    it checks too, and nothing was left out for want of a metric.
    """
    newest = as_newest(case)
    base = walk(newest, case, version, observation)
    if base.findings or base.broken is not None:
        return False
    if walked.findings:
        return True
    comparable = True
    for step in wanted.steps:
        written = newest.of(step.step.number)
        comparable &= written is not None and step.changed & step.checked <= written.checked
    says_something = any(step.changed & step.checked for step in wanted.steps)
    return comparable and says_something and not walked.notes and not base.notes


def walk(
    wanted: Steps,
    case: Case,
    version: SparkVersion,
    observation: Observation,
    *,
    then: tuple[int, SparkVersion] | None = None,
) -> StepResults:
    """Hold each step against what is expected of it, up to the one that ends the case.

    Args:
        wanted: what is expected of each step.
        case: the case.
        version: which ran it.
        observation: what it showed.
        then: the number of the step from which on another version ran it, and that version.
    """
    findings: list[Finding] = []
    notes: dict[str, None] = {}
    before: tuple[BatchSeen, ...] = ()
    schema = OutputSchema.of(observation.columns)
    for seen in observation.steps:
        step = wanted.of(seen.number)
        if seen.error is not None or (step is not None and step.ends_the_case):
            findings.extend(_judge_end(step, seen, case))
            return StepResults(tuple(findings), tuple(notes))
        if step is not None:
            ran = then[1] if then is not None and seen.number >= then[0] else version
            try:
                for found in compare(SeenStep(case, ran, schema, step, seen, before)):
                    if isinstance(found, Note):
                        notes[found.text] = None
                    else:
                        findings.append(found)
            except PlanNotTaken as problem:
                return StepResults(tuple(findings), tuple(notes), broken=str(problem))
        before = (*before, *seen.batches)
    broken = None
    if len(observation.steps) < len(case.steps):
        broken = f"the observation ends without an error after step {len(observation.steps)} of {len(case.steps)}"
    return StepResults(tuple(findings), tuple(notes), broken)


def _judge_end(step: ExpectedStep | None, seen: StepSeen, case: Case) -> Iterator[Finding]:
    """The step at which the case ends: with the error expected, with another, or with none where one was expected."""
    wanted = step.expectation.error if step is not None else None
    place = FindingLocation.of_step(case, seen.number, tuple(batch.id for batch in seen.batches))
    said = None
    if wanted is not None:
        said = ErrorExpectedAs(classes=wanted.classes, message=wanted.message, stage=wanted.stage)
    if seen.error is None or wanted is None:
        rest = tuple(range(seen.number + 1, len(case.steps) + 1)) if seen.error is not None else ()
        yield ErrorDiffers(place=place, expected=said, observed=seen.error, unreached=rest)
    elif mismatches := tuple(mismatching(wanted, seen.error)):
        yield ErrorDiffers(place=place, expected=said, observed=seen.error, mismatches=mismatches)


def mismatching(wanted: ExpectedError, seen: ErrorSeen) -> Iterator[Literal["class", "message", "stage"]]:
    """What of an expected error is not as expected."""
    if wanted.classes and not {*seen.classes, *_classes_in(seen.message)} & set(wanted.classes):
        yield "class"
    if wanted.message is not None and not re.search(wanted.message, seen.message):
        yield "message"
    if wanted.stage is not None and wanted.stage != seen.stage:
        yield "stage"


def _classes_in(message: str) -> Iterator[str]:
    """Simple and qualified names of the classes that a message names in full, and the error conditions it gives in brackets."""
    for found in _QUALIFIED.finditer(message):
        yield found[0]
        yield found[1]
    yield from _CONDITION.findall(message)


def by_step(findings: Sequence[Finding]) -> list[Finding]:
    """In the order of steps and, within one, of micro-batches: findings about one place come to stand together."""
    return sorted(findings, key=lambda found: (found.place.step or 0, found.place.batches))
