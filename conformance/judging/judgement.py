"""Compares an observation with what is expected of its steps: the part of judging that runs and upgrades share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from conformance.core.case import Case, Differs, ExpectedError, Upgrade
from conformance.core.observation import BatchSeen, ErrorSeen, Observation, StepSeen
from conformance.core.patterns import occurs
from conformance.core.versions import SparkVersion
from conformance.core.wording import ticket
from conformance.judging.consistency import disagreements, lost_or_doubled, state_disagreements, why_unread
from conformance.judging.expected import Steps, Unsupported
from conformance.judging.finding import ErrorDiffers, ErrorExpectedAs, Finding, FindingLocation, StaleEntry
from conformance.judging.rows import OutputSchema
from conformance.judging.step_comparison import Note, PlanNotTaken, SeenStep, compare

_DOTTED = re.compile(r"[\w.$]+")
_PACKAGE = re.compile(r"[a-z_]\w*")
_CLASS = re.compile(r"(?:\w+\$)*([A-Z]\w*)")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9]*_[A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")
"""``[STREAM_FAILED]``: through Connect, the cause of a failure is only in the text that follows this."""


@dataclass(frozen=True)
class StepResults:
    """The steps of an observation compared with what is expected of them."""

    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    broken: str | None = None
    """Why the observation cannot be judged."""

    @property
    def clean(self) -> bool:
        return not self.findings and self.broken is None


@dataclass(frozen=True)
class Judgement:
    """The result of judging an observation: as expected, or one of the failures that all verdicts share."""

    failure: Literal["violates", "broken"] | None
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]


def judgement(case: Case, observation: Observation, results: StepResults, stale: Sequence[StaleEntry]) -> Judgement:
    """Put together what is wrong with an observation.

    Args:
        case: the case.
        observation: of all of it.
        results: its steps compared with what is expected of them.
        stale: entries of the case that turned out to be stale.
    """
    if results.broken is not None:
        return Judgement("broken", results.findings, (results.broken, *results.notes))
    witnesses = (disagreements, state_disagreements, lost_or_doubled)
    wrong = (*results.findings, *(found for compared in witnesses for found in compared(case, observation)))
    # Findings about the same step and micro-batches stand together.
    findings = (*stale, *sorted(wrong, key=lambda found: (found.place.step or 0, found.place.batches)))
    return Judgement("violates" if findings else None, findings, results.notes)


def why_incoherent(case: Case, observation: Observation) -> str | None:
    """Why this cannot be an observation of the case, None if it can."""
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
    """Compare each step with what is expected of it, up to the one that ends the case.

    Args:
        wanted: what is expected of each step.
        case: the case.
        observation: what it showed.
        version_of: the version that ran the step of this number.

    Raises:
        PatternTooSlow: a pattern of the case was not searched to the end.
    """
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
                for found in compare(SeenStep(case, version_of(seen.number), schema, step, seen, before)):
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


def _compare_end(wanted: ExpectedError | None, seen: StepSeen, case: Case) -> Iterator[Finding]:
    """The step at which the case ends: with the expected error, with another, or without one that was expected."""
    if seen.error is None or wanted is None:
        rest = tuple(range(seen.number + 1, len(case.steps) + 1)) if seen.error is not None else ()
        yield error_differs(case, seen, wanted, unreached=rest)
    elif (found := error_differs(case, seen, wanted)).mismatches:
        yield found


def mistake_of_the_author(seen: StepSeen) -> tuple[str, ...]:
    """What the code of the case's author did wrong, and the evidence, if that ended the step; empty if it did not.

    Unless the case expects it, it says nothing about Spark.
    """
    own = seen.error.own_code if seen.error is not None else None
    return own.lines() if own is not None else ()


def error_differs(
    case: Case, seen: StepSeen, wanted: ExpectedError | ErrorExpectedAs | None, *, unreached: tuple[int, ...] = ()
) -> ErrorDiffers:
    """The finding on a step whose error, or lack of one, is not as expected."""
    mismatches: tuple[Literal["class", "message", "stage"], ...] = ()
    if isinstance(wanted, ExpectedError):
        mismatches = tuple(mismatching(wanted, seen.error)) if seen.error is not None else ()
        wanted = ErrorExpectedAs(classes=wanted.classes, message=wanted.message, stage=wanted.stage)
    place = FindingLocation.of_step(case, seen.number, tuple(batch.id for batch in seen.batches))
    return ErrorDiffers(place=place, expected=wanted, observed=seen.error, mismatches=mismatches, unreached=unreached)


def mismatching(wanted: ExpectedError, seen: ErrorSeen) -> Iterator[Literal["class", "message", "stage"]]:
    """The parts of an error that are not as expected."""
    if wanted.classes and not {*seen.classes, *_classes_in(seen.message)} & set(wanted.classes):
        yield "class"
    if wanted.message is not None and not occurs(wanted.message, seen.message):
        yield "message"
    if wanted.stage is not None and wanted.stage != seen.stage:
        yield "stage"


def rejects_the_query(error: ErrorSeen | None) -> bool:
    """Whether Spark rejected the query before it ran."""
    return error is not None and error.stage in ("analysis", "start")


def lacks_the_feature(wanted: Unsupported, error: ErrorSeen | None) -> bool:
    """Whether Spark rejected the query before it ran, with the error that says that the feature is missing."""
    return rejects_the_query(error) and error is not None and not tuple(mismatching(wanted.error, error))


def another_refusal(case: Case, seen: StepSeen, wanted: Unsupported) -> tuple[ErrorDiffers, tuple[str, ...]]:
    """The finding on a query that does not run, but not because the feature is missing; and what to do about it, as notes."""
    unnamed = "the `unsupported` entry names no error, so only a missing method counts: add `error: {class, message}`"
    return error_differs(case, seen, wanted.error), () if wanted.entry.error is not None else (unnamed,)


def stale_entry(case: Case, entry: Differs | Upgrade, spark: str, documented: str, observed: str) -> StaleEntry:
    """The finding on an entry that documents a difference which is not there."""
    entries: Sequence[object]
    aspect: Literal["differs", "upgrades"]
    entries, aspect = (case.differs, "differs") if isinstance(entry, Differs) else (case.upgrades, "upgrades")
    number = next(at for at, other in enumerate(entries, 1) if other is entry)
    link = ticket(entry.link, entry.introduced_by, bug=entry.bug)
    return StaleEntry(
        aspect=aspect,
        place=FindingLocation.of_entry(case, number, aspect),
        spark=spark,
        expected=f"{documented}{link}",
        observed=observed,
    )


def _classes_in(message: str) -> Iterator[str]:
    """Simple and qualified names of the classes in a message, and the error conditions that it gives in brackets.

    Errors inside ``foreachBatch`` arrive as text only. One pattern for qualified names would take quadratic time on hostile text.
    """
    for dotted in _DOTTED.findall(message):
        packages: list[str] = []
        for part in dotted.split("."):
            if packages and (found := _CLASS.match(part)):
                yield ".".join((*packages, found[0]))
                yield found[1]
            _, dollar, package = part.rpartition("$")
            if dollar or not _PACKAGE.fullmatch(package):
                packages = []
            if _PACKAGE.fullmatch(package):
                packages.append(package)
    yield from _CONDITION.findall(message)
