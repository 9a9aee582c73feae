"""Versions that differ: what an entry replaces, and entries that have gone stale."""

from typing import Any, ClassVar

import pytest

from conformance.core.case import Case, ExpectedError
from conformance.judging.checkpoint_verdict import CheckpointHandoff, VersionPair, judge_upgrade
from conformance.judging.expected import Steps, expected
from conformance.judging.finding import ErrorDiffers, StaleEntry
from conformance.judging.verdict import Verdict, judge
from tests.support.observations import (
    NEWEST,
    OLD,
    batch,
    case,
    change,
    differs,
    expect,
    failed,
    ms,
    observed,
    step,
    window,
)

ONE = ["12:00", "12:10", 1]
TWO = ["12:10", "12:20", 2]
SEEN_ONE = window("12:00", "12:10", 1)
SEEN_TWO = window("12:10", "12:20", 2)


def with_change(base: dict[str, Any], **changed: Any) -> Case:
    entry = differs("<3.4", because="it was so", link="SPARK-1", steps={1: change(**changed)})
    return case(expect(**base), differs=(entry,))


def on_old(of: Case, *batches: Any, **keys: Any) -> str:
    return judge(of, OLD, observed(step(1, *batches, **keys))).status


class TestOnlyTheKeysGivenAreReplaced:
    def test_a_key(self) -> None:
        of = with_change({"rows": [ONE], "watermark": "12:00", "state": 1}, watermark="12:05")
        assert on_old(of, batch(0, SEEN_ONE), watermark=ms(12, 5)) == "differs"
        assert on_old(of, batch(0, SEEN_ONE, state=(2,)), watermark=ms(12, 5)) == "violates"
        assert on_old(of, batch(0), watermark=ms(12, 5)) == "violates"

    def test_unchecked_takes_a_key_out(self) -> None:
        of = with_change({"rows": [ONE], "state": 1}, unchecked=["state"])
        assert on_old(of, batch(0, SEEN_ONE, state=(7,))) == "differs"
        assert on_old(of, batch(0, state=(7,))) == "violates"

    def test_unchecked_leaves_out_what_the_step_does_not_check(self) -> None:
        of = with_change({"rows": [ONE]}, rows=[TWO], unchecked=["state", "eventTime"])
        (step_,) = expected(of, OLD).steps  # type: ignore[union-attr]
        assert step_.checked == {"rows", "error"}
        assert on_old(of, batch(0, SEEN_TWO, state=(7,))) == "differs"

    def test_unchecked_rows_may_be_anything(self) -> None:
        of = with_change({"rows": [ONE], "state": 1}, unchecked=["rows"])
        assert on_old(of, batch(0, SEEN_TWO)) == "differs"
        assert on_old(of, batch(0, SEEN_TWO, state=(2,))) == "violates"

    def test_unchecked_event_time_by_the_name_of_the_yaml(self) -> None:
        of = with_change({"eventTime": {"max": "13:00"}}, unchecked=["eventTime"])
        assert on_old(of, batch(0)) == "differs"

    def test_an_error_instead_of_rows(self) -> None:
        of = with_change({"rows": [ONE]}, error={"class": ["AnalysisException"]})
        assert judge(of, OLD, observed(failed(1, "AnalysisException"))).status == "differs"
        assert judge(of, OLD, observed(failed(1, "Other"))).status == "violates"

    def test_no_error_where_the_newest_has_one(self) -> None:
        of = with_change({"error": {"class": ["X"]}, "watermark": "12:00"}, error=None)
        assert on_old(of, batch(0), watermark=ms(12)) == "differs"
        assert on_old(of, batch(0), watermark=ms(13)) == "violates"
        assert on_old(of, batch(0, SEEN_ONE), watermark=ms(12)) == "violates"

    def test_steps_after_an_error_are_for_the_versions_that_reach_them(self) -> None:
        entry = differs("<3.4", because="b", steps={1: change(error=None)})
        of = case(expect(error={"class": ["X"]}), expect(rows=[ONE]), differs=(entry,))
        assert judge(of, OLD, observed(step(1), step(2, batch(0, SEEN_ONE)))).status == "differs"
        assert judge(of, OLD, observed(step(1), step(2, batch(0)))).status == "violates"
        assert judge(of, NEWEST, observed(failed(1, "X"))).status == "conforms"


class TestReplacedKeysWinOverDerivedOnes:
    BOTH: ClassVar[dict[str, Any]] = {
        "batches": [{"kind": "data", "rows": []}, {"kind": "no-data", "rows": [ONE], "dropped": 0}]
    }

    def test_rows_over_rows_of_batches(self) -> None:
        of = with_change(self.BOTH, rows=[TWO])
        seen = batch(0, SEEN_TWO, dropped=None), batch(1, kind="no-data", dropped=None)
        assert on_old(of, *seen) == "differs"
        assert on_old(of, batch(0, SEEN_ONE), batch(1, kind="no-data")) == "violates"
        # What else the batches say stands.
        assert on_old(of, batch(0, SEEN_TWO), batch(1)) == "violates"

    def test_dropped_over_dropped_of_batches(self) -> None:
        of = with_change(self.BOTH, dropped=2)
        assert on_old(of, batch(0), batch(1, SEEN_ONE, kind="no-data", dropped=2)) == "differs"
        assert on_old(of, batch(0), batch(1, SEEN_ONE, kind="no-data", dropped=1)) == "violates"

    @pytest.mark.parametrize("key", ["dropped", "state"])
    def test_a_count_over_that_of_batches(self, key: str) -> None:
        of = with_change({"batches": [{"kind": "data", key: 0}]}, **{key: 2})
        assert on_old(of, batch(0, **{key: 2 if key == "dropped" else (2,)})) == "differs"

    @pytest.mark.parametrize("key", ["dropped", "state"])
    def test_batches_that_give_a_count_over_that_of_the_step(self, key: str) -> None:
        of = with_change({key: 5}, batches=[{key: 1}])
        assert on_old(of, batch(0, **{key: 1 if key == "dropped" else (1,)})) == "differs"

    def test_batches_over_rows_taken_from_batches(self) -> None:
        of = with_change(self.BOTH, batches=[{"rows": [TWO]}])
        assert on_old(of, batch(0, SEEN_TWO)) == "differs"
        assert on_old(of, batch(0, SEEN_ONE)) == "violates"

    def test_batches_that_give_all_rows_over_rows_of_the_step(self) -> None:
        of = with_change({"rows": [ONE], "dropped": 5}, batches=[{"rows": [TWO], "dropped": 1}])
        assert on_old(of, batch(0, SEEN_TWO, dropped=1)) == "differs"
        assert on_old(of, batch(0, SEEN_ONE, dropped=5)) == "violates"

    def test_batches_that_give_no_rows_leave_those_of_the_step(self) -> None:
        of = with_change({**self.BOTH, "rows": [ONE]}, batches=[{"kind": "data"}])
        assert on_old(of, batch(0, SEEN_ONE)) == "differs"
        assert on_old(of, batch(0, SEEN_TWO)) == "violates"

    def test_batches_that_give_no_rows_leave_those_taken_from_batches(self) -> None:
        of = with_change(self.BOTH, batches=[{"kind": "data"}])
        assert on_old(of, batch(0, SEEN_ONE)) == "differs"
        assert on_old(of, batch(0, SEEN_TWO)) == "violates"

    def test_batches_that_give_no_drops_leave_those_of_the_step(self) -> None:
        of = with_change({"rows": [ONE], "dropped": 5}, batches=[{"rows": [TWO]}])
        assert on_old(of, batch(0, SEEN_TWO, dropped=5)) == "differs"
        assert on_old(of, batch(0, SEEN_TWO, dropped=4)) == "violates"

    def test_batches_with_rows_where_the_rows_of_the_step_are_not_checked(self) -> None:
        of = with_change({"rows": [ONE], "state": 1}, batches=[{"rows": [TWO]}], unchecked=["rows"])
        assert on_old(of, batch(0, SEEN_TWO)) == "differs"
        assert on_old(of, batch(0, SEEN_TWO), batch(1, SEEN_ONE)) == "violates"

    def test_no_batch_at_all(self) -> None:
        of = with_change(self.BOTH, batches=[])
        assert on_old(of) == "differs"
        assert on_old(of, batch(0, SEEN_ONE)) == "violates"

    def test_unchecked_batches_leave_their_rows_to_the_step(self) -> None:
        of = with_change(self.BOTH, unchecked=["batches"])
        assert on_old(of, batch(0, SEEN_ONE)) == "differs"
        assert on_old(of, batch(0), batch(1)) == "violates"

    def test_unchecked_rows_reach_into_the_batches(self) -> None:
        of = with_change(self.BOTH, unchecked=["rows"])
        assert on_old(of, batch(0, SEEN_TWO), batch(1, kind="no-data")) == "differs"
        assert on_old(of, batch(0, SEEN_TWO), batch(1)) == "violates"

    def test_complete_mode_takes_the_rows_of_the_last_batch(self) -> None:
        of = case(expect(batches=[{"rows": [ONE]}, {"rows": [TWO]}]), output_mode="complete")
        wanted = expected(of, NEWEST)
        assert isinstance(wanted, Steps)
        assert wanted.steps[0].expectation.rows == (tuple(TWO),)

    def test_append_mode_takes_the_rows_of_every_batch(self) -> None:
        """If one micro-batch emits what two should, only their number is wrong."""
        of = case(expect(batches=[{"rows": [ONE]}, {"rows": [TWO]}]), output_mode="append")
        findings = judge(of, NEWEST, observed(step(1, batch(0, SEEN_ONE, SEEN_TWO)))).findings
        assert [finding.aspect for finding in findings] == ["batches"]


class TestExpectedOfTheStart:
    def start_fails(self, **error: Any) -> Case:
        entry = differs("<3.4", because="it was refused", expect=expect(error=error))
        return case(expect(rows=[ONE]), expect(rows=[TWO]), differs=(entry,))

    def test_instead_of_every_step(self) -> None:
        of = self.start_fails(**{"class": ["AnalysisException"], "stage": "start"})
        wanted = expected(of, OLD)
        assert isinstance(wanted, Steps)
        assert [of_step.step.number for of_step in wanted.steps] == [1]
        assert judge(of, OLD, observed(failed(1, "AnalysisException", stage="start"))).status == "differs"
        assert judge(of, OLD, observed(failed(1, "AnalysisException", stage="run"))).status == "violates"
        assert judge(of, OLD, observed(step(1), step(2))).status == "violates"

    def test_a_plan_of_the_start_leaves_the_steps_alone_but_for_errors(self) -> None:
        entry = differs("<3.4", because="b", expect=expect(plan=["Old"]))
        of = case(expect(rows=[ONE]), expect(rows=[TWO]), differs=(entry,))
        assert judge(of, OLD, observed(step(1, plan="Old"), step(2))).status == "differs"
        assert judge(of, OLD, observed(step(1, plan="New"), step(2))).status == "violates"
        assert judge(of, OLD, observed(step(1, plan="Old"), failed(2, "X"))).status == "violates"


class TestUnsupported:
    OF = case(expect(rows=[ONE]), differs=(differs("<3.4", unsupported="it arrived in 3.4", link="SPARK-1"),))

    NAMED = case(
        expect(rows=[ONE]),
        differs=(
            differs(
                "<3.4",
                unsupported="it arrived in 3.4",
                link="SPARK-1",
                error=ExpectedError.model_validate(
                    {"class": ("AnalysisException",), "message": "Undefined function: 'f"}
                ),
            ),
        ),
    )

    @pytest.mark.parametrize("stage", ["analysis", "start"])
    def test_the_error_that_the_entry_names(self, stage: str) -> None:
        seen = failed(1, "AnalysisException", stage=stage, message="Undefined function: 'f'. This function is neither")
        verdict = judge(self.NAMED, OLD, observed(seen))
        assert (verdict.status, verdict.findings) == ("unsupported", ())
        assert verdict.describe() == (
            "late-drops/window-still-open on 3.0.3: unsupported\n  it arrived in 3.4 (SPARK-1)"
        )

    @pytest.mark.parametrize(
        ("classes", "message", "mismatch"),
        [
            (("AnalysisException",), "Undefined function: 'g'", "message"),
            (("TypeError",), "Undefined function: 'f'", "class"),
            (("KeyError",), "'agg'", "class, message"),
        ],
    )
    def test_no_other_error_counts(self, classes: tuple[str, ...], message: str, mismatch: str) -> None:
        verdict = judge(self.NAMED, OLD, observed(failed(1, *classes, stage="analysis", message=message)))
        assert (verdict.status, verdict.notes) == ("violates", ())
        assert verdict.describe() == (
            "late-drops/window-still-open on 3.0.3: violates\n"
            "  step 1 (late-drops/window-still-open.yaml:16)\n"
            "    error: expected AnalysisException with a message matching /Undefined function: 'f/, "
            f"observed {classes[0]} at analysis\n"
            f"      not as expected: {mismatch}\n"
            f"      {message}"
        )

    def test_without_a_name_only_a_missing_method_counts(self) -> None:
        assert judge(self.OF, OLD, observed(failed(1, "AttributeError", stage="analysis"))).status == "unsupported"
        verdict = judge(self.OF, OLD, observed(failed(1, "AnalysisException", stage="analysis")))
        assert verdict.status == "violates"
        assert verdict.notes == (
            "the `unsupported` entry names no error, so only a missing method counts: add `error: {class, message}`",
        )

    @pytest.mark.parametrize(
        ("seen", "text"),
        [
            (step(1, batch(0, SEEN_ONE)), "the case runs here, and this version behaves as the newest does"),
            (step(1, batch(0, SEEN_TWO)), "the case runs here, and not as it should on the newest"),
            (failed(1, "A", "B"), "the query started and then failed: A < B at run"),
        ],
    )
    def test_stale_where_it_starts(self, seen: Any, text: str) -> None:
        verdict = judge(self.OF, OLD, observed(seen))
        assert verdict.status == "violates"
        assert verdict.describe() == (
            "late-drops/window-still-open on 3.0.3: violates\n"
            "  late-drops/window-still-open.yaml:30\n"
            f"    stale differs entry for <3.4: {text}\n"
            "      the entry says: unsupported, it arrived in 3.4 (SPARK-1)"
        )

    def test_other_versions_are_not_excused(self) -> None:
        assert judge(self.OF, NEWEST, observed(failed(1, "X", stage="start"))).status == "violates"


class TestUnsupportedAfterAnUpgrade:
    """The version that resumes a checkpoint must refuse the query with the error of its entry."""

    PAIR = VersionPair(NEWEST, OLD)

    def verdict(self, message: str) -> Verdict:
        named = ExpectedError.model_validate({"class": ("AnalysisException",), "message": "Undefined function"})
        entry = differs("<3.4", unsupported="it arrived in 3.4", link="SPARK-1", error=named)
        of = case(expect(rows=[ONE]), expect(rows=[TWO]), differs=(entry,))
        seen = failed(2, "AnalysisException", stage="analysis", message=message)
        return judge_upgrade(CheckpointHandoff(of, 2), self.PAIR, observed(step(1, batch(0, SEEN_ONE)), seen))

    def test_with_the_error_of_the_entry(self) -> None:
        assert self.verdict("Undefined function: 'f'").status == "unsupported"

    def test_not_with_another(self) -> None:
        verdict = self.verdict("cannot resolve 'x'")
        assert verdict.status == "violates"
        assert isinstance(verdict.findings[0], ErrorDiffers)
        assert verdict.findings[0].mismatches == ("message",)


class TestKnownBug:
    def of(self, **changed: Any) -> Case:
        entry = differs("<3.4", because="it is lost", link="SPARK-1", bug=True, steps={1: change(**changed)})
        return case(expect(rows=[ONE]), differs=(entry,))

    def test_a_status_of_its_own(self) -> None:
        verdict = judge(self.of(rows=[]), OLD, observed(step(1, batch(0))))
        assert verdict.status == "bug"
        assert verdict.describe() == ("late-drops/window-still-open on 3.0.3: bug\n  known bug: it is lost (SPARK-1)")

    @pytest.mark.parametrize(
        ("introduced_by", "told"),
        [("SPARK-51955", "no ticket, introduced by SPARK-51955"), (None, "no ticket")],
    )
    def test_without_a_ticket(self, introduced_by: str | None, told: str) -> None:
        entry = differs("<3.4", because="it is lost", bug=True, introduced_by=introduced_by, steps={1: change(rows=[])})
        of = case(expect(rows=[ONE]), differs=(entry,))
        lost = judge(of, OLD, observed(step(1, batch(0))))
        assert lost.describe() == f"late-drops/window-still-open on 3.0.3: bug\n  known bug: it is lost ({told})"
        found = judge(of, OLD, observed(step(1, batch(0, SEEN_ONE))))
        assert f"the entry says: it is lost ({told})" in found.describe()

    def test_another_answer_is_not_excused(self) -> None:
        assert on_old(self.of(rows=[]), batch(0, SEEN_TWO)) == "violates"
        assert judge(self.of(rows=[]), NEWEST, observed(step(1, batch(0)))).status == "violates"

    def test_stale_where_the_bug_is_not_there(self) -> None:
        verdict = judge(self.of(rows=[]), OLD, observed(step(1, batch(0, SEEN_ONE))))
        assert verdict.status == "violates"
        assert "this version behaves as the case says, without the bug" in verdict.describe()

    def test_open_in_every_version(self) -> None:
        entry = differs(">=3.0", because="it is lost", link="SPARK-1", bug=True, steps={1: change(rows=[])})
        of = case(expect(rows=[ONE]), differs=(entry,))
        assert judge(of, NEWEST, observed(step(1, batch(0)))).status == "bug"
        assert judge(of, NEWEST, observed(step(1, batch(0, SEEN_ONE)))).status == "violates"


class TestStale:
    def test_an_entry_that_the_version_does_not_follow_but_the_case_without_it(self) -> None:
        verdict = judge(with_change({"rows": [ONE]}, rows=[TWO]), OLD, observed(step(1, batch(0, SEEN_ONE))))
        assert verdict.status == "violates"
        stale = verdict.findings[0]
        assert isinstance(stale, StaleEntry)
        assert stale.describe() == (
            "late-drops/window-still-open.yaml:30\n"
            "  stale differs entry for <3.4: this version behaves as the newest does\n"
            "    the entry says: it was so (SPARK-1)"
        )

    def test_not_where_neither_is_matched(self) -> None:
        verdict = judge(with_change({"rows": [ONE]}, rows=[TWO]), OLD, observed(step(1, batch(0))))
        assert verdict.status == "violates"
        assert not any(isinstance(finding, StaleEntry) for finding in verdict.findings)

    def test_an_entry_that_says_what_the_case_says_anyway(self) -> None:
        of = with_change({"rows": [ONE], "watermark": "12:00"}, watermark=43200)
        assert on_old(of, batch(0, SEEN_ONE), watermark=ms(12)) == "violates"

    def test_an_entry_that_also_adds_a_key_which_the_case_leaves_open(self) -> None:
        of = with_change({"rows": [ONE], "watermark": "12:00"}, watermark=43200, state=1)
        verdict = judge(of, OLD, observed(step(1, batch(0, SEEN_ONE), watermark=ms(12))))
        assert (verdict.status, [finding.kind for finding in verdict.findings]) == ("violates", ["stale"])

    def test_not_where_the_case_leaves_open_what_the_entry_says(self) -> None:
        assert on_old(with_change({"rows": [ONE]}, state=1), batch(0, SEEN_ONE)) == "differs"

    def test_not_where_the_version_lacks_the_metric_that_would_tell(self) -> None:
        assert (
            on_old(with_change({"rows": [ONE], "dropped": 0}, dropped=1), batch(0, SEEN_ONE, dropped=None)) == "differs"
        )

    def test_not_where_the_entry_only_leaves_something_open(self) -> None:
        assert on_old(with_change({"rows": [ONE], "state": 1}, unchecked=["state"]), batch(0, SEEN_ONE)) == "differs"

    def test_an_error_of_the_start_that_does_not_come(self) -> None:
        entry = differs("<3.4", because="it was refused", expect=expect(error={"stage": "start"}))
        verdict = judge(case(expect(rows=[ONE]), differs=(entry,)), OLD, observed(step(1, batch(0, SEEN_ONE))))
        assert [finding.kind for finding in verdict.findings] == ["stale", "error"]
