"""What of two answers is compared, value by value, and how a divergence is told."""

import json

import pytest

from conformance.core.observation import Column
from conformance.judging.comparison import (
    batches_equivalent,
    different_rows,
    divergence,
    divergences,
    steps_equivalent,
)
from conformance.judging.step_comparison import OutputSchema
from tests.support.observations import COLUMNS, batch, failed, observed, step, window

DECIMALS = OutputSchema.of((Column(name="total", type="decimal(10,2)"),))
TEXTS = OutputSchema.of((Column(name="total", type="string"),))


@pytest.mark.parametrize(
    ("a", "b", "only_a", "only_b"),
    [
        (("[1]", "[1]"), ("[1]",), ("[1]",), ()),
        (("[1]",), ("[1]", "[1]", "[1]"), (), ("[1]", "[1]")),
        (('["1.5"]', '["1.50"]'), ('["1.5"]',), ('["1.50"]',), ()),
        (('["1.5"]', '["1.5"]'), ('["1.50"]', '["1.500"]', '["1.5"]'), (), ('["1.500"]',)),
        (('["1.5"]', '["2.5"]'), ('["1.50"]', '["3.5"]'), ('["2.5"]',), ('["3.5"]',)),
        (('["1.5"]', '["1.5"]'), ('["1.50"]',), ('["1.5"]',), ()),
        (('["3"]', '["2"]'), (), ('["2"]', '["3"]'), ()),
    ],
)
def test_rows_are_compared_by_value_and_by_number(a, b, only_a, only_b) -> None:
    assert different_rows(a, b, (DECIMALS, DECIMALS)) == (only_a, only_b)
    assert different_rows(b, a, (DECIMALS, DECIMALS)) == (only_b, only_a)


def test_each_answer_is_read_by_its_own_columns() -> None:
    assert different_rows(('["1.5"]',), ('["1.50"]',), (DECIMALS, TEXTS)) == (('["1.5"]',), ('["1.50"]',))
    assert different_rows(('["1.50"]',), ('["1.5"]',), (TEXTS, TEXTS)) == (('["1.50"]',), ('["1.5"]',))


@pytest.mark.parametrize(
    ("type", "a", "b", "same"),
    [
        ("double", "0.0", "-0.0", False),
        ("array<double>", "[1.0, 0.0]", "[1.0, -0.0]", False),
        ("map<string,double>", '[["a", 0.0]]', '[["a", -0.0]]', False),
        # The order in which Python keeps texts is another one in each process: of so many, two orders are never one by chance.
        (
            "map<string,double>",
            json.dumps([[name, 0.5] for name in "abcdefghijklmnop"]),
            json.dumps([[name, 0.5] for name in "ponmlkjihgfedcba"]),
            True,
        ),
        ("double", "1e-11", "2e-11", False),
        ("double", "0.1", "0.10000000000000002", True),
        ("double", "1000000000.0", "1000000000.1", False),
        ("float", "0.10000000149011612", "0.10000000149011612", True),
    ],
)
def test_doubles_of_two_engines_are_compared_by_sign_and_twelve_digits(type, a, b, same) -> None:
    one, other = (
        observed(step(1, batch(0, (json.loads(value),)))).model_copy(update={"columns": (Column(name="x", type=type),)})
        for value in (a, b)
    )
    assert (divergence(one, other) is None) is same


@pytest.mark.parametrize(("other", "written"), [("bigint", 750), ("decimal(10,2)", "750.00")])
def test_a_double_and_the_whole_number_of_another_version_are_one_value_of_two_types(other, written) -> None:
    answers = tuple(
        observed(step(1, batch(0, (value,)))).model_copy(update={"columns": (Column(name="x", type=type),)})
        for value, type in ((750.0, "double"), (written, other))
    )
    assert "rows" not in {found.what for found in divergences(*answers)}
    assert different_rows(
        ("[750.0]",),
        ("[750]",),
        tuple(OutputSchema.of((Column(name="x", type=type),), exact=True) for type in ("double", other)),
    ) == ((), ())


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((1, 2), (1, 2, 3), (3, "steps", 2, 3)),
        ((1, 2, 3), (1, 2), (3, "steps", 3, 2)),
        ((), (1,), (1, "steps", 0, 1)),
        ((1,), (1, 2, 3), (2, "steps", 1, 3)),
    ],
)
def test_a_missing_step_is_the_one_after_the_last_that_both_have(a, b, expected) -> None:
    found = divergence(observed(*map(step, a)), observed(*map(step, b)))
    assert (found.step, found.what, found.a, found.b) == expected


def test_only_the_steps_asked_for_are_compared() -> None:
    a, b = (observed(step(1), step(2, watermark=end), step(3, watermark=end)) for end in (0, 60_000))
    assert divergence(a, b, upto=1) is None
    assert divergence(a, b, upto=2)
    assert [found.step for found in divergences(a, b)] == [2, 3]
    assert divergence(observed(step(1)), observed(step(1), step(2)), upto=1) is None
    assert divergence(observed(step(1)), observed(step(1), step(2)), upto=2)


@pytest.mark.parametrize(("a", "b"), [(1, 2), (2, 1), (0, 1)])
def test_another_number_of_micro_batches_is_a_divergence(a, b) -> None:
    one, other = (step(1, *(batch(id) for id in range(count))) for count in (a, b))
    (found,) = divergences(observed(one), observed(other))
    assert (found.what, found.batch, found.a, found.b) == ("micro-batches", None, a, b)
    schemas = (OutputSchema.of(COLUMNS),) * 2
    assert not steps_equivalent(one, other, schemas)
    assert steps_equivalent(one, one, schemas)


@pytest.mark.parametrize(("a", "b"), [(0, 60_000), (60_000, 0)])
def test_the_watermark_after_a_step_is_compared_unless_one_of_the_two_failed(a, b) -> None:
    (found,) = divergences(observed(step(1, watermark=a)), observed(step(1, watermark=b)))
    assert (found.what, found.a, found.b) == ("watermark after the step", a, b)
    broke = failed(1, "SparkException").model_copy(update={"watermark": a})
    for one, other in ((broke, step(1, watermark=b)), (step(1, watermark=b), broke)):
        assert [found.what for found in divergences(observed(one), observed(other))] == ["error"]
    late = failed(1, "SparkException", stage="start").model_copy(update={"watermark": b})
    assert [found.what for found in divergences(observed(broke), observed(late))] == ["error"]


@pytest.mark.parametrize(("count", "more"), [(1, ""), (5, ""), (6, " and 1 more"), (8, " and 3 more")])
def test_the_first_five_rows_are_told(count: int, more: str) -> None:
    rows = [window("12:00", "12:10", number) for number in range(count)]
    found = divergence(observed(step(1, batch(0, *rows))), observed(step(1, batch(0))))
    told, nothing = found.values
    assert nothing == "nothing else"
    assert told.count('["1970') == min(count, 5)
    assert told.endswith(more)
    assert ("more" in told) == bool(more)


def test_a_text_of_any_alphabet_is_told_as_it_is() -> None:
    columns = (Column(name="city", type="string"),)
    found = divergence(
        observed(step(1, batch(0, ("Zürich",))), columns=columns), observed(step(1, batch(0)), columns=columns)
    )
    assert found.values[0] == 'only here: ["Zürich"]'


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *{"id": 1, "kind": "no-data", "watermark": 60_000, "dropped": 1, "state": (2,)}.items(),
        *{"next_watermark": 60_000, "rows": (window("12:00", "12:10", 1),)}.items(),
    ],
)
def test_a_batch_differs_by_each_of_its_fields(field, value) -> None:
    schemas = (OutputSchema.of(COLUMNS),) * 2
    one, other = batch(0), batch(0).model_copy(update={field: value})
    assert batches_equivalent(one, one, schemas)
    assert not batches_equivalent(one, other, schemas)
    (found,) = divergences(observed(step(3, one)), observed(step(3, other)))
    assert (found.step, found.batch, found.what) == (3, 0, field)


def test_one_place_may_differ_in_several_ways_causes_first() -> None:
    a = observed(step(1, batch(0), batch(1)), step(2, watermark=60_000))
    b = observed(step(1, batch(0, state=(2,), dropped=1)), failed(2, "SparkException"))
    expected = [(1, 0, "dropped"), (1, 0, "state"), (1, None, "micro-batches"), (2, None, "error")]
    assert [(found.step, found.batch, found.what) for found in divergences(a, b)] == expected
