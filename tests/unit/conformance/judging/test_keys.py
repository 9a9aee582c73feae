"""Every key of an expectation, held by an observation and broken by another."""

from typing import Any, ClassVar

import pytest

from conformance.core.case import Mirror, Restart, RestartChange, Step
from conformance.core.observation import EventTime, Observation
from conformance.core.versions import VersionRange
from conformance.judging.expected import expects_nothing_yet
from conformance.judging.finding import NotOfTheType, PlanDiffers, RowsDiffer, ValueDiffers
from conformance.judging.verdict import Verdict, judge, no_answer, not_applicable
from tests.support.observations import NEWEST, OLD, batch, case, differs, expect, ms, observed, step, window
from tools.judge_again import needs_progress

ROW = ["12:00", "12:10", 1]


def judged(expectation: dict[str, Any], *batches: Any, version: Any = NEWEST, **keys: Any) -> Verdict:
    of_step = {key: keys.pop(key) for key in ("watermark", "plan") if key in keys}
    return judge(case(expect(**expectation), **keys), version, observed(step(1, *batches, **of_step)))


def dropping(id: int, *counts: int) -> Any:
    """A micro-batch whose operators drop so many rows, the last operator first."""
    progress = {"stateOperators": [{"numRowsDroppedByWatermark": count} for count in counts]}
    return batch(id, dropped=sum(counts), state=tuple(1 for _ in counts), progress=progress)


def aspects(verdict: Verdict) -> list[str]:
    return [finding.aspect for finding in verdict.findings]


class TestRows:
    def test_in_any_order_and_notation(self) -> None:
        verdict = judged(
            {"rows": [{"total": 2, "start": "12:10", "end": "1970-01-01T12:20:00Z"}, [43200, "1970-01-01 12:10", 1.0]]},
            batch(0, window("12:00", "12:10", 1), window("12:10", "12:20", 2)),
        )
        assert verdict.status == "conforms"

    def test_over_all_batches_of_the_step(self) -> None:
        rows = {"rows": [ROW, ["12:10", "12:20", 1]]}
        assert judged(rows, batch(0, window("12:00", "12:10", 1)), batch(1, window("12:10", "12:20", 1))).findings == ()
        assert judged(rows, batch(0, window("12:00", "12:10", 1)), batch(1)).status == "violates"

    @pytest.mark.parametrize("expectation", [None, expect(), expect(dropped=0)])
    def test_absent_means_none(self, expectation: Any) -> None:
        verdict = judge(case(expectation), NEWEST, observed(step(1, batch(0, window("12:00", "12:10", 1)))))
        assert aspects(verdict) == ["rows"]
        assert judge(case(expectation), NEWEST, observed(step(1, batch(0)))).status == "conforms"

    def test_complete_mode_shows_the_last_batch(self) -> None:
        batches = batch(0, window("12:00", "12:10", 1)), batch(1, window("12:00", "12:10", 2))
        assert judged({"rows": [["12:00", "12:10", 2]]}, *batches, output_mode="complete").status == "conforms"
        assert judged({"rows": [ROW]}, *batches, output_mode="complete").status == "violates"
        assert judged({"rows": []}, output_mode="complete").status == "conforms"

    def test_in_the_order_of_a_sort_if_that_is_expected(self) -> None:
        first, second = window("12:10", "12:20", 2), window("12:00", "12:10", 1)
        expected = {"rows": [["12:10", "12:20", 2], ROW], "in_order": True}
        assert judged(expected, batch(0, first, second), output_mode="complete").status == "conforms"
        (finding,) = judged(expected, batch(0, second, first), output_mode="complete").findings
        assert isinstance(finding, ValueDiffers)
        assert finding.aspect == "order of rows"
        assert finding.observed == [ROW, ["12:10", "12:20", 2]]
        assert aspects(judged(expected, batch(0, second), output_mode="complete")) == ["rows"]

    @pytest.mark.parametrize("mode", ["append", "update"])
    def test_other_modes_show_every_batch(self, mode: str) -> None:
        batches = (batch(0, window("12:00", "12:10", 1)), batch(1, window("12:00", "12:10", 2)))
        assert judged({"rows": [ROW, ["12:00", "12:10", 2]]}, *batches, output_mode=mode).status == "conforms"
        assert judged({"rows": [["12:00", "12:10", 2]]}, *batches, output_mode=mode).status == "violates"

    def test_complete_mode_of_the_query_that_runs_in_the_step(self) -> None:
        restart = Restart(how="graceful", change=RestartChange(output_mode="complete"))
        rows = expect(rows=[["12:00", "12:10", 2]])
        of = case(None, rows).model_copy(update={"steps": (Step(number=1, action=restart), case(None, rows).steps[1])})
        seen = step(2, batch(0, window("12:00", "12:10", 1)), batch(1, window("12:00", "12:10", 2)))
        assert judge(of, NEWEST, observed(step(1), seen)).status == "conforms"
        assert judge(case(None, rows), NEWEST, observed(step(1), seen)).status == "violates"

    def test_what_cannot_be_a_row_is_a_finding(self) -> None:
        verdict = judged({"rows": [["late", "12:10", 1]]}, batch(0, window("12:00", "12:10", 1)))
        (finding,) = verdict.findings
        assert isinstance(finding, NotOfTheType)
        assert finding.problem.startswith("start is timestamp: ")
        assert finding.observed == ("start: timestamp", "end: timestamp", "total: bigint")

    def test_without_columns_nothing_can_be_expected(self) -> None:
        seen = observed(step(1), columns=())
        assert judge(case(expect(rows=[ROW])), NEWEST, seen).status == "violates"
        assert judge(case(expect()), NEWEST, seen).status == "conforms"


class TestBatches:
    def test_kinds_in_order(self) -> None:
        batches = {"batches": [{"kind": "data"}, {"kind": "no-data"}]}
        assert judged(batches, batch(0), batch(1, kind="no-data")).status == "conforms"
        assert aspects(judged(batches, batch(0, kind="no-data"), batch(1))) == ["kind", "kind"]

    @pytest.mark.parametrize("seen", [[], [batch(0), batch(1)]])
    def test_as_many_as_there_are(self, seen: list[Any]) -> None:
        verdict = judged({"batches": [{}]}, *seen)
        (finding,) = verdict.findings
        assert isinstance(finding, ValueDiffers)
        assert (finding.expected, finding.observed) == (["any kind"], [one.kind for one in seen])
        assert judged({"batches": [{}]}, batch(0)).status == "conforms"

    def test_rows_of_each(self) -> None:
        batches = {"batches": [{"rows": [ROW]}, {"rows": []}]}
        assert judged(batches, batch(0, window("12:00", "12:10", 1)), batch(1)).status == "conforms"
        verdict = judged(batches, batch(4), batch(5, window("12:00", "12:10", 1)))
        assert [finding.place.batches for finding in verdict.findings] == [(4,), (5,)]

    def test_rows_are_told_once(self) -> None:
        batches = {"batches": [{"rows": [ROW]}]}
        (finding,) = judged(batches, batch(0, window("12:10", "12:20", 1))).findings
        assert isinstance(finding, RowsDiffer)

    def test_rows_are_compared_over_the_step_where_the_batches_are_others(self) -> None:
        batches = {"batches": [{"rows": [ROW]}, {"rows": []}]}
        assert aspects(judged(batches, batch(0, window("12:00", "12:10", 1)))) == ["batches"]
        assert aspects(judged(batches, batch(0))) == ["batches", "rows"]
        more = {"batches": [{"rows": [ROW]}]}
        first = batch(0, window("12:00", "12:10", 1))
        assert aspects(judged(more, first, batch(1))) == ["batches"]
        assert aspects(judged(more, first, batch(1, window("12:10", "12:20", 1)))) == ["batches", "rows"]

    def test_rows_of_the_step_are_theirs(self) -> None:
        batches = {"batches": [{"rows": [ROW]}, {"kind": "no-data"}]}
        first = batch(0, window("12:00", "12:10", 1))
        assert judged(batches, first, batch(1, kind="no-data")).status == "conforms"
        assert aspects(judged(batches, first, batch(1, window("12:10", "12:20", 1), kind="no-data"))) == ["rows"]

    def test_rows_of_the_step_may_say_what_theirs_leave_open(self) -> None:
        both = {"batches": [{"kind": "data"}, {"kind": "no-data"}], "rows": [ROW]}
        assert judged(both, batch(0), batch(1, window("12:00", "12:10", 1), kind="no-data")).status == "conforms"
        assert judged(both, batch(0), batch(1, kind="no-data")).status == "violates"

    @pytest.mark.parametrize(
        ("expectation", "seen", "status"),
        [
            ({"watermark": "11:35"}, {"watermark": ms(11, 35)}, "conforms"),
            ({"watermark": "11:36"}, {"watermark": ms(11, 35)}, "violates"),
            ({"watermark": None}, {"watermark": None}, "conforms"),
            ({"watermark": None}, {}, "violates"),
            ({"watermark": 0}, {"watermark": None}, "violates"),
            ({"dropped": 2}, {"dropped": 1}, "violates"),
        ],
    )
    def test_the_watermark_and_the_late_rows_of_each(self, expectation: Any, seen: Any, status: str) -> None:
        assert judged({"batches": [expectation]}, batch(0, **seen)).status == status


class TestWatermark:
    def test_after_the_step(self) -> None:
        assert judged({"watermark": "11:35"}, batch(0), watermark=ms(11, 35)).status == "conforms"
        assert judged({"watermark": 41700}, batch(0), watermark=ms(11, 35)).status == "conforms"
        assert aspects(judged({"watermark": "11:35"}, batch(0), watermark=ms(11, 36))) == ["watermark"]

    def test_cut_to_milliseconds(self) -> None:
        assert judged({"watermark": 30.0009}, batch(0), watermark=30_000).status == "conforms"
        assert judged({"watermark": 30.0009}, batch(0), watermark=30_001).status == "violates"


class TestDropped:
    def test_summed_over_the_batches(self) -> None:
        assert judged({"dropped": 3}, batch(0, dropped=1), batch(1, dropped=2)).status == "conforms"
        assert aspects(judged({"dropped": 3}, batch(0, dropped=3), batch(1, dropped=1))) == ["dropped"]

    @pytest.mark.parametrize(("none", "some"), [(0, 1), ([0, 0], [0, 1])])
    def test_no_batches_no_drops(self, none: Any, some: Any) -> None:
        assert judged({"dropped": none}).status == "conforms"
        assert judged({"dropped": some}).status == "violates"

    @pytest.mark.parametrize("expectation", [{"dropped": 1}, {"batches": [{"dropped": 1}]}])
    def test_not_compared_where_the_version_lacks_the_metric(self, expectation: dict[str, Any]) -> None:
        verdict = judged(expectation, batch(0, dropped=None), version=OLD)
        assert verdict.status == "conforms"
        assert verdict.notes == (
            "dropped is not compared: numRowsDroppedByWatermark is reported since 3.1 (SPARK-24634)",
        )

    def test_a_version_that_should_have_the_metric_is_held_to_it(self) -> None:
        (finding,) = judged({"dropped": 1}, batch(0, dropped=None)).findings
        assert isinstance(finding, ValueDiffers)
        assert finding.observed == "no such metric"

    def test_an_old_version_that_has_the_metric_is_compared(self) -> None:
        assert judged({"dropped": 1}, batch(0, dropped=2), version=OLD).status == "violates"

    @pytest.mark.parametrize(
        ("expectation", "status"),
        [
            ({"dropped": [0, 3]}, "conforms"),
            ({"dropped": [3, 0]}, "violates"),
            ({"dropped": [3]}, "violates"),
            ({"batches": [{"dropped": [0, 1]}, {"dropped": [0, 2]}]}, "conforms"),
            ({"batches": [{"dropped": [0, 2]}, {"dropped": [0, 1]}]}, "violates"),
        ],
    )
    def test_a_list_is_each_operator(self, expectation: dict[str, Any], status: str) -> None:
        batches = [dropping(0, 0, 1), dropping(1, 0, 2)]
        assert judged(expectation, *batches).status == status

    def test_a_list_where_the_progress_has_no_drops(self) -> None:
        (finding,) = judged({"dropped": [1]}, batch(0, dropped=1)).findings
        assert isinstance(finding, ValueDiffers)
        assert finding.observed == "no such metric"
        verdict = judged({"dropped": [1]}, batch(0, dropped=None), version=OLD)
        assert (verdict.status, len(verdict.notes)) == ("conforms", 1)

    def test_null_asserts_that_there_is_no_metric(self) -> None:
        assert judged({"dropped": None}, batch(0, dropped=None), version=OLD).status == "conforms"
        assert judged({"dropped": None}, batch(0, dropped=0)).status == "violates"
        assert judged({"batches": [{"dropped": None}]}, batch(0, dropped=0)).status == "violates"
        assert judged({"dropped": None}, version=NEWEST).status == "violates"


class TestState:
    def test_a_number_is_all_operators_together(self) -> None:
        assert judged({"state": 3}, batch(0, state=(1, 2))).status == "conforms"
        assert judged({"state": 2}, batch(0, state=(1, 2))).status == "violates"

    @pytest.mark.parametrize(("held", "because"), [((1, 2), "per operator: [1, 2]"), ((3,), None)])
    def test_several_operators_are_told_apart_in_the_finding(self, held: tuple[int, ...], because: str | None) -> None:
        (finding,) = judged({"state": 7}, batch(0, state=held)).findings
        assert isinstance(finding, ValueDiffers)
        assert (finding.observed, finding.because) == (3, because)

    def test_a_list_is_each_operator(self) -> None:
        assert judged({"state": [1, 2]}, batch(0, state=(1, 2))).status == "conforms"
        assert judged({"state": [2, 1]}, batch(0, state=(1, 2))).status == "violates"
        assert judged({"state": [3]}, batch(0, state=(1, 2))).status == "violates"

    def test_after_the_last_batch_also_of_an_earlier_step(self) -> None:
        seen = observed(step(1, batch(0, state=(5,)), batch(1, state=(2,))), step(2))
        assert judge(case(expect(), expect(state=2)), NEWEST, seen).status == "conforms"
        assert judge(case(expect(), expect(state=5)), NEWEST, seen).status == "violates"
        assert judge(case(expect(state=0)), NEWEST, observed(step(1))).status == "conforms"

    def test_after_each_batch(self) -> None:
        batches = [batch(0, state=(1, 2)), batch(1, state=(1, 1))]
        assert judged({"batches": [{"state": [1, 2]}, {"state": 2}]}, *batches).status == "conforms"
        (finding,) = judged({"batches": [{"state": 3}, {"state": [1, 2]}]}, *batches).findings
        assert isinstance(finding, ValueDiffers)
        assert (finding.aspect, finding.expected, finding.observed) == ("state", [1, 2], [1, 1])
        assert finding.place.batches == (1,)


class TestEventTime:
    STATS = EventTime(min=ms(12), max=ms(12, 30), avg=ms(12, 15))

    @pytest.mark.parametrize(("key", "value"), [("min", "12:00"), ("max", "12:30"), ("avg", "12:15:00.0005")])
    def test_each(self, key: str, value: str) -> None:
        assert judged({"eventTime": {key: value}}, batch(0, event_time=self.STATS)).status == "conforms"
        assert aspects(judged({"eventTime": {key: "11:00"}}, batch(0, event_time=self.STATS))) == [f"eventTime.{key}"]

    def test_of_the_last_data_batch(self) -> None:
        no_data = batch(1, kind="no-data", event_time=None)
        assert judged({"eventTime": {"max": "12:30"}}, batch(0, event_time=self.STATS), no_data).status == "conforms"
        assert judged({"eventTime": {"max": "12:30"}}, batch(0, event_time=None), no_data).status == "violates"
        assert judged({"eventTime": {"max": "12:30"}}, no_data).status == "violates"

    def test_what_is_missing_is_said(self) -> None:
        (of_none,) = judged({"eventTime": {"max": "12:30"}}, batch(0, event_time=None)).findings
        (of_no_batch,) = judged({"eventTime": {"max": "12:30"}}).findings
        assert list(of_none.body()) == ["eventTime: expected {max: 12:30}, observed no event-time statistics"]
        assert list(of_no_batch.body()) == ["eventTime: expected {max: 12:30}, observed no data batch has run"]


class TestProgress:
    PROGRESS: ClassVar[dict[str, Any]] = {
        "numInputRows": 3,
        "timestamp": "1970-01-01T12:05:00.000Z",
        "stateOperators": [{"numRowsTotal": 1, "customMetrics": {"a.b": 0.1 + 0.2}}],
        "sources": [{"flag": True, "offsets": [1, 2]}],
    }

    @pytest.mark.parametrize(
        ("path", "right", "wrong"),
        [
            ("numInputRows", 3, 4),
            ("numInputRows", 3.0, True),
            ("stateOperators.0.numRowsTotal", 1, 2),
            ("stateOperators.0.customMetrics.a.b", 0.3, 0.30001),
            ("stateOperators.0.customMetrics", {"a.b": 0.3}, {"a.b": 0.3, "c": 1}),
            ("timestamp", "1970-01-01T12:05:00.000Z", "12:05"),
            ("sources.0.flag", True, 1),
            ("sources.0.offsets", [1.0, 2], [1]),
            ("sources.0.offsets", [1, 2], [1, 3]),
            ("sources.0.offsets", [1, 2], "[1, 2]"),
            ("stateOperators.1", None, 0),
            ("nowhere.at.all", None, "something"),
            ("stateOperators.0", {"numRowsTotal": 1, "customMetrics": {"a.b": 0.3}}, []),
        ],
    )
    def test_a_path(self, path: str, right: Any, wrong: Any) -> None:
        assert judged({"progress": {path: right}}, batch(0, progress=self.PROGRESS)).status == "conforms"
        assert aspects(judged({"progress": {path: wrong}}, batch(0, progress=self.PROGRESS))) == [f"progress.{path}"]

    @pytest.mark.parametrize(("observed", "status"), [(0.1234567894, "conforms"), (0.123456788, "violates")])
    def test_numbers_are_compared_to_nine_decimals(self, observed: float, status: str) -> None:
        assert judged({"progress": {"rate": 0.1234567891}}, batch(0, progress={"rate": observed})).status == status

    def test_a_finding_shows_the_value_or_that_there_is_none(self) -> None:
        wanted = {"progress": {"numInputRows": 4, "nowhere": 5}}
        findings = judged(wanted, batch(0, progress=self.PROGRESS)).findings
        assert [line for finding in findings for line in finding.body()] == [
            "progress.numInputRows: expected 4, observed 3",
            "progress.nowhere: expected 5, observed no such path",
        ]

    def test_of_the_last_batch(self) -> None:
        seen = batch(0, progress={"numInputRows": 1}), batch(1, progress={"numInputRows": 0})
        assert judged({"progress": {"numInputRows": 0}}, *seen).status == "conforms"
        assert judged({"progress": {"numInputRows": 1}}, *seen).status == "violates"
        assert judged({"progress": {"numInputRows": 0}}).status == "violates"

    def test_not_compared_where_the_version_lacks_the_metric(self) -> None:
        path = {"progress": {"stateOperators.0.numRowsRemoved": 1}}
        verdict = judged(path, batch(0), version=OLD)
        assert verdict.status == "conforms"
        assert verdict.notes == (
            "progress.stateOperators.0.numRowsRemoved is not compared: numRowsRemoved is reported since 3.2 (SPARK-35896)",
        )
        assert judged(path, batch(0)).status == "violates"


class TestResultsWithoutProgress:
    """Results files do not keep the progress of micro-batches: what only that would show is told from what is wrong."""

    @pytest.mark.parametrize(
        "expectation",
        [{"progress": {"numInputRows": 3}}, {"dropped": [1, 0]}],
    )
    def test_what_only_the_progress_shows(self, expectation: dict[str, Any]) -> None:
        seen = batch(0, dropped=1, progress={})
        (finding,) = judged(expectation, seen).findings
        assert needs_progress(finding)

    @pytest.mark.parametrize(
        ("expectation", "seen"),
        [
            ({"rows": [ROW]}, batch(0)),
            ({"progress": {"numInputRows": 3}}, batch(0, progress={"numInputRows": 4})),
            ({"progress": {"numInputRows": None}}, batch(0, progress={"numInputRows": 4})),
            ({"dropped": [1, 0]}, dropping(0, 0, 1)),
            ({"dropped": 1}, batch(0, dropped=None)),
            ({"state": [1, 0]}, batch(0, state=(0, 1))),
        ],
    )
    def test_what_is_wrong(self, expectation: dict[str, Any], seen: Any) -> None:
        (finding,) = judged(expectation, seen).findings
        assert not needs_progress(finding)


class TestPlan:
    PLAN = "== Physical Plan ==\nWriteToDataSource\n+- StateStoreSave [window#1]\n"

    def test_regular_expressions_found_in_it(self) -> None:
        right = {"plan": ["StateStoreSave", r"^\+- State", r"window#\d+"]}
        assert judged(right, batch(0), plan=self.PLAN).status == "conforms"
        verdict = judged({"plan": ["StateStoreSave", "SessionWindow"]}, batch(0), plan=self.PLAN)
        (finding,) = verdict.findings
        assert isinstance(finding, PlanDiffers)
        assert finding.expected == "SessionWindow"

    def test_a_harness_that_did_not_take_it_is_broken(self) -> None:
        verdict = judged({"plan": ["x"]}, batch(0))
        assert verdict.status == "broken"
        assert verdict.notes == ("step 1 has a plan expectation, but the observation has no plan",)


@pytest.mark.parametrize(
    ("seen", "note"),
    [
        (observed(step(1)), "the observation ends without an error after step 1 of 2"),
        (observed(), "the observation has no steps"),
        (observed(step(2), step(3)), "the case has steps 1 to 2, the observation has 2, 3"),
        (observed(step(1), step(2), step(3)), "the case has steps 1 to 2, the observation has 1, 2, 3"),
        (Observation(case="other/case", columns=(), steps=()), "the observation is of other/case"),
    ],
)
def test_an_observation_that_cannot_be_of_the_case_is_broken(seen: Observation, note: str) -> None:
    verdict = judge(case(expect(), expect()), NEWEST, seen)
    assert (verdict.status, verdict.notes) == ("broken", (note,))


def test_what_needs_no_run() -> None:
    of_new = case(expect(), spark=VersionRange.parse(">=3.4"))
    verdict = not_applicable(of_new, OLD)
    assert verdict is not None
    assert verdict.status == "not-applicable"
    assert verdict == judge(of_new, OLD, observed(step(1)))
    assert not_applicable(of_new, NEWEST) is None
    assert not_applicable(case(expect()), OLD) is None


def test_what_the_harness_says_of_itself() -> None:
    for status in ("broken", "not-run"):
        verdict = no_answer(case(None), OLD, status, "why")
        assert (verdict.status, verdict.notes, verdict.behaviour) == (status, ("why",), None)
        assert verdict.describe() == f"late-drops/window-still-open on 3.0.3: {status}\n  note: why"


@pytest.mark.parametrize(
    "claim",
    [
        {"behaviour": ("late-drop",)},
        {"differs": (differs("<3.4", because="it is so"),)},
        {"mirrors": (Mirror(id="T001"),)},
        {"strength": "observed"},
    ],
    ids=lambda claim: next(iter(claim)),
)
def test_a_case_with_any_claim_is_no_draft(claim: dict[str, Any]) -> None:
    assert expects_nothing_yet(case(None, None))
    assert not expects_nothing_yet(case(None, None, **claim))
    assert not expects_nothing_yet(case(None, expect(dropped=0)))
