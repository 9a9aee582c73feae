"""Times stand on a page as the case writes them."""

import re
from pathlib import Path

import pytest

from conformance.account.account import BatchAccount, account, batches_of
from conformance.core.case import Case
from conformance.core.versions import SparkVersion
from conformance.judging.comparison import Divergence
from conformance.oracle.prediction import predict
from conformance.suite import discovery
from reports.analysis.report import Report
from reports.analysis.step_table import observed_only
from reports.html.case_page import case_page
from reports.html.comparison_page import readable
from reports.html.texts import TimeNotation
from reports.html.timeline import timeline
from reports.results.reading import Results
from tests.support.whole_suite import whole_suite

SUITE = whole_suite()
CASES = {case.id: case for case in SUITE.cases}
SECONDS = CASES["late-drops/late-by-the-watermark-of-the-batch-before"]
CLOCK = CASES["output-modes/append-emits-each-window-once"]
NEWEST = SparkVersion(4, 3, 0)
CLOCK_TEXT = re.compile(r"\b\d\d:\d\d")
SAMPLE = Path(__file__).parents[3] / "browser" / "sample"


def batches(case: Case) -> tuple[BatchAccount, ...]:
    """The account of what the model predicts, as if an engine had answered so, without the model's word."""
    return batches_of(account(case, NEWEST, predict(case, NEWEST).observation))


class TestNotation:
    def test_a_case_with_plain_numbers_is_in_seconds_and_one_with_times_of_day_is_not(self) -> None:
        assert TimeNotation.of(SECONDS) == TimeNotation(in_seconds=True)
        assert TimeNotation.of(CASES["join-delays/inner-range-with-a-wider-lower-bound"]).in_seconds  # rows decide
        assert TimeNotation.of(CLOCK) == TimeNotation()
        assert TimeNotation.of(None) == TimeNotation()

    @pytest.mark.parametrize(
        ("micros", "seconds"), [(0, "0"), (100_000_000, "100"), (3_500_000, "3.5"), (-13_500_000, "-13.5")]
    )
    def test_an_instant_is_a_plain_number(self, micros: int, seconds: str) -> None:
        assert TimeNotation(in_seconds=True).show(micros) == seconds

    def test_an_instant_of_today_stays_a_date(self) -> None:
        assert TimeNotation(in_seconds=True).show(1_700_000_000_000_000) == "2023-11-14 22:13:20"

    def test_texts_of_the_report_are_rewritten_and_what_is_no_time_stays(self) -> None:
        told = TimeNotation(in_seconds=True).text
        assert told("only here: [00:01:40, 00:01:50, 2]") == "only here: [100, 110, 2]"
        assert told("closed: window 00:01:40–00:01:50: 00:01:50 ≤ 00:02") == "closed: window 100–110: 110 ≤ 120"
        assert told("1970-01-02 00:00:05 ≤ watermark 00:00") == "86405 ≤ watermark 0"
        assert told("1970-01-01T00:01:40Z, 1:2:3 and 99:99") == "1970-01-01T00:01:40Z, 1:2:3 and 99:99"
        assert TimeNotation().text("[00:01:40]") == "[00:01:40]"


class TestPages:
    def test_the_picture_has_seconds(self) -> None:
        line = timeline(SECONDS, batches(SECONDS))
        assert line is not None
        labels = [tick.label for tick in line.ticks]
        assert labels
        assert not [text for text in (*labels, *(one.tooltip for one in line.windows)) if CLOCK_TEXT.search(text)]
        assert not CLOCK_TEXT.search(line.described)
        assert all(tick.full.endswith("Z") for tick in line.ticks)

    def test_the_picture_of_another_case_has_times_of_day(self) -> None:
        line = timeline(CLOCK, batches(CLOCK))
        assert line is not None
        assert all(CLOCK_TEXT.search(tick.label) for tick in line.ticks)

    def test_a_table_has_seconds_and_says_in_full_what_they_are(self) -> None:
        table = observed_only(predict(SECONDS, SparkVersion(4, 3, 0)).observation)
        changed = TimeNotation(in_seconds=True).table(table)
        assert changed is not None
        values = [
            value for step in changed.steps for b in step.blocks for side in b.sides for x in side for value in x.values
        ]
        assert not [value.text for value in values if CLOCK_TEXT.search(value.text)]
        assert [value.full for value in values if value.full]

    def test_a_divergence_has_the_notation_of_the_case(self) -> None:
        rows = Divergence(1, 0, "rows", ('["1970-01-01T00:01:40.000000Z", 2]',), ())
        assert readable(rows, SECONDS) == ("only here: [100, 2]", "nothing else")
        assert readable(rows, CLOCK) == ("only here: [00:01:40, 2]", "nothing else")
        assert readable(Divergence(1, None, "watermark", 100_000, 5_000), SECONDS) == ("100", "5")

    def test_a_page_of_a_case_in_seconds_has_no_time_of_day_beside_its_numbers(self) -> None:
        report = Report.of(Results.read(SAMPLE / "results.jsonl"), discovery.load([SAMPLE / "cases"])).with_model()
        page = case_page(report, SECONDS.id)
        assert page.sections
        for section in page.sections:
            assert not [line for _, line in section.explanation if CLOCK_TEXT.search(line)]
            assert section.timeline is not None
            assert not CLOCK_TEXT.search(section.timeline.described)
            if section.difference is not None:
                assert not CLOCK_TEXT.search(section.difference.own + section.difference.others)
