"""The input of every page and export: results, their cases and catalogues, and what follows from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Self

from conformance.account.account import BatchAccount, account, batches_of
from conformance.core.case import Case
from conformance.core.versions import SparkVersion, releases
from conformance.language.catalogue import Catalogue
from conformance.policies.case import PolicyCase
from conformance.suite.conditions import Condition, by_condition
from conformance.suite.coverage import Category, coverage
from conformance.suite.discovery import Suite
from conformance.suite.features import needs
from conformance.variants.catalogue import MARK
from reports.analysis.change import Change, Changes, Turn, changes, turns
from reports.analysis.checkpoints import UpgradeMatrix, by_pair
from reports.analysis.columns import BesideApache, ForeignColumn, beside_apache
from reports.analysis.equivalence import Behaviour
from reports.analysis.matrix import Matrix
from reports.analysis.model_agreement import ModelAgreement, ModelPrediction, model_agreement
from reports.results.reading import Results
from reports.results.records import Cell, DocumentedDifference, TargetRecord
from reports.results.status import NO_RESULT

ALL_PAIRS = 16
"""Up to this many versions, every pair is compared; with more, only neighbours and pairs with the first or last."""


@dataclass(frozen=True)
class Report:
    results: Results
    matrix: Matrix
    """The matrix whose targets are in the order of versions, oldest first."""
    cases: Mapping[str, Case]
    """The cases as they were when they ran, by id; without cases that were not found or changed since."""
    policies: Mapping[str, PolicyCase] = field(default_factory=dict)
    """The same for cases that test watermark policies."""
    changed: Mapping[str, Case] = field(default_factory=dict)
    """The cases that changed since they ran, as they are now, by id; used only for their titles."""
    catalogue: Catalogue | None = None
    covered: tuple[Category, ...] = ()
    model: ModelAgreement | None = None
    background: frozenset[str] = frozenset()
    """The names of the targets that were not run with the others: published results to compare with."""
    patches: tuple[Results, ...] = ()
    columns: tuple[BesideApache, ...] = ()
    """Results of others, which count in no total."""

    @classmethod
    def of(
        cls,
        results: Results,
        suite: Suite,
        background: frozenset[str] = frozenset(),
        patches: Sequence[Results] = (),
        columns: Sequence[ForeignColumn] = (),
    ) -> Self:
        """Combine results with the suite they came from. Raises UnusableResults: they contradict a case of it."""
        results.check_with(suite.cases)
        matrix = Matrix.of(results)
        matrix = replace(matrix, targets=tuple(sorted(matrix.targets, key=_age)))
        ran = {cell.case: cell.case_digest for cell in results.cells}
        digests = {case.id: case.digest for case in suite.cases}
        at_hand = {case.id: case for case in suite.cases if case.id in ran}
        # The results of a variant are shown as if the case had run as written.
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
            background=background,
            patches=tuple(patches),
            columns=tuple(beside_apache(column, results, digests) for column in columns),
        )

    def with_model(self) -> Self:
        """Return the same report with what the reference model predicts of the targets that were run."""
        if not self.cases:
            return replace(self, model=None)
        shown = frozenset((case, group.shown.target) for case in self.cases for group in self.sections(case))
        own = [target for target in self.versions if target in self.own]
        return replace(self, model=model_agreement(self.cases, self.matrix.cells, own, shown))

    @property
    def date(self) -> str:
        """``2026-11-25``: the day that every page gives for the results."""
        return f"{self.results.footer.finished:%Y-%m-%d}"

    @property
    def targets(self) -> tuple[TargetRecord, ...]:
        return self.matrix.targets

    @cached_property
    def versions(self) -> tuple[TargetRecord, ...]:
        return tuple(target for target in self.targets if target.version is not None)

    @property
    def own(self) -> tuple[TargetRecord, ...]:
        return tuple(target for target in self.targets if target.name not in self.background)

    def case(self, id: str) -> Case | PolicyCase | None:
        return self.cases.get(id) or self.policies.get(id)

    def title(self, id: str) -> str:
        """Return the title of the case, or its id if the case was not found."""
        case = self.case(id) or self.changed.get(id)
        if case is None:
            return id
        title = " ".join(case.title.split())
        variant = id.removeprefix(case.id).removeprefix(MARK)
        return f"{title} ({variant})" if variant else title

    def condition(self, change: Change) -> Condition:
        """Return under which condition a job can meet the change."""
        return change.condition(self.cases.get(change.case))

    def by_condition(self, pair: Changes) -> str:
        """Count the changes of rows: ``4 with default settings, 5 only with a setting``."""
        return by_condition(self.condition(change) for change in pair.changes if change.of_rows)

    def prediction(self, cell: Cell) -> ModelPrediction | None:
        return self.model.predictions.get(cell.key) if self.model is not None else None

    def batches(self, case: Case, target: TargetRecord, cell: Cell) -> tuple[BatchAccount, ...]:
        """Return the account of the micro-batches of an answer, with what the model knows of them; empty without an answer."""
        if (predicted := self.prediction(cell)) is not None:
            return predicted.account
        return batches_of(account(case, target.version, cell.observation)) if cell.observation is not None else ()

    @cached_property
    def upgrades(self) -> UpgradeMatrix:
        return UpgradeMatrix(by_pair(self.results.upgrades), self.cases)

    @cached_property
    def upgrades_of_cases(self) -> Mapping[str, Sequence[Cell]]:
        """Maps each case to its checkpoints, by id."""
        own: dict[str, list[Cell]] = {}
        for cell in self.results.upgrades:
            own.setdefault(cell.case, []).append(cell)
        return own

    @cached_property
    def features(self) -> Mapping[str, tuple[str, ...]]:
        """The features of the query of each case that may not need any feature, by id."""
        return needs(self.cases.values())

    @property
    def behaviours(self) -> Mapping[str, tuple[Behaviour, ...]]:
        return self.matrix.behaviours

    @cached_property
    def turns(self) -> Mapping[str, tuple[Turn, ...]]:
        """Maps each case to where its behaviour changes from one version to the next."""
        cells = {case: [self.matrix.cell(case, target) for target in self.targets] for case in self.matrix.cases}
        return {
            case: tuple(self._located(case, turn) for turn in turns(row, self.targets)) for case, row in cells.items()
        }

    def _located(self, case: str, turn: Turn) -> Turn:
        """Return the turn with the first patch release that shows it instead of the newest of its line, if there are results of it."""
        (_, before), (_, after) = turn.before, turn.after
        if before.version is None or after.version is None or not self.patches:
            return turn
        between = [
            target
            for target in self.every_release.targets
            if target in (before, after) or (target.apache and _age(before) < _age(target) < _age(after))
        ]
        patched = [*turns([self.every_release.cell(case, target) for target in between], between)]
        return replace(turn, since=patched[-1].since) if patched else turn

    @cached_property
    def every_release(self) -> Matrix:
        digests = {cell.case: cell.case_digest for cell in self.matrix.cells.values()}
        own = {target.name: target for target in self.matrix.targets}
        cells, targets = dict(self.matrix.cells), dict(own)
        for results in self.patches:
            more = {target.name: target for target in results.header.targets if target.name not in own}
            targets |= more
            cells |= {
                cell.key: cell
                for cell in results.cells
                if cell.target in more and cell.status not in NO_RESULT and digests.get(cell.case) == cell.case_digest
            }
        return Matrix(self.matrix.cases, tuple(sorted(targets.values(), key=_age)), cells)

    def sections(self, case: str) -> tuple[Behaviour, ...]:
        """Split the behaviours of a case where the same behaviour is judged differently on different versions."""
        sections = []
        for behaviour in self.behaviours.get(case, ()):
            groups: dict[tuple[str, DocumentedDifference | None], list[Cell]] = {}
            for cell in reversed(behaviour.cells):
                groups.setdefault((cell.status, cell.differs), []).append(cell)
            sections += [Behaviour(tuple(reversed(cells))) for cells in groups.values()]
        return tuple(sections)

    def find_shared(self) -> None:
        """Find what many pages ask for, before several processes make them."""
        for pair in self.pairs:
            for ends in ((pair.before, pair.after), (pair.after, pair.before)):
                self.upgrades.between(*ends)
        for _ in (self.behaviours, self.turns, self.features, self.matrix.bugs, self.matrix.by_target):
            pass
        _ = self.every_release, self.upgrades_of_cases

    @cached_property
    def pairs(self) -> tuple[Changes, ...]:
        """The changes from an older to a newer version, for each pair that has a page."""
        last = len(self.versions) - 1
        return tuple(
            changes(self.matrix, before, after)
            for at, before in enumerate(self.versions)
            for to, after in enumerate(self.versions)
            if at < to
            and (
                last < ALL_PAIRS
                or to - at == 1
                or at == 0
                or to == last
                or (self.background and not {before.name, after.name} <= self.background)
            )
        )

    @cached_property
    def pairs_without_page(self) -> tuple[tuple[TargetRecord, TargetRecord], ...]:
        """Every other two versions, patch releases too, the older one first."""
        shown = {(pair.before.name, pair.after.name) for pair in self.pairs}
        every = combinations((target for target in self.every_release.targets if target.version is not None), 2)
        return tuple((before, after) for before, after in every if (before.name, after.name) not in shown)

    @cached_property
    def front_pair(self) -> Changes | None:
        """The pair for the front page.

        With published results in the background, it leads from the nearest of them to the newest version that was run, or else from
        that version to the one after it. Otherwise it leads from Apache's release to another build of the same version, if there is
        one, else from the newest release of the previous major version to the newest release.
        """
        if not self.pairs:
            return None
        if self.background:
            ran = [target for target in self.versions if target in self.own]
            mixed = [
                pair
                for pair in self.pairs
                if (pair.before in ran) != (pair.after in ran) and ran[-1] in (pair.before, pair.after)
            ]
            return next((pair for pair in reversed(mixed) if pair.after == ran[-1]), next(iter(mixed), None))
        own = [target for target in self.versions if not target.apache]
        for pair in self.pairs:
            if pair.after in own and pair.before.apache and pair.before.version == pair.after.version:
                return pair
        majors = [version.major for target in self.versions if (version := target.version) is not None]
        at = max(majors.index(majors[-1]) - 1, 0)
        chosen = self.versions[at]
        return next(pair for pair in self.pairs if pair.before == chosen and pair.after == self.versions[-1])


def _age(target: TargetRecord) -> tuple[bool, SparkVersion, bool, str]:
    if (version := target.version) is None:
        return True, releases()[0], False, ""  # columns without a version stay in their order
    return False, version, not target.apache, target.name
