"""How findings read."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from conformance.core.observation import Column
from conformance.core.versions import SparkVersion
from conformance.judging.finding import ExtraRow, Finding, FindingLocation, RowsDiffer, ValueDiffers, cell
from conformance.judging.verdict import combine, judge
from tests.support.observations import OLD, batch, case, change, differs, expect, ms, observed, step, window

PLACE = FindingLocation(file="f/c.yaml", line=None, step=1, batches=(7,))


def test_a_whole_verdict() -> None:
    of = case(
        expect(),
        expect(),
        expect(
            rows=[["12:00", "12:10", 6], ["12:30", "12:40", 1]],
            dropped=0,
            state=[2, 1],
            eventTime={"max": "12:30"},
            watermark="12:05",
        ),
        names={3: "12:01 is behind the watermark, its window ends at 12:10 and is still open"},
    )
    rows = window("12:00", "12:10", 5), window("12:30", "12:40", 1)
    third = step(3, batch(4, *rows, dropped=1, state=(2,)), watermark=ms(12, 4))
    verdict = judge(of, SparkVersion.parse("3.5.9"), observed(step(1), step(2), third))
    assert verdict.describe() == (
        "late-drops/window-still-open on 3.5.9: violates\n"
        '  step 3 "12:01 is behind the watermark, its window ends at 12:10 and is still…" '
        "(late-drops/window-still-open.yaml:24), micro-batch 4\n"
        "    rows\n"
        "        start | end   | total\n"
        "      - 12:00 | 12:10 |     6   expected, not emitted\n"
        "      + 12:00 | 12:10 |     5   emitted, not expected\n"
        "        12:30 | 12:40 |     1\n"
        "    watermark: expected 12:05, observed 12:04\n"
        "    dropped: expected 0, observed 1\n"
        "    state: expected [2, 1], observed [2]\n"
        "    eventTime.max: expected 12:30, observed 12:00"
    )


def test_a_verdict_that_differs_gives_its_reason() -> None:
    entry = differs("<3.4", because="it was so", link="SPARK-1", steps={1: change(dropped=1, state=2)})
    verdict = judge(
        case(expect(dropped=0), differs=(entry,)), OLD, observed(step(1, batch(0, dropped=None, state=(2,))))
    )
    assert verdict.describe() == (
        "late-drops/window-still-open on 3.0.3: differs\n"
        "  it was so (SPARK-1)\n"
        "  note: dropped is not compared: numRowsDroppedByWatermark is reported since 3.1 (SPARK-24634)"
    )


def test_a_row_in_a_step_of_several_batches_names_its_batch() -> None:
    seen = step(1, batch(4, window("12:00", "12:10", 1)), batch(5, window("12:20", "12:30", 1)))
    (finding,) = judge(case(expect()), SparkVersion.parse("3.5.9"), observed(seen)).findings
    assert finding.describe() == (
        "step 1 (late-drops/window-still-open.yaml:16), micro-batches 4, 5\n"
        "  rows\n"
        "      start | end   | total\n"
        "    + 12:00 | 12:10 |     1   emitted, not expected (micro-batch 4)\n"
        "    + 12:20 | 12:30 |     1   emitted, not expected (micro-batch 5)"
    )


def test_long_diffs_are_cut_with_a_count() -> None:
    finding = RowsDiffer(
        place=PLACE,
        columns=("n",),
        missing=tuple((n,) for n in range(15)),
        extra=tuple(ExtraRow(cells=(n,), batch=7) for n in range(100, 130)),
        common=tuple((n,) for n in range(50, 62)),
    )
    lines = finding.describe().splitlines()
    assert len(lines) == 1 + 1 + 1 + 20 + 5 + 2
    assert lines[3] == "    -   0   expected, not emitted"
    assert lines[-2:] == ["    … 25 more emitted, not expected", "    … 7 more as expected"]


def test_rows_of_other_widths_and_nested_values_keep_their_columns() -> None:
    window_type = Column(name="window", type="struct<start:timestamp,end:timestamp>")
    tags = Column(name="tags", type="map<string,array<int>>")
    price = Column(name="price", type="decimal(10,2)")
    row = (["1970-01-01T12:00:00.500000Z", "2024-03-01T00:00:00.000000Z"], [["a", [1, 2]]], "1.50")
    seen = observed(step(1, batch(0, row, ("short",))), columns=(window_type, tags, price))
    rows = [[{"start": "12:00:00.5", "end": "2024-03-01"}, {"a": [1, 3]}, 1.5]]
    (finding,) = judge(case(expect(rows=rows)), SparkVersion.parse("4.0.0"), seen).findings
    assert "\n".join(finding.body()) == (
        "rows\n"
        "    window                         | tags        | price\n"
        "  - [12:00:00.5, 2024-03-01 00:00] | {a: [1, 3]} |   1.5   expected, not emitted\n"
        "  + [12:00:00.5, 2024-03-01 00:00] | {a: [1, 2]} |   1.5   emitted, not expected\n"
        "  + short                                                  emitted, not expected"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        ("12:05", "12:05"),
        ("two words", "two words"),
        ("", '""'),
        ("null", '"null"'),
        ("1.5", '"1.5"'),
        ("NaN", "NaN"),
        (" a", '" a"'),
        ("a|b", '"a|b"'),
        ([1, [None, "x"]], "[1, [null, x]]"),
        ({"a": 1, "b": [2]}, "{a: 1, b: [2]}"),
    ],
)
def test_values_are_shown_as_yaml_would(value: Any, text: str) -> None:
    assert cell(value) == text


def test_a_finding_is_its_data_and_survives_json() -> None:
    adapter: TypeAdapter[Finding] = TypeAdapter(Finding)
    finding = ValueDiffers(place=PLACE, aspect="state", expected=[1, 2], observed=[1], because="so")
    assert adapter.validate_json(adapter.dump_json(finding)) == finding
    assert finding.describe() == "step 1 (f/c.yaml), micro-batch 7\n  state: expected [1, 2], observed [1]\n    so"


def of_a_plan(plan: str) -> list[str]:
    """The lines of what is said of this plan."""
    seen = observed(step(1, plan=plan))
    (finding,) = judge(case(expect(plan=["Save$"])), SparkVersion.parse("3.5.9"), seen).findings
    return list(finding.body())


def test_a_plan_is_cut() -> None:
    lines = of_a_plan("\n".join(f"line {number}" for number in range(14)))
    assert lines[:2] == ["plan: /Save$/ is not found in the plan:", "  line 0"]
    assert lines[-2:] == ["  line 11", "  … 2 more lines"]


@pytest.mark.parametrize(("lines", "last"), [(12, "  line 11"), (13, "  … 1 more line"), (15, "  … 3 more lines")])
def test_a_plan_of_twelve_lines_is_shown_whole(lines: int, last: str) -> None:
    shown = of_a_plan("\n".join(f"line {number}" for number in range(lines)))
    assert (shown[12], shown[-1]) == ("  line 11", last)


@pytest.mark.parametrize(("length", "whole"), [(71, True), (72, True), (73, False)])
def test_a_step_is_named_in_72_characters(length: int, whole: bool) -> None:
    name = ("ab " * 30)[: length - 1] + "x"
    place = PLACE.model_copy(update={"name": name})
    assert (f'"{name}"' in str(place)) is whole
    assert ("…" in str(place)) is not whole
    assert "micro-batch 7" in str(place)
    assert str(place.model_copy(update={"batches": ()})).endswith("(f/c.yaml)")


def test_many_rows_are_not_paired_and_few_are() -> None:
    """Each missing row is followed by its most similar extra row, unless that takes a quadratic time."""
    for count, paired in ((500, True), (501, False)):
        missing = tuple(("m", number) for number in range(500))
        extra = tuple(ExtraRow(cells=("e", number), batch=7) for number in range(count))
        lines = list(RowsDiffer(place=PLACE, columns=("a", "b"), missing=missing, extra=extra, common=()).body())
        assert lines[3].lstrip().startswith("+") is paired


@pytest.mark.parametrize(("length", "shown"), [(110, "x" * 110), (111, "x" * 109 + "…")])
def test_a_long_line_is_cut_at_its_width(length: int, shown: str) -> None:
    assert of_a_plan("x" * length)[1] == f"  {shown}"


def test_only_a_flaky_verdict_lists_its_runs() -> None:
    seen = observed(step(1, batch(0, window("12:00", "12:10", 1))))
    wrong = judge(case(expect(rows=[])), SparkVersion.parse("3.5.9"), seen)
    assert "run 1" not in combine([wrong, wrong]).describe()
