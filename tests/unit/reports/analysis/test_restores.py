"""Every stateful operator has a published answer of a checkpoint for each usual pair of versions that both run it.

As Flink's restore tests: a new operator, a new version or a new pair has no silent gap.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import get_args

import pytest

from conformance.core.case import Case, Restart, Step
from conformance.judging.verdict import AS_THE_CASE_SAYS
from conformance.query import read_query
from conformance.query.reading import (
    JoinKind,
    QueryAggregation,
    QueryDeduplication,
    QueryJoin,
    QueryStateFunction,
    StatefulOperator,
)
from conformance.suite import discovery
from harness.targets import targets
from reports.results.published import patch_results, published_results
from reports.results.reading import Results

Pair = tuple[str, str]
EACH = frozenset({f"{join} join" for join in get_args(JoinKind)} - {"leftAnti join"}) | {
    "aggregation",
    "window aggregation",
    "session aggregation",
    "deduplication",
    "deduplication within the watermark",
    "applyInPandasWithState",
    "transformWithState",
    "limit",
    "several operators",
}
"""Every kind of a stateful operator that a query of PySpark can have; Spark refuses an anti join of two streams."""


def kinds(case: Case) -> frozenset[str]:
    """The kinds of stateful operators in a case."""
    readings = [read_query(pipeline, case.streams) for pipeline in case.pipelines()]
    found = {kind(operator) for reading in readings for operator in reading.stateful}
    found.update("limit" for reading in readings if reading.limits)
    found.update("several operators" for reading in readings if len(reading.stateful) > 1)
    return frozenset(found)


def operators(case: Case) -> frozenset[str]:
    """The kinds of stateful operators in a case, apart by the state store that it chooses."""
    store = " in RocksDB" if any("rocksdb" in str(value).lower() for value in case.conf.values()) else ""
    return frozenset(f"{name}{store}" for name in kinds(case))


def kind(operator: StatefulOperator) -> str:
    match operator:
        case QueryJoin():
            return f"{operator.kind} join"
        case QueryDeduplication():
            return "deduplication within the watermark" if operator.within_watermark else "deduplication"
        case QueryStateFunction():
            return operator.operation
        case QueryAggregation():
            windows = {window.kind for window in operator.windows}
            if "session" in windows:
                return "session aggregation"
            return "window aggregation" if windows else "aggregation"


def missing(results: Results, cases: Iterable[Case], pairs: Iterable[Pair]) -> Iterator[str]:
    """The operators of which no checkpoint of a pair was resumed, though a case with them leaves one for it."""
    # A case that divides its state is about that, which most versions cannot do.
    of_case = {case.id: operators(case) for case in cases if not any(map(_divides_state, case.steps))}
    left: dict[Pair, set[str]] = defaultdict(set)
    resumed: dict[Pair, set[str]] = defaultdict(set)
    for checkpoint in results.upgrades:
        pair, found = checkpoint.pair, of_case.get(checkpoint.case, frozenset())
        if checkpoint.status == "not-run":
            left[pair] |= found
        elif checkpoint.status in AS_THE_CASE_SAYS:
            resumed[pair] |= found
    yield from (f"{pair[0]} → {pair[1]}: {one}" for pair in pairs for one in sorted(left[pair] - resumed[pair]))


def running(published: Iterable[Results], having: Mapping[str, frozenset[str]]) -> dict[str, set[str]]:
    """Kind → the targets on which a query with such an operator ran a micro-batch; ``having``: the kinds of each case."""
    ran: dict[str, set[str]] = defaultdict(set)
    for cell in (cell for results in published for cell in results.cells):
        if cell.observation is not None and any(step.batches for step in cell.observation.steps):
            for found in having.get(cell.case, ()):
                ran[found].add(cell.target)
    return ran


def without_handoff(
    ran: Mapping[str, set[str]], results: Results, having: Mapping[str, frozenset[str]], pairs: Iterable[Pair]
) -> Iterator[str]:
    """The kinds that both versions of a pair run, and of which no checkpoint was handed over."""
    resumed: dict[Pair, set[str]] = defaultdict(set)
    for checkpoint in results.upgrades:
        if checkpoint.status in AS_THE_CASE_SAYS:
            resumed[checkpoint.pair] |= having.get(checkpoint.case, frozenset())
    for origin, to in pairs:
        both = {found for found, targets in ran.items() if {origin, to} <= targets}
        yield from (f"{origin} → {to}: {one}" for one in sorted(both - resumed[origin, to]))


def _divides_state(step: Step) -> bool:
    return isinstance(step.action, Restart) and step.action.repartition is not None


@pytest.fixture(scope="module")
def results() -> Results:
    return published_results()


@pytest.fixture(scope="module")
def cases() -> tuple[Case, ...]:
    return discovery.load().cases


def test_every_stateful_operator_has_a_checkpoint_for_each_usual_pair(
    results: Results, cases: tuple[Case, ...]
) -> None:
    pairs = [(before.name, after.name) for before, after in targets.pairs(targets.Targets.load())]
    assert len(pairs) >= 20
    assert {one.pair for one in results.upgrades} >= set(pairs)
    assert list(missing(results, cases, pairs)) == []


@pytest.fixture(scope="module")
def having(cases: tuple[Case, ...]) -> dict[str, frozenset[str]]:
    return {case.id: kinds(case) for case in cases if not any(map(_divides_state, case.steps))}


@pytest.fixture(scope="module")
def ran(results: Results, having: dict[str, frozenset[str]]) -> dict[str, set[str]]:
    return running((results, *patch_results()), having)


def test_every_operator_that_two_neighbouring_lines_run_is_handed_over(
    results: Results, having: dict[str, frozenset[str]], ran: dict[str, set[str]]
) -> None:
    """The test above asks for what a case announces; this one for what both versions run, whether or not a case announces it."""
    pairs = [(before.name, after.name) for before, after in targets.pairs(targets.Targets.load())]
    assert ran.keys() == EACH
    assert list(without_handoff(ran, results, having, pairs)) == []


def test_an_operator_without_any_case_that_leaves_a_checkpoint_is_named(
    results: Results, having: dict[str, frozenset[str]], ran: dict[str, set[str]]
) -> None:
    pair = ("spark-4.2.1", "spark-4.3.0")
    for gone in EACH:
        others = tuple(one for one in results.upgrades if gone not in having.get(one.case, ()))
        named = list(without_handoff(ran, replace(results, upgrades=others), having, [pair]))
        assert " → ".join(pair) + f": {gone}" in named


def test_an_operator_without_a_checkpoint_is_named(results: Results, cases: tuple[Case, ...]) -> None:
    inner = {case.id for case in cases if "inner join" in operators(case)}
    not_run = tuple(
        one.model_copy(update={"status": "not-run"}) if one.case in inner else one for one in results.upgrades
    )
    named = list(missing(replace(results, upgrades=not_run), cases, [("spark-3.5.9", "spark-4.3.0")]))
    assert "spark-3.5.9 → spark-4.3.0: inner join" in named
