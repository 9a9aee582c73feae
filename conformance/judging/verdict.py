"""The verdict on a cell: what one engine showed, or two that handed a checkpoint over, judged by what the case expects of them.

The statuses are those of ``docs/case-language/statuses.md``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeAlias

from conformance.core.case import Case, Differs, Documented, ExpectedError
from conformance.core.observation import BatchSeen, ErrorSeen, Observation, StepSeen
from conformance.core.patterns import PatternTooSlow, occurs
from conformance.core.versions import SparkVersion
from conformance.core.wording import ticket
from conformance.judging.consistency import behaviour, disagreements, lost_or_doubled, state_disagreements, why_unread
from conformance.judging.expected import NotApplicable, Steps, Unsupported, as_newest, expected
from conformance.judging.finding import (
    INDENT,
    ErrorDiffers,
    ErrorExpectedAs,
    ErrorPart,
    Finding,
    FindingLocation,
    Section,
    StaleEntry,
    described,
)
from conformance.judging.step_comparison import OutputSchema, PlanNotTaken, SeenStep, compare

_DOTTED = re.compile(r"[\w.$]+")
_PACKAGE = re.compile(r"[a-z_]\w*")
_CLASS = re.compile(r"(?:\w+\$)*([A-Z]\w*)")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9]*_[A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")
"""``[STREAM_FAILED]``: through Connect, the cause of a failure is only in the text that follows this."""


@dataclass(frozen=True)
class StepResults:
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    broken: str | None = None
    """Why the observation cannot be judged."""

    @property
    def clean(self) -> bool:
        return not self.findings and self.broken is None


def with_findings(
    verdict: Verdict,
    case: Case,
    observation: Observation,
    results: StepResults,
    stale: Sequence[StaleEntry],
    entry: Documented | None,
) -> Verdict:
    """Complete a verdict by the findings of steps, the whole observation and stale entries; ``entry`` covers the cell."""
    if results.broken is not None:
        notes = (results.broken, *results.notes)
        return replace(verdict, status="broken", findings=results.findings, notes=notes, differs=None)
    contradictions = (disagreements, state_disagreements, lost_or_doubled)
    wrong = (*results.findings, *(finding for compared in contradictions for finding in compared(case, observation)))
    # Findings about the same step and micro-batches stand together.
    findings = (*stale, *sorted(wrong, key=lambda finding: (finding.place.step or 0, finding.place.batches)))
    status: Status = "violates" if findings else as_documented(entry)
    return replace(verdict, status=status, findings=findings, notes=results.notes, differs=entry)


def why_incoherent(case: Case, observation: Observation) -> str | None:
    if observation.case != case.id:
        return f"the observation is of {observation.case}"
    if not observation.steps:
        return "the observation has no steps"
    numbers = [step.number for step in observation.steps]
    if numbers != list(range(1, len(numbers) + 1)) or len(numbers) > len(case.steps):
        return f"the case has steps 1 to {len(case.steps)}, the observation has {', '.join(map(str, numbers))}"
    failed = next((step.number for step in observation.steps[:-1] if step.error is not None), None)
    if failed is not None:
        return f"step {failed} failed, and the observation continues after it"
    return why_unread(case, observation)


def compare_steps(
    wanted: Steps, case: Case, observation: Observation, version_of: Callable[[int], SparkVersion]
) -> StepResults:
    """Compare the steps up to the one that ends the case; ``version_of``: what ran a step. Raises PatternTooSlow."""
    findings: list[Finding] = []
    notes: dict[str, None] = {}
    before: tuple[BatchSeen, ...] = ()
    for seen in observation.steps:
        step = wanted.of(seen.number)
        if seen.error is not None or (step is not None and step.ends_the_case):
            wrong = tuple(_compare_end(step.expectation.error if step is not None else None, seen, case))
            if wrong and (mistake := mistake_of_the_author(seen)):
                return StepResults(tuple(findings), (*mistake[1:], *notes), broken=mistake[0])
            return StepResults((*findings, *wrong), tuple(notes))
        if step is not None:
            schema = OutputSchema.of(observation.columns_of(seen))
            try:
                for result in compare(SeenStep(case, version_of(seen.number), schema, step, seen, before)):
                    if isinstance(result, str):
                        notes[result] = None
                    else:
                        findings.append(result)
            except PlanNotTaken as problem:
                return StepResults(tuple(findings), tuple(notes), broken=str(problem))
        before = (*before, *seen.batches)
    broken = None
    if len(observation.steps) < len(case.steps):
        broken = f"the observation ends without an error after step {len(observation.steps)} of {len(case.steps)}"
    return StepResults(tuple(findings), tuple(notes), broken)


def _compare_end(wanted: ExpectedError | None, seen: StepSeen, case: Case) -> Iterator[Finding]:
    if seen.error is None or wanted is None:
        rest = tuple(range(seen.number + 1, len(case.steps) + 1)) if seen.error is not None else ()
        yield error_differs(case, seen, wanted, unreached=rest)
    elif (finding := error_differs(case, seen, wanted)).mismatches:
        yield finding


def mistake_of_the_author(seen: StepSeen) -> tuple[str, ...]:
    """What code of the case's author did wrong to end the step, and the evidence: it says nothing about Spark. Else empty."""
    own = seen.error.own_code if seen.error is not None else None
    return own.lines() if own is not None else ()


def error_differs(
    case: Case, seen: StepSeen, wanted: ExpectedError | None, *, unreached: tuple[int, ...] = ()
) -> ErrorDiffers:
    mismatches = tuple(mismatching(wanted, seen.error)) if wanted is not None and seen.error is not None else ()
    place = FindingLocation.of_step(case, seen.number, tuple(batch.id for batch in seen.batches))
    stated = wanted and ErrorExpectedAs(classes=wanted.classes, message=wanted.message, stage=wanted.stage)
    return ErrorDiffers(place=place, expected=stated, observed=seen.error, mismatches=mismatches, unreached=unreached)


def mismatching(wanted: ExpectedError, seen: ErrorSeen) -> Iterator[ErrorPart]:
    """The parts of an error that are not as expected."""
    if wanted.classes and not {*seen.classes, *_classes_in(seen.message)} & set(wanted.classes):
        yield "class"
    if wanted.message is not None and not occurs(wanted.message, seen.message):
        yield "message"
    if wanted.stage is not None and wanted.stage != seen.stage:
        yield "stage"


def rejects_the_query(error: ErrorSeen | None) -> bool:
    return error is not None and error.stage in ("analysis", "start")


def lacks_the_feature(wanted: Unsupported, error: ErrorSeen | None) -> bool:
    """Whether Spark rejected the query before it ran, with the error that says that the feature is missing."""
    return rejects_the_query(error) and error is not None and not tuple(mismatching(wanted.error, error))


def another_refusal(case: Case, seen: StepSeen, wanted: Unsupported) -> tuple[ErrorDiffers, tuple[str, ...]]:
    unnamed = "the `unsupported` entry names no error, so only a missing method counts: add `error: {class, message}`"
    return error_differs(case, seen, wanted.error), () if wanted.entry.error is not None else (unnamed,)


def stale_entry(case: Case, entry: Documented, spark: str, documented: str, observed: str) -> StaleEntry:
    entries: Sequence[Documented]
    aspect: Section
    entries, aspect = (case.differs, "differs") if isinstance(entry, Differs) else (case.upgrades, "upgrades")
    number = next(at for at, other in enumerate(entries, 1) if other is entry)
    place = FindingLocation(file=case.file, line=case.lines.get(f"{aspect}.{number}"), step=None)
    expected = f"{documented}{ticket(entry.link, entry.introduced_by, bug=entry.bug)}"
    return StaleEntry(aspect=aspect, place=place, spark=spark, expected=expected, observed=observed)


def _classes_in(message: str) -> Iterator[str]:
    """Yield the simple and qualified names of the classes in a message, and the error conditions in brackets.

    Errors inside ``foreachBatch`` arrive as text only. One pattern for qualified names would take quadratic time on hostile text.
    """
    for dotted in _DOTTED.findall(message):
        packages: list[str] = []
        for part in dotted.split("."):
            if packages and (name := _CLASS.match(part)):
                yield ".".join((*packages, name[0]))
                yield name[1]
            _, dollar, package = part.rpartition("$")
            if dollar or not _PACKAGE.fullmatch(package):
                packages = []
            if _PACKAGE.fullmatch(package):
                packages.append(package)
    yield from _CONDITION.findall(message)


Status: TypeAlias = Literal[
    "conforms", "differs", "bug", "unsupported", "violates", "flaky", "broken", "not-applicable", "not-run"
]

NoAnswer: TypeAlias = Literal["broken", "not-applicable", "not-run"]

AS_THE_CASE_SAYS: frozenset[Status] = frozenset({"conforms", "differs", "bug", "unsupported"})
"""The statuses of a version that does what its case says about it, known bugs included."""

Outcome: TypeAlias = Literal["resumed", "other rows", "refused", "fails later", "unclear", "no answer"]
"""What a query did with a checkpoint, compared with another query, with what a case expects, or with nothing but its own error.

- ``resumed``: it went on as what it is compared with does, with the same rows.
- ``other rows``: it went on with other rows, or lost some.
- ``refused``: it ended before any micro-batch, with an error that says what is wrong.
- ``fails later``: it ended with such an error after a micro-batch, or the author's own code failed.
- ``unclear``: it ended, at any time, with an error that does not say what is wrong.
- ``no answer``: nothing ran that would tell.
"""

AS_THE_NEWEST = "this version behaves as the newest does"


@dataclass(frozen=True)
class Verdict:
    """The verdict on a cell: a case, and the engines that ran it in order, one or two."""

    case: str
    version: SparkVersion
    """Of the engine that ran the last step."""
    status: Status
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    """What was not compared, and why; for ``broken`` and ``not-run``, what happened."""
    differs: Documented | None = None
    """The entry of the case that covers the cell."""
    behaviour: str | None = None
    """Digest of what was observed: equal digests, equal behaviour. None if nothing was observed."""
    runs: tuple[Verdict, ...] = field(default=(), repr=False)
    """If the cell ran more than once: the verdict on each run, in order."""
    origin: SparkVersion | None = None
    """Of the engine that ran the steps before the cut; None if one engine ran all."""
    cut: int | None = None
    """The number of the step before which the engines change."""
    outcome: Outcome | None = None
    """What the query did with the checkpoint; None if there was none to resume."""
    error: ErrorSeen | None = None
    """The error of the query that resumed a checkpoint, if it ended with one."""
    explained_by: tuple[str, ...] = ()
    """The settings of the engine's own without which the case conforms, where it violates: ``spark.sql.x=false``."""
    proven: bool = False
    """Whether the workaround of the entry was tried, and the query went on with it as the case expects."""

    def describe(self) -> str:
        return "\n".join([f"{self.case} on {self.version}: {self.status}", *self._lines()])

    def _lines(self) -> Iterator[str]:
        if self.differs is not None and self.status in ("differs", "bug", "unsupported"):
            link = ticket(self.differs.link, self.differs.introduced_by, bug=self.differs.bug)
            known = "known bug: " if self.status == "bug" else ""
            yield f"{INDENT}{known}{self.differs.reason}{link}"
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
        return no_answer(case, version, "not-applicable", f"the case is about Spark {wanted.spark}")
    verdict = Verdict(case.id, version, "conforms", behaviour=behaviour(case, observation))
    if incoherent := why_incoherent(case, observation):
        return replace(verdict, status="broken", notes=(incoherent,))
    try:
        return _judged(verdict, wanted, case, observation)
    except PatternTooSlow as problem:
        return replace(verdict, status="broken", notes=(str(problem),))


def _judged(verdict: Verdict, wanted: Unsupported | Steps, case: Case, observation: Observation) -> Verdict:
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
        saw = "this version behaves as the case says, without the bug" if entry.bug else AS_THE_NEWEST
        stale = (stale_entry(case, entry, str(entry.spark), entry.because or "it behaves otherwise", saw),)
    return with_findings(verdict, case, observation, results, stale, entry)


def as_documented(entry: Documented | None) -> Status:
    """Return the status of a cell that does what its entry says, or without an entry what the case says."""
    return "conforms" if entry is None else "bug" if entry.bug else "differs"


def not_applicable(case: Case, version: SparkVersion) -> Verdict | None:
    """The verdict on a cell that does not need to run, None if it does."""
    if case.spark is None or version in case.spark:
        return None
    return no_answer(case, version, "not-applicable", f"the case is about Spark {case.spark}")


def no_answer(
    case: Case,
    version: SparkVersion,
    status: NoAnswer,
    reason: str,
    *,
    origin: SparkVersion | None = None,
    cut: int | None = None,
) -> Verdict:
    """Make the verdict on a cell that no engine answered: the harness failed, the case does not apply, or it did not run."""
    outcome: Outcome | None = None if cut is None or status == "not-applicable" else "no answer"
    return Verdict(case.id, version, status, notes=(reason,), origin=origin, cut=cut, outcome=outcome)


def combine(verdicts: Sequence[Verdict]) -> Verdict:
    """One verdict from repeated runs of a cell; ``flaky`` if behaviours disagree, ValueError for no runs or several cells.

    Unless the others disagree, a ``broken`` run makes the cell ``broken``: what it would have shown is unknown.
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


def _seen_instead(observation: Observation, by_newest: StepResults) -> str:
    """What happened although the case says that the version does not support it."""
    if (error := observation.steps[-1].error) is not None:
        return f"the query started and then failed: {' < '.join(error.classes)} at {error.stage}"
    return "the case runs here, and " + (AS_THE_NEWEST if by_newest.clean else "not as it should on the newest")


def _is_stale(wanted: Steps, newest: Steps, results: StepResults, by_newest: StepResults) -> bool:
    """Whether the version does what the case says without the entry.

    If it also does what the entry says, the entry is stale if it gives a key that the case checks too, and no metric was missing: that
    key tells nothing apart, whatever else the entry adds.
    """
    if results.findings or not by_newest.clean:
        return by_newest.clean
    steps = ((step, newest.of(step.step.number)) for step in wanted.steps)
    given_twice = any(written is not None and step.changed & step.checked & written.checked for step, written in steps)
    return given_twice and not results.notes and not by_newest.notes
