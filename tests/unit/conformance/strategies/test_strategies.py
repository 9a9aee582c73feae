"""Generated cases: each is a case, prints as itself, and together they reach what they are meant to reach."""

from contextlib import suppress
from functools import cache

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from conformance.core.case import Add, Backlog, Idle, Restart
from conformance.core.errors import WrongUsage
from conformance.core.operations import OPERATIONS, Sql
from conformance.core.spark_types import parse_schema
from conformance.core.versions import SparkVersion
from conformance.fuzzing.coverage import Drawing
from conformance.language import case_from, read_case
from conformance.language.printing import printed
from conformance.model.errors import Unpredictable
from conformance.oracle.prediction import predict
from conformance.strategies import FAMILIES, cases, delays, pipelines, schemas, traces
from conformance.strategies.cases import changed, generated
from tests.support.effort import number

QUICK = settings(
    max_examples=number(30, 200),
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
EVERY = list(FAMILIES)
VERSION = SparkVersion.parse("3.5.9")


@cache
def some():
    """The same ones each time, and more of those in which a join in SQL is one of several choices."""
    many = {family: 30 if family == "sql" else number(18, 30) for family in EVERY}
    return tuple(case_from(one.written, family) for family in EVERY for one in Drawing([family], 5).some(many[family]))


@cache
def predicted():
    """Those of them that the model predicts, each with its prediction."""
    found = []
    for case in some():
        with suppress(Unpredictable):
            found.append((case, predict(case, VERSION)))
    return tuple(found)


@QUICK
@given(cases(EVERY))
def test_a_case_prints_as_itself(tmp_path_factory, written):
    case = case_from(written, "generated")
    file = tmp_path_factory.getbasetemp() / "generated.yaml"
    file.write_text(printed(written), encoding="utf-8")
    read = read_case(file, "generated")
    assert read.digest == case.digest
    assert read.model_copy(update={"path": case.path, "lines": case.lines}) == case


@settings(QUICK, max_examples=number(20, 60))
@given(st.data())
def test_a_changed_case_is_a_case(data):
    one = data.draw(generated(EVERY))
    for _ in range(3):
        one = data.draw(changed([one]))
        case_from(one.written, "changed")


@settings(QUICK, max_examples=number(25, 50))
@given(schemas(), delays(), pipelines(["windows"]), traces())
def test_the_parts_make_a_case(schema, delay, pipeline, steps):
    assert {"event_time", "key"} <= {field.name for field in parse_schema(schema).fields}
    assert pipeline[0] == {"from": "events"}
    written = {
        "title": "The parts make a case",
        "streams": {"events": "event_time TIMESTAMP, key STRING, value INT"},
        "query": [{"from": "events"}, {"withWatermark": ["event_time", delay]}],
        "steps": steps,
    }
    assert case_from(written, "parts").steps


def test_every_operation_is_drawn_but_peoples_own_code():
    names = {operation.name for case in some() for operation in case.operations()}
    assert names == set(OPERATIONS) - {"call"}


def test_joins_and_unions_are_drawn_in_sql_too():
    statements = [one.statement for case in some() for one in case.operations() if isinstance(one, Sql) and one.views]
    assert {"JOIN" in text for text in statements} == {True, False}


def test_drawn_cases_need_no_permission():
    """``fuzz`` runs them without --allow-code."""
    assert {one.reason for case in some() for one in case.needs_code} == set()


def test_every_sort_of_step_is_drawn():
    steps = [step.action for case in some() for step in case.steps]
    for sort in (Add, Backlog, Idle, Restart):
        assert sum(isinstance(step, sort) for step in steps) >= 8
    hows = {step.how for step in steps if isinstance(step, Restart)}
    assert hows == {"graceful", "crash-before-commit", "kill"}


@pytest.mark.parametrize("family", [name for name in EVERY if name not in ("kills", "state-functions", "event-times")])
def test_rows_are_late_and_state_is_over(family):
    """A generator that draws times at random makes neither."""
    late = over = 0
    for told in (told for case, told in predicted() if case.id == family):
        operators = [one for step in told.steps for batch in step.batches for one in batch.operators]
        late += any(one.late for one in operators)
        over += any(one.evicted for one in operators)
    assert late >= 2
    assert over >= 2


def test_most_cases_are_accepted():
    """What Spark refuses at the start shows nothing more than that."""
    accepted = refused = 0
    for _, told in predicted():
        first = told.observation.steps[0].error
        refused += first is not None
        accepted += first is None
    # Most are predicted at all, and most of those run.
    assert accepted + refused >= len(some()) * 3 / 4
    assert accepted >= 3 * refused


def test_an_unknown_family():
    with pytest.raises(WrongUsage, match="Did you mean joins"):
        cases(["join"])
