"""Whether two answers to a case are the same, whichever of them is first."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.core.observation import BatchBehaviour, BatchSeen, Column, Observation, StepSeen
from conformance.judging import comparison as module
from conformance.judging.comparison import divergence, divergences
from conformance.judging.consistency import digest_omits_instants
from reports.results.reading import Results
from tests.support.observations import COLUMNS, batch, failed, observed, step, window

ROWS = st.lists(st.sampled_from([window("12:00", "12:10", 1), window("12:10", "12:20", 2)]), max_size=3)
INSTANTS = st.sampled_from([0, 60_000])
BATCHES = st.builds(
    lambda id, kind, rows, dropped, held, ran, left: batch(
        id, *rows, kind=kind, dropped=dropped, state=(held,), watermark=ran, next_watermark=left
    ),
    st.integers(0, 1),
    st.sampled_from(["data", "no-data"]),
    ROWS,
    st.sampled_from([None, 0, 1]),
    st.integers(0, 1),
    st.none() | INSTANTS,
    st.none() | INSTANTS,
)


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    """Answers from few values, so that two of them are often the same."""
    steps: list[StepSeen] = []
    for number in range(1, draw(st.integers(1, 2)) + 1):
        ran = draw(st.lists(BATCHES, max_size=2))
        steps.append(step(number, *ran, watermark=draw(INSTANTS)))
    if draw(st.booleans()):
        error = failed(1, "SparkException", stage=draw(st.sampled_from(["start", "run"]))).error
        steps[-1] = steps[-1].model_copy(update={"error": error})
    return observed(*steps)


ANSWERS = observations()


@given(ANSWERS, st.booleans())
def test_an_answer_is_the_same_as_itself(a: Observation, instants: bool) -> None:
    assert divergence(a, a, instants=instants) is None


@given(ANSWERS, ANSWERS, st.booleans())
def test_it_does_not_matter_which_answer_comes_first(a: Observation, b: Observation, instants: bool) -> None:
    one, other = divergence(a, b, instants=instants), divergence(b, a, instants=instants)
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert (one.step, one.what, one.a, one.b) == (other.step, other.what, other.b, other.a)


@given(ANSWERS, ANSWERS, st.booleans())
def test_equal_digests_are_equal_answers(a: Observation, b: Observation, instants: bool) -> None:
    if a.digest(instants=instants) == b.digest(instants=instants):
        assert divergence(a, b, instants=instants) is None


@given(ANSWERS, ANSWERS, st.booleans())
def test_a_divergence_has_two_values(a: Observation, b: Observation, instants: bool) -> None:
    for found in divergences(a, b, instants=instants):
        assert found.a != found.b
        assert str(found)


@given(ANSWERS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(a: Observation, random) -> None:  # type: ignore[no-untyped-def]
    def shuffled(one: BatchSeen) -> BatchSeen:
        return one.model_copy(update={"rows": tuple(random.sample(one.rows, len(one.rows)))})

    steps = tuple(one.model_copy(update={"batches": tuple(map(shuffled, one.batches))}) for one in a.steps)
    b = a.model_copy(update={"steps": steps})
    assert divergence(a, b) is None
    assert a.behaviour_digest == b.behaviour_digest


def test_every_field_of_a_batch_is_compared() -> None:
    assert set(module._OF_A_BATCH) == set(BatchBehaviour._fields)


@pytest.mark.parametrize(
    ("other", "what", "told"),
    [
        (step(1, batch(0, state=(2,))), "state", "step 1, micro-batch 0: state [1] | [2]"),
        (step(1, batch(0, watermark=60_000)), "watermark", "step 1, micro-batch 0: watermark 00:00 | 00:01"),
        (
            step(1, batch(0), watermark=60_000),
            "watermark after the step",
            "step 1: watermark after the step 00:00 | 00:01",
        ),
        (step(1, batch(0), batch(1)), "micro-batches", "step 1: micro-batches 1 | 2"),
        (failed(1, "SparkException"), "error", "step 1: error none | SparkException at run"),
    ],
)
def test_a_divergence_says_where_and_what(other: StepSeen, what: str, told: str) -> None:
    found = divergence(observed(step(1, batch(0))), observed(other))
    assert (found.what, str(found)) == (what, told)


def test_a_version_without_the_metric_says_nothing_about_drops() -> None:
    counted, uncounted = (observed(step(1, batch(0, dropped=dropped))) for dropped in (3, None))
    assert divergence(counted, uncounted) is None
    assert divergence(uncounted, counted) is None
    assert divergence(counted, observed(step(1, batch(0, dropped=4))))
    assert divergence(uncounted, observed(step(1, batch(0, dropped=None, state=(9,)))))


def test_watermarks_of_the_clock_are_left_out_on_request() -> None:
    today, tomorrow = (
        observed(step(1, batch(0, watermark=now, next_watermark=now), watermark=now)) for now in (1_000, 2_000)
    )
    assert divergence(today, tomorrow)
    assert divergence(today, tomorrow, instants=False) is None
    assert digest_omits_instants(today.digest(instants=False), today)
    assert not digest_omits_instants(today.behaviour_digest, today)


def test_equal_values_written_in_two_ways_are_the_same_row() -> None:
    columns = (Column(name="total", type="decimal(10,2)"),)
    short, long, other = (observed(step(1, batch(0, (text,))), columns=columns) for text in ("1.5", "1.50", "1.51"))
    assert divergence(short, long) is None
    found = divergence(short, other)
    assert found.values == ('only here: ["1.5"]', 'only here: ["1.51"]')


def test_errors_of_two_classes_are_two_behaviours() -> None:
    """A version that refuses a query for another reason than the one before behaves differently."""
    conditions = ("CANNOT_ASSIGN_EVENT_TIME_COLUMN_WITHOUT_WATERMARK", "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION")
    one, other = (observed(failed(1, name, "AnalysisException", stage="analysis")) for name in conditions)
    found = divergence(one, other)
    assert found is not None
    assert str(found) == f"step 1: error {conditions[0]} at analysis | {conditions[1]} at analysis"
    assert one.behaviour_digest != other.behaviour_digest
    assert divergence(one, other, error_classes=False) is None


def test_what_an_error_is_wrapped_in_does_not_matter() -> None:
    one = observed(failed(1, "Py4JJavaError", "SparkException", "StateSchemaNotCompatible"))
    other = observed(failed(1, "STREAM_FAILED", "StreamingQueryException", "StateSchemaNotCompatible", message="else"))
    assert divergence(one, other) is None
    assert one.behaviour_digest == other.behaviour_digest


DIGESTS = {
    ("late-drops/window-still-open", "spark-3.0.3"): "7aadff46f14cfba1e5d9129afbd3ac13",
    ("late-drops/window-still-open", "spark-4.3.0"): "975f9bee917eecc808f3a5f41a818a37",
    (
        "recovery/dropped-operator-is-refused",
        "spark-4.3.0",
    ): "1335e2e2282af8ec2978e8a2deaff289",
    (
        "event-time-column/processing-time-as-event-time",
        "spark-3.5.9",
    ): "e73186fbb33fb69063411659a143d350",
}
"""Case and target → the digest that the published results carry."""


@pytest.fixture(scope="module")
def published() -> Results:
    return Results.read(Path(__file__).parents[4] / "reports" / "baselines" / "lines.jsonl.xz")


def test_digests_of_published_results_keep_their_values(published: Results) -> None:
    cells = {(cell.case, cell.target): cell for cell in published.cells}
    for key, digest in DIGESTS.items():
        cell = cells[key]
        assert cell.observation is not None
        assert cell.behaviour == digest
        assert digest == cell.observation.digest(instants=not cell.case.endswith("processing-time-as-event-time"))
    for cell in published.cells:
        if cell.observation is not None:
            assert cell.behaviour in (cell.observation.behaviour_digest, cell.observation.digest(instants=False))


def test_a_digest_has_the_value_it_has_in_results_of_format_3() -> None:
    seen = observed(step(1, batch(0, window("12:00", "12:10", 1)), watermark=5), failed(2, "SparkException"))
    assert seen.columns == COLUMNS
    assert seen.behaviour_digest == "f6d269987f5f8dea81edcf1f9eecde3c"
