"""What all pages are made from: results, and the cases and catalogues they are about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, TypeAlias

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion, releases
from conformance.language.catalogue import Catalogue
from conformance.policies.case import PolicyCase
from conformance.suite.coverage import Category, coverage
from conformance.suite.discovery import Suite
from conformance.variants.variant import MARK
from reports.analysis.change import Changes, changes
from reports.analysis.equivalence import Behaviour, behaviours
from reports.analysis.matrix import Matrix
from reports.results.reading import Results
from reports.results.records import Target


class Predicted(Protocol):
    """What a model says of a case on a version."""

    @property
    def observation(self) -> Observation: ...

    @property
    def told(self) -> tuple[tuple[str, str], ...]:
        """Its account, line by line, each with its tone."""

    @property
    def as_expected(self) -> bool:
        """Whether it says what the case expects of the version."""


Model: TypeAlias = Callable[[Case, SparkVersion], Predicted | None]
"""None where it cannot tell."""

ALL_PAIRS = 16
"""Up to how many versions each is compared with each; of more, with its neighbours and with the first and last."""


@dataclass(frozen=True)
class Report:
    """Results with everything that explains them."""

    results: Results
    matrix: Matrix
    """With the targets by version, oldest first."""
    cases: Mapping[str, Case]
    """Id → the case as it was when it ran; a case that is not at hand, or has changed since, is not among them."""
    policies: Mapping[str, PolicyCase] = field(default_factory=dict)
    """The same of cases on watermark policies, which the model answers."""
    changed: Mapping[str, Case] = field(default_factory=dict)
    """Id → a case that is at hand and has changed since it ran, as it is now: good for its title and nothing else."""
    catalogue: Catalogue | None = None
    covered: tuple[Category, ...] = ()
    model: Model | None = None

    @classmethod
    def of(cls, results: Results, suite: Suite, model: Model | None = None) -> Report:
        """Put results and the suite they may be of together."""
        matrix = Matrix.of(results)
        matrix = replace(matrix, targets=tuple(sorted(matrix.targets, key=_age)))
        ran = {cell.case: cell.case_digest for cell in results.cells}
        at_hand = {case.id: case for case in suite.cases if case.id in ran}
        # What a variant showed is told as if the case had run as it is written.
        at_hand |= {
            cell.case: at_hand[cell.written] for cell in results.cells if cell.variant and cell.written in at_hand
        }
        policies = {case.id: case for case in suite.policy_cases if ran.get(case.id) == case.digest}
        catalogue = next(iter(suite.catalogues.values()), None)
        return cls(
            results=results,
            matrix=matrix,
            cases={id: case for id, case in at_hand.items() if case.digest == ran[id]},
            policies=policies,
            changed={id: case for id, case in at_hand.items() if case.digest != ran[id]},
            catalogue=catalogue,
            covered=coverage((*suite.cases, *suite.policy_cases), catalogue) if catalogue is not None else (),
            model=model,
        )

    @property
    def targets(self) -> tuple[Target, ...]:
        return self.matrix.targets

    @cached_property
    def versions(self) -> tuple[Target, ...]:
        """The targets that are versions of Spark: those that can be held against each other."""
        return tuple(target for target in self.targets if target.version is not None)

    def case(self, id: str) -> Case | PolicyCase | None:
        """The case as it was when it ran, for Spark or on a policy."""
        return self.cases.get(id) or self.policies.get(id)

    def title(self, id: str) -> str:
        """The sentence of the case, or its id where the case is not at hand."""
        case = self.case(id) or self.changed.get(id)
        if case is None:
            return id
        title = " ".join(case.title.split())
        variant = id.removeprefix(case.id).removeprefix(MARK)
        return f"{title} ({variant})" if variant else title

    @cached_property
    def behaviours(self) -> Mapping[str, tuple[Behaviour, ...]]:
        """Case id → the behaviours that were seen."""
        found = {}
        for case in self.matrix.cases:
            cells = [self.matrix.cells.get((case, target.name)) for target in self.targets]
            found[case] = behaviours([cell for cell in cells if cell is not None])
        return found

    @cached_property
    def pairs(self) -> tuple[Changes, ...]:
        """What changes between two versions, from the older to the newer, for each pair that has a page."""
        last = len(self.versions) - 1
        return tuple(
            changes(self.matrix, before, after)
            for at, before in enumerate(self.versions)
            for to, after in enumerate(self.versions)
            if at < to and (last < ALL_PAIRS or to - at == 1 or at == 0 or to == last)
        )

    @cached_property
    def foremost(self) -> Changes | None:
        """The pair that most people ask for.

        From Apache's release to somebody's own Spark of that number, where there is one; else from the newest release of the major
        line before the newest, to the newest.
        """
        if not self.pairs:
            return None
        own = [target for target in self.versions if not target.apache]
        for pair in self.pairs:
            if pair.after in own and pair.before.apache and pair.before.version == pair.after.version:
                return pair
        majors = [version.major for target in self.versions if (version := target.version) is not None]
        before = [target for target, major in zip(self.versions, majors, strict=True) if major < majors[-1]]
        chosen = before[-1] if before else self.versions[0]
        return next(pair for pair in self.pairs if pair.before == chosen and pair.after == self.versions[-1])


def _age(target: Target) -> tuple[bool, SparkVersion, bool, str]:
    version = target.version
    return version is None, version or releases()[0], not target.apache, target.name
