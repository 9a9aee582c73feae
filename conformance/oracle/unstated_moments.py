"""Steps that say which rows come out, but not in which of their micro-batches.

Such a step passes if the rows come out a micro-batch too early or too late. The reference model says how many micro-batches a step has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from conformance.core.case import Case
from conformance.core.observation import BatchSeen, Observation
from conformance.core.versions import SparkVersion, releases
from conformance.judging.expected import Steps, expected
from conformance.model.errors import Unpredictable
from conformance.oracle.prediction import predict


@dataclass(frozen=True)
class UnstatedMoment:
    """A step whose rows may come out in any of its micro-batches."""

    case: Case
    version: SparkVersion
    """The newest version for which the case says this."""
    step: int
    batches: tuple[BatchSeen, ...]

    @property
    def path(self) -> Path:
        return self.case.path

    @property
    def line(self) -> int:
        lines = self.case.lines
        entry = self.case.differs_on(self.version)
        if entry is not None and self.step in entry.steps:
            number = self.case.differs.index(entry) + 1
            name = self.case.steps[self.step - 1].name
            changed = (f"differs.{number}.steps.{key}" for key in (self.step, name))
            return next((lines[key] for key in changed if key in lines), lines.get(f"differs.{number}", 1))
        return lines.get(f"steps.{self.step}.expect", lines.get(f"steps.{self.step}", 1))

    @property
    def message(self) -> str:
        kinds = ", ".join(batch.kind for batch in self.batches)
        return (
            f"step {self.step} has {len(self.batches)} micro-batches on {self.version} ({kinds}), and does not say which "
            "of them emits its rows: replace `rows` by `batches`"
        )


def unstated_moments(cases: Iterable[Case]) -> Iterator[UnstatedMoment]:
    """The steps of these cases that do not say which micro-batch emits, by what the model predicts.

    Looks at the newest version for which each expectation applies: the newest of all, and the newest of each ``differs`` entry. A case
    that the model cannot predict there is left out; ``conformance case validate --model`` names these. Cases of one file that share the
    step are named once.
    """
    by_line: dict[tuple[Path, int], UnstatedMoment] = {}
    for case in cases:
        for version in _versions(case):
            # Most steps emit nothing, or say where: ask the model only about the rest.
            if not _open_steps(case, version):
                continue
            with suppress(Unpredictable):
                for moment in unstated_in(case, version, predict(case, version).observation):
                    by_line.setdefault((moment.path, moment.line), moment)
    yield from by_line.values()


def unstated_in(case: Case, version: SparkVersion, observation: Observation) -> Iterator[UnstatedMoment]:
    open_steps = _open_steps(case, version)
    for seen in observation.steps:
        several = len(seen.batches) > 1 and any(batch.rows for batch in seen.batches)
        if seen.number in open_steps and seen.error is None and several:
            yield UnstatedMoment(case, version, seen.number, seen.batches)


def _open_steps(case: Case, version: SparkVersion) -> frozenset[int]:
    """The steps that expect rows, but would not say in which of several micro-batches; no rows come out of none.

    In real time rows come out as they arrive, and how many empty micro-batches run on meanwhile is a matter of the machine's speed.
    """
    if case.in_real_time:
        return frozenset()
    wanted = expected(case, version)
    steps = wanted.steps if isinstance(wanted, Steps) else ()
    emitting = (step for step in steps if "rows" in step.checked and step.expectation.rows != ())
    return frozenset(
        step.step.number
        for step in emitting
        if step.expectation.batches is None
        or not all("rows" in batch.model_fields_set for batch in step.expectation.batches)
    )


def _versions(case: Case) -> list[SparkVersion]:
    """The newest version that each ``differs`` entry covers, and the newest that none does."""
    newest: dict[int | None, SparkVersion] = {}
    for version in releases():
        if case.applies_to(version):
            entry = case.differs_on(version)
            newest[None if entry is None else case.differs.index(entry)] = version
    return sorted(newest.values(), reverse=True)
