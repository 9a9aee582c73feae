"""The verdict on a job: its checkpoints, and what was tried for them."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from conformance.core.observation import Column, ErrorSeen, Observation, OwnCodeError, SourceRead
from conformance.core.versions import SparkVersion
from conformance.judging.checkpoint_verdict import CheckpointVerdict, with_same_reason
from conformance.own_job.changed_default import changed_defaults
from conformance.own_job.conclusion import conclude
from conformance.own_job.job_run import CellAnswer, JobRun, next_cells
from conformance.own_job.records import record
from conformance.own_job.sample_rows import RowsOfVersions
from conformance.own_job.statements import NOT_FIXED, statements, stress_statement, summary
from conformance.own_job.verdict import (
    NO_ROWS as NO_ROWS_AT_ALL,
)
from conformance.own_job.verdict import (
    NO_ROWS_AFTER,
    NOT_COMPARABLE,
    Stress,
    combined_exit_code,
    judge_job,
)
from conformance.query.reading import PHYSICAL_PLAN
from conformance.runner.execution import unseen
from harness.scheduling.cell_run import CellRun, CellTask, SavedCheckpoint
from harness.targets.targets import Target
from reports.analysis.job_relevance import KnownOfJob
from reports.html.standalone import write_verdict
from reports.results.checkpoint_status import severity
from tests.support.miniature.target import SPARK_359
from tests.support.observations import batch, case, expect, observed, step, window

GONE, LOST = (ErrorSeen(stage="run", classes=(name,), message="it is gone") for name in ("STATE_GONE", "STATE_LOST"))


def test_the_worst_comes_first_and_the_same_verdicts_together() -> None:
    resumed, refused = CheckpointVerdict("resumed"), CheckpointVerdict("refused", GONE)
    verdicts = {
        2: resumed,
        3: refused,
        4: CheckpointVerdict("other rows", difference="step 4"),
        5: refused,
        6: CheckpointVerdict("refused", GONE, fails_anyway=True),
        7: CheckpointVerdict("no answer", reason="the engine was lost"),
        8: CheckpointVerdict("refused", LOST),
    }
    together = sorted(with_same_reason(verdicts).items(), key=lambda group: severity(group[1]))
    assert [(verdict.outcome, verdict.fails_anyway, steps) for steps, verdict in together] == [
        ("refused", False, (3, 5)),
        ("refused", False, (8,)),
        ("other rows", False, (4,)),
        ("no answer", False, (7,)),
        ("refused", True, (6,)),
        ("resumed", False, (2,)),
    ]


ANSI, SCHEMA_CHECK = "spark.sql.ansi.enabled", "spark.sql.streaming.stateStore.stateSchemaCheck"

# Checkpoints of a job of two steps, handed over before the second.

ROWS = observed(step(1, batch(0, window("12:00", "12:10", 1))), step(2, batch(1, window("12:10", "12:20", 2))))
OTHER_ROWS = observed(ROWS.steps[0], step(2, batch(1, window("12:10", "12:20", 4710876046692450304))))
NO_ROWS = observed(step(1, batch(0)), step(2, batch(1)))
LATE = observed(ROWS.steps[0], step(2, batch(1, window("12:10", "12:20", 2), dropped=1)))
SILENT_AFTER = observed(ROWS.steps[0], step(2, batch(1)))
RATE = (SourceRead(stream="RateStreamV2", rows=1, moved=True),)
UNREAD = observed(*(step(n, batch(n - 1, window("12:00", "12:10", n), sources=RATE)) for n in (1, 2)))
"""Micro-batches that read nothing of the stream on which the case places rows."""
OF_A_SUM = (
    "Existing value_schema=StructType(StructField(sum,DoubleType,true)) and new "
    "value_schema=StructType(StructField(sum,LongType,true))."
)
CHECKED = "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"
REFUSED = observed(ROWS.steps[0], step(2, error=ErrorSeen(stage="run", classes=(CHECKED,), message=OF_A_SUM)))
LACKING = observed(
    step(
        1,
        error=ErrorSeen(
            stage="analysis",
            classes=("ImportError",),
            message="Pandas >= 1.0.5 must be installed; however, it was not found",
        ),
    )
)
AFTER = replace(SPARK_359, version=SparkVersion(4, 3, 0))


def outcome(seen: Observation, *targets: Target, cut: int | None = None, **workaround: str) -> CellAnswer:
    conf = {f"spark.sql.{key.replace('__', '.')}": value for key, value in workaround.items()}
    task = CellTask(JOB, targets, cut, workaround=conf)
    kept = {2: SavedCheckpoint(seen, "run", "run.before-2")} if cut is None else {}
    return CellAnswer(task, CellRun(task, (seen,), None, seconds=0.1, kept=kept))


JOB = case(expect(), expect())


def ran(
    before: Observation,
    after: Observation,
    restarted: Observation | None,
    resumed: Observation,
    tried: tuple[CellAnswer, ...] = (),
    *,
    on: Target = SPARK_359,
) -> JobRun:
    engines = tuple(unseen(target, "local") for target in (on, AFTER))
    outcomes = (
        outcome(before, on),
        outcome(after, AFTER),
        *([outcome(restarted, on, on, cut=2)] if restarted is not None else []),
        outcome(resumed, on, AFTER, cut=2),
        *tried,
    )
    return JobRun(JOB, on, AFTER, outcomes, engines, datetime.now(UTC), {})


def test_a_refused_state_is_handed_over_again_with_the_settings_that_may_help() -> None:
    cells = next_cells(ran(ROWS, ROWS, ROWS, REFUSED))
    expected = [({ANSI: "false"}, 2, AFTER), ({SCHEMA_CHECK: "false"}, 2, AFTER)]
    assert [(dict(cell.workaround), cell.cut, cell.target) for cell in cells] == expected


def test_of_the_checkpoints_of_a_job_the_worst_comes_first() -> None:
    before_the_first = outcome(ROWS, SPARK_359, AFTER, cut=1)
    found = judge_job(ran(ROWS, ROWS, ROWS, REFUSED, (before_the_first,))).handoffs
    assert [(group.verdict.outcome, group.steps) for group in found] == [("refused", (2,)), ("resumed", (1,))]


def test_nothing_is_tried_where_the_checkpoint_resumes_or_resumes_nowhere() -> None:
    assert next_cells(ran(ROWS, ROWS, REFUSED, REFUSED)) == ()


def test_a_handoff_is_resumed_where_it_was_written_only_if_its_answer_differs_from_the_whole_job() -> None:
    cell, *again = next_cells(ran(ROWS, ROWS, None, OTHER_ROWS))
    assert (cell.cut, cell.targets) == (2, (SPARK_359, SPARK_359))
    # Chance may be the reason, too.
    assert [(each.cut, each.targets) for each in again] == [(None, (SPARK_359,)), (None, (AFTER,))]
    # What may help a refused checkpoint is tried at the same time, on the other engine.
    restart, *settings = next_cells(ran(ROWS, ROWS, None, REFUSED))
    assert (restart.targets, restart.workaround) == ((SPARK_359, SPARK_359), {})
    assert [(each.target, list(each.workaround)) for each in settings] == [(AFTER, [ANSI]), (AFTER, [SCHEMA_CHECK])]
    assert next_cells(ran(ROWS, ROWS, None, ROWS)) == ()


def test_nothing_more_runs_without_an_answer_to_compare() -> None:
    run = ran(ROWS, ROWS, None, OTHER_ROWS)
    whole, *others = run.answers
    for lost in ((replace(whole, run=None), *others), (whole, *(replace(other, run=None) for other in others))):
        assert next_cells(replace(run, answers=lost)) == ()
    assert next_cells(ran(NO_ROWS, NO_ROWS, None, NO_ROWS)) == ()


def test_where_both_versions_do_the_same_the_job_runs_once_on_each() -> None:
    run = replace(ran(ROWS, ROWS, None, ROWS), answers=ran(ROWS, OTHER_ROWS, None, ROWS).answers)
    *cells, without_ansi = next_cells(run)
    assert [cell.targets for cell in cells] == [(SPARK_359,), (AFTER,)]
    assert without_ansi.case.conf[ANSI] == "false"
    again = replace(run, answers=(*run.answers, outcome(ROWS, SPARK_359), outcome(OTHER_ROWS, AFTER)))
    assert next_cells(again) == ()
    assert again.on(AFTER).run.observations == (OTHER_ROWS, OTHER_ROWS)


def test_ansi_mode_is_tried_only_where_its_default_changes_and_the_job_does_not_set_it() -> None:
    newer = ran(ROWS, ROWS, ROWS, REFUSED, on=replace(AFTER, version=SparkVersion(4, 0, 5)))
    for other in (replace(ran(ROWS, ROWS, ROWS, REFUSED), conf={ANSI: "true"}), newer):
        tried = next_cells(other)
        assert tried
        assert all(cell.workaround == {SCHEMA_CHECK: "false"} for cell in tried)


PYTHON = "== Physical Plan ==\n+- ArrowEvalPython [f(amount#1)#2], [pythonUDF0#3], 200"
ARROW, SAFELY = "spark.sql.execution.pythonUDF.arrow.enabled", "spark.sql.execution.pandas.convertToArrowArraySafely"


@pytest.mark.parametrize(
    ("before", "after", "plan", "keys"),
    [
        ("3.5.9", "4.3.0", "", {ANSI}),
        ("3.5.9", "4.3.0", PYTHON, {ANSI, ARROW, SAFELY}),
        ("4.0.5", "4.1.4", PYTHON, {SAFELY}),
        ("4.2.0", "4.3.0", PYTHON, set()),
        ("4.3.0", "3.5.9", PYTHON, set()),
        ("3.0.3", "3.1.3", "stddev(amount#1)", {"spark.sql.legacy.statisticalAggregate"}),
    ],
)
def test_settings_whose_default_changed_between_two_versions_and_which_a_plan_may_meet(
    before: str, after: str, plan: str, keys: set[str]
) -> None:
    changed = changed_defaults(SparkVersion.parse(before), SparkVersion.parse(after), [plan])
    assert {each.key for each in changed} == keys


NOT_PARSED = "Text 'n/a' could not be parsed at index 0. Use `try_to_timestamp` to tolerate invalid input string and return NULL."
"""As Spark 4.3.0 says it."""
UNPARSED = ErrorSeen(stage="run", classes=("CANNOT_PARSE_TIMESTAMP",), message=NOT_PARSED)
NO_INT = '[CAST_INVALID_INPUT] The value \'{}\' of the type "STRING" cannot be cast to "INT" because it is malformed. Use `try_cast` to'
TOO_LARGE = '[CAST_OVERFLOW] The value 3000000000L of the type "BIGINT" cannot be cast to "INT" due to an overflow. Use `try_cast` to'


@pytest.mark.parametrize(
    ("without", "after", "named"),
    [
        (ROWS, observed(ROWS.steps[0], step(2, error=UNPARSED)), "both versions: try_to_timestamp"),
        *(
            (ROWS, observed(step(1, error=ErrorSeen(stage="run", classes=(message[1:14],), message=message))), mend)
            for message, mend in (
                # As Spark 3.5.9 and 4.3.0 cast in both modes: 67, -1294967296 and null without ANSI mode.
                (
                    NO_INT.format("67.02"),
                    "cast(cast(… AS DOUBLE) AS INT): without ANSI mode the cast cuts the fraction off",
                ),
                (NO_INT.format("-.5"), "cast(cast(… AS DOUBLE) AS INT)"),
                (NO_INT.format("n/a"), "gives null on both versions: try_cast"),
                (NO_INT.format("1e3"), "gives null on both versions: try_cast"),
                (
                    TOO_LARGE,
                    "such as BIGINT or DECIMAL: without ANSI mode it becomes another number, and try_cast gives null",
                ),
            )
        ),
        (ROWS, OTHER_ROWS, "write the casts out"),
        (OTHER_ROWS, OTHER_ROWS, ""),
    ],
)
def test_ansi_mode_is_named_only_if_the_change_goes_without_it(
    without: Observation, after: Observation, named: str
) -> None:
    run = ran(ROWS, after, None, ROWS)
    tried = outcome(without, AFTER, ansi__enabled="false")
    found = judge_job(replace(run, answers=(*run.answers, tried)))
    assert named in found.caused_by
    assert bool(found.caused_by) is record(found)["change"]["ansi"] is bool(named)
    details = [detail for line in statements(found) for detail in line.details]
    assert any(detail.startswith("caused by ANSI mode") for detail in details) is bool(named)
    assert judge_job(run).caused_by == ""


def test_a_row_that_the_later_version_emits_anyway_is_no_fault_of_a_workaround() -> None:
    nullable = OF_A_SUM.replace("DoubleType", "LongType").replace("sum,LongType,true", "sum,LongType,false", 1)
    refused = observed(ROWS.steps[0], step(2, error=ErrorSeen(stage="run", classes=(CHECKED,), message=nullable)))
    tried = (outcome(OTHER_ROWS, SPARK_359, AFTER, cut=2, streaming__stateStore__stateSchemaCheck="false"),)
    (group,) = judge_job(ran(ROWS, OTHER_ROWS, ROWS, refused, tried)).handoffs
    assert group.workaround is not None
    assert "same rows in 1 of 1 handoff, 1 of them as the later version" in str(group.workaround)
    (group,) = judge_job(ran(ROWS, ROWS, ROWS, refused, tried)).handoffs
    assert group.workaround is None


def test_a_workaround_after_which_rows_only_come_later_gives_no_wrong_rows() -> None:
    one, two = window("12:00", "12:10", 1), window("12:10", "12:20", 2)
    first, last = (
        observed(step(1, batch(0)), step(2, *(batch(at, *((one, two) if at == full else ())) for at in (1, 2))))
        for full in (1, 2)
    )
    tried = (outcome(last, SPARK_359, AFTER, cut=2, ansi__enabled="false"),)
    (group,) = judge_job(ran(first, first, first, REFUSED, tried)).handoffs
    assert str(group.tried[0]) == (
        f"{ANSI}=false changes only when rows come; tried in 1 handoff: same rows, 2 rows later, within the same step in 1"
    )
    assert group.workaround is None


def test_right_rows_are_no_proof_where_the_bytes_of_one_type_are_read_as_another() -> None:
    """No duplicate of the sample came after the handoff, so a deduplication with other bits in its keys looked right."""
    tried = (outcome(ROWS, SPARK_359, AFTER, cut=2, streaming__stateStore__stateSchemaCheck="false"),)
    (group,) = judge_job(ran(ROWS, ROWS, ROWS, REFUSED, tried)).handoffs
    assert group.workaround is None
    assert str(group.tried[0]).endswith("reads the bytes of one type as another; tried in 1 handoff: same rows in 1")


def test_a_workaround_is_one_only_if_every_row_is_right() -> None:
    tried = (
        outcome(ROWS, SPARK_359, AFTER, cut=2, ansi__enabled="false"),
        outcome(OTHER_ROWS, SPARK_359, AFTER, cut=2, streaming__stateStore__stateSchemaCheck="false"),
    )
    found = judge_job(ran(ROWS, ROWS, ROWS, REFUSED, tried))
    (group,) = found.handoffs
    assert [str(each) for each in group.tried] == [
        f"workaround: {ANSI}=false; tried: same rows in 1 of 1 handoff",
        f"{SCHEMA_CHECK}=false does not help, do not use it: Spark reads the bytes of one type as another; "
        "tried in 1 handoff: wrong rows in 1",
    ]
    assert group.workaround is group.tried[0]
    (told,) = (one for one in statements(found) if one.text.startswith("the checkpoint is refused"))
    assert told.details[0] == "state of the aggregation, column sum: double in the checkpoint, bigint wanted"
    (checkpoint,) = record(found)["checkpoints"]
    assert checkpoint["workaround"] == f"{ANSI}=false"
    # Right rows alone prove nothing, so programs read what the text says.
    assert [each["proven"] for each in checkpoint["tried"]] == [True, False]


NO_SAMPLE = RowsOfVersions(())
HELPS = outcome(ROWS, SPARK_359, AFTER, cut=2, ansi__enabled="false")
"""Of a refused checkpoint, with a setting."""


@pytest.mark.parametrize(
    ("run", "reasons", "code", "answer", "line"),
    [
        (
            ran(ROWS, ROWS, ROWS, ROWS),
            [],
            0,
            "same",
            "same rows; the checkpoint resumes; not tried: 1 thing, listed below",
        ),
        (
            ran(ROWS, ROWS, ROWS, REFUSED, (HELPS,)),
            [],
            1,
            "refused",
            f"same rows; the checkpoint is refused. Start it on 4.3.0 with {ANSI}=false: tried, same rows.",
        ),
        (
            ran(ROWS, ROWS, ROWS, REFUSED),
            [],
            1,
            "refused",
            "same rows; the checkpoint is refused. Keep 3.5.9 for this checkpoint, or start 4.3.0 with a new one: no setting is proven "
            "to help.",
        ),
        (
            ran(ROWS, OTHER_ROWS, None, ROWS),
            ["3.5.9 has a known bug (SPARK-50046)"],
            1,
            "differs",
            "1 row has different values; the checkpoint resumes. 3.5.9 has a known bug (SPARK-50046).",
        ),
        (
            ran(ROWS, OTHER_ROWS, None, ROWS),
            [],
            1,
            "differs",
            "1 row has different values; the checkpoint resumes. The suite knows no reason: look at the first difference below.",
        ),
        (
            ran(LACKING, ROWS, None, ROWS),
            [],
            1,
            "differs",
            "runs; it was refused at analysis (ImportError) before; no answer about the checkpoint. 3.5.9: no module pandas: write "
            "its package, pandas, into a file, and give that with --requirements FILE; for an installed Spark, pip install it.",
        ),
        (
            ran(ROWS, ROWS, ROWS, ROWS),
            [],
            1,
            "lost",
            "same rows; the checkpoint resumes. --accept-lost if they may be lost.",
        ),
        (
            ran(NO_ROWS, NO_ROWS, None, NO_ROWS),
            [],
            3,
            "unknown",
            f"no answer; no answer about the checkpoint. 3.5.9: {NO_ROWS_AT_ALL}.",
        ),
    ],
)
def test_the_last_line_is_the_worst_of_all_parts_with_what_to_do(run, reasons, code, answer, line) -> None:
    concluded = conclude(judge_job(run), (), NO_SAMPLE, lambda _: reasons, code, ["sinks"])
    assert (concluded.answer, concluded.line) == (answer, f"3.5.9 → 4.3.0: {line}")


def test_a_condition_that_alone_changes_rows_is_in_the_last_line_with_its_ticket() -> None:
    other = Stress("other_partitions", "with other partitions", judge_job(ran(ROWS, OTHER_ROWS, None, OTHER_ROWS)))
    concluded = conclude(judge_job(ran(ROWS, ROWS, ROWS, ROWS)), [other], NO_SAMPLE, lambda _: ["a bug"], 1, [])
    assert concluded.answer == "differs"
    assert "with other partitions: 1 row has different values" in concluded.line
    assert concluded.line.endswith(
        "(SPARK-53942). Workaround: set spark.sql.shuffle.partitions to the number that the checkpoint stores."
    )
    # A ticket follows the part that it is about, whatever else is said.
    run = ran(ROWS, observed(ROWS.steps[0], step(2, error=UNPARSED)), None, ROWS)
    unfit = judge_job(replace(run, answers=(*run.answers, outcome(ROWS, AFTER, ansi__enabled="false"))))
    warning = Stress("unfit_rows", "with rows that do not parse", unfit)
    line = conclude(judge_job(ran(ROWS, ROWS, ROWS, ROWS)), [other, warning], NO_SAMPLE, lambda _: [], 1, []).line
    assert "resumes with other rows (SPARK-53942); with rows that do not parse, which this sample" in line


def test_rows_that_the_sample_does_not_have_only_warn() -> None:
    run = ran(ROWS, observed(ROWS.steps[0], step(2, error=UNPARSED)), None, ROWS)
    unfit = judge_job(replace(run, answers=(*run.answers, outcome(ROWS, AFTER, ansi__enabled="false"))))
    stress, sample = Stress("unfit_rows", "with rows that do not parse", unfit), judge_job(ran(ROWS, ROWS, ROWS, ROWS))
    said = stress_statement(stress, sample)
    assert (said.kind, combined_exit_code(sample, [stress])) == ("bug", 0)
    assert said.text == (
        "with rows that do not parse, which this sample does not have, 4.3.0 fails while it runs: CANNOT_PARSE_TIMESTAMP"
    )
    concluded = conclude(sample, [stress], NO_SAMPLE, lambda _: [], 0, [])
    assert concluded.answer == "same"
    assert said.text in concluded.line
    # A sample that has such a row itself says so once.
    assert stress_statement(stress, unfit).text == "with rows that do not parse: no other change"
    assert "does not have" not in conclude(unfit, [stress], NO_SAMPLE, lambda _: [], 1, []).line
    # Without ANSI mode as the cause, it is a change like any other.
    other = replace(stress, verdict=judge_job(run))
    assert (stress_statement(other, sample).kind, combined_exit_code(sample, [other])) == ("violates", 1)


def test_ansi_mode_is_in_the_last_line() -> None:
    run = ran(ROWS, observed(ROWS.steps[0], step(2, error=UNPARSED)), None, ROWS)
    verdict = judge_job(replace(run, answers=(*run.answers, outcome(ROWS, AFTER, ansi__enabled="false"))))
    line = conclude(verdict, [], NO_SAMPLE, lambda _: ["a bug"], 1, []).line
    assert "(SPARK-44444). Caused by ANSI mode" in line
    assert line.endswith("try_to_timestamp.")


def test_a_handoff_after_which_nothing_came_says_nothing_of_a_workaround() -> None:
    (shown,) = (outcome(SILENT_AFTER, SPARK_359, AFTER, cut=2, ansi__enabled="false"),)
    run = ran(ROWS, ROWS, SILENT_AFTER, REFUSED, (shown,))
    (group,) = judge_job(run).handoffs
    assert (group.verdict.outcome, group.tried) == ("refused", ())


def test_an_error_that_ends_the_query_without_the_checkpoint_too_is_no_refusal_of_it() -> None:
    """The error of a row was called a refusal of the checkpoint."""
    row = ErrorSeen(stage="run", classes=("CAST_INVALID_INPUT",), message="'x' cannot be cast")
    failed = observed(ROWS.steps[0], step(2, error=row))
    (group,) = judge_job(ran(ROWS, failed, ROWS, failed)).handoffs
    assert group.verdict.outcome == "fails later"
    (group,) = judge_job(ran(ROWS, ROWS, ROWS, failed)).handoffs
    assert group.verdict.outcome == "refused"


@pytest.mark.parametrize(
    ("seen", "answer", "why"),
    [
        (NO_ROWS, "unknown", ""),
        (SILENT_AFTER, "same", NO_ROWS_AFTER),
        # Of a function that made its own stream, it said that the checkpoint resumes.
        (UNREAD, "unknown", "has it as a source"),
    ],
)
def test_a_checkpoint_without_rows_of_the_sample_has_no_verdict(seen: Observation, answer: str, why: str) -> None:
    found = judge_job(ran(seen, seen, seen, seen))
    assert (found.answer, found.exit_code) == (answer, 3)
    (group,) = found.handoffs
    assert group.verdict.outcome == "no answer"
    assert why in group.verdict.reason
    assert any(one.glyph == "●" for one in statements(found)) is (answer == "same")


def test_other_types_of_columns_are_a_difference() -> None:
    columns = (*ROWS.columns[:-1], Column(name="total", type="double"))
    other = ROWS.model_copy(update={"columns": columns})
    found = judge_job(ran(ROWS, other, ROWS, ROWS))
    assert (found.columns, found.exit_code) == (("column 3: total bigint on 3.5.9, total double on 4.3.0",), 1)
    assert (found.answer, found.change) == ("same", None)
    assert "same rows; other columns" in summary(found)


@pytest.mark.parametrize(
    ("state", "watermark", "code"),
    [((0,), 0, 0), ((1,), 0, 0), ((2,), 0, 1), ((0,), 1, 1), ((0, 0), 0, 1)],
)
def test_less_state_with_the_same_rows_is_no_reason_to_block(state: tuple[int, ...], watermark: int, code: int) -> None:
    """A semi join forgets matched rows from 4.2 on (SPARK-55973): no row of a result changes. More state is another matter."""
    rows = window("12:10", "12:20", 2)
    other = observed(ROWS.steps[0], step(2, batch(1, rows, state=state, watermark=watermark), watermark=watermark))
    found = judge_job(ran(ROWS, other, ROWS, ROWS))
    assert found.exit_code == code
    assert (found.answer == "same") is (code == 0)
    if state == (0,) and code == 0:
        assert summary(found).startswith("3.5.9 → 4.3.0: same rows, less state on 4.3.0")
        same, less = [*statements(found)][:2]
        assert (same.text, less.kind) == ("same rows and watermarks in 2 micro-batches", "differs")
        assert less.text == "4.3.0 keeps fewer rows in state, which changes no result of this sample"
        assert less.details == ("first difference: step 2, micro-batch 1: state [1] | [0]",)


def test_a_job_whose_code_fails_has_no_checkpoints() -> None:
    mistake = OwnCodeError(raised="TypeError('x')", at="jobs.py:3", during="while building the query", traceback="")
    failed = observed(step(1, error=ErrorSeen(stage="analysis", classes=("TypeError",), message="x", own_code=mistake)))
    found = judge_job(ran(failed, failed, failed, failed))
    assert (found.handoffs, found.exit_code) == ((), 2)
    assert summary(found) == "3.5.9 → 4.3.0: the job fails on 3.5.9 and 4.3.0"
    of_earlier = judge_job(ran(failed, ROWS, failed, ROWS))
    assert (of_earlier.exit_code, summary(of_earlier)) == (2, "3.5.9 → 4.3.0: the job fails on 3.5.9")


@pytest.mark.parametrize(
    ("raised", "answer", "code", "said"),
    [
        (
            "AttributeError('no x')",
            "differs",
            1,
            "your code raised AttributeError('no x') at jobs.py:3, in a UDF",
        ),
        (
            "ModuleNotFoundError(\"No module named 'pyspark.x'\")",
            "differs",
            1,
            "your code raised ModuleNotFoundError(\"No module named 'pyspark.x'\") at jobs.py:3, in a UDF",
        ),
        # A version's own environment, of which no upgrade of Spark is the reason.
        ("ModuleNotFoundError(\"No module named 'acme'\")", "fails", 2, "the job fails on 4.3.0"),
    ],
)
def test_code_that_fails_on_the_later_version_alone_is_a_change_that_no_checkpoint_explains(
    raised: str, answer: str, code: int, said: str
) -> None:
    mistake = OwnCodeError(raised=raised, at="jobs.py:3", during="in a UDF")
    error = ErrorSeen(stage="run", classes=("PythonException",), message="x", own_code=mistake)
    run = ran(ROWS, observed(ROWS.steps[0], step(2, error=error)), ROWS, ROWS)
    found = judge_job(run)
    assert (found.answer, found.exit_code, found.handoffs, summary(found)) == (
        answer,
        code,
        (),
        f"3.5.9 → 4.3.0: {said}",
    )
    assert not any(cell.cut for cell in next_cells(replace(run, answers=run.answers[:2])))
    line = conclude(found, (), RowsOfVersions(()), lambda _: ["a known bug"], code, ()).line
    assert line.endswith(f"{said}. Change it so that it runs on 4.3.0, too." if code == 1 else ".")
    assert next(said.glyph for said in statements(found)) == "!"


def test_a_class_that_a_query_lacks_while_it_runs_is_named_with_what_to_do() -> None:
    """The message is but the name of the class."""
    own = "com.databricks.sql.streaming.state.RocksDBStateStoreProvider"
    said = f"[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: {own}\nCaused by: {own}"
    lacks = ErrorSeen(
        stage="run", classes=("STREAM_FAILED", "StreamingQueryException", "ClassNotFoundException"), message=said
    )
    failed = observed(step(1, error=lacks))
    (_, before), (_, after) = judge_job(ran(failed, failed, failed, failed)).failures
    assert before == after
    assert before.startswith(
        f"no class {own}, which only Databricks has; its state store in RocksDB is here org.apache"
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE",
            'The event time `count` has the invalid type "INT", but expected "TIMESTAMP".',
        ),
        ("DATATYPE_MISMATCH", 'The first parameter requires the "TIMESTAMP" type, however "count" has the type "INT".'),
        ("AnalysisException", "Event time must be defined on a window or a timestamp, but count is of type int"),
    ],
)
def test_a_column_that_is_no_timestamp_in_the_sample_is_named_with_the_options_that_say_so(
    name: str, message: str
) -> None:
    failed = observed(step(1, error=ErrorSeen(stage="analysis", classes=(name,), message=message)))
    verdict = judge_job(ran(failed, failed, failed, failed))
    assert (verdict.answer, verdict.exit_code, verdict.handoffs) == ("fails", 2, ())
    (_, before), (_, after) = verdict.failures
    assert before == after
    assert before.startswith(f"count is int in the sample of events, and the query wants a TIMESTAMP ({name}): ")
    assert "--schema 'events=`event_time` timestamp, `count` timestamp'" in before
    other = observed(
        step(1, error=ErrorSeen(stage="analysis", classes=(name,), message=message.replace("count", "counts")))
    )
    (_, before), _ = judge_job(ran(other, other, other, other)).failures
    assert before.startswith("step 1 ends with ")


def test_a_verdict_on_digests_says_so() -> None:
    def of(count: int, digest: int) -> Observation:
        return observed(step(1, batch(0, [f"{count} rows", f"digest {digest}"])), step(2, batch(1)))

    files = {1: {"events": "events-1.jsonl"}}
    same = judge_job(replace(ran(of(9, 5), of(9, 5), None, of(9, 5)), files=files))
    assert summary(same).startswith("3.5.9 → 4.3.0: same digests of rows")
    assert "same number of rows and same digest of them" in next(statements(same)).text
    differs = judge_job(replace(ran(of(9, 5), of(9, 6), None, of(9, 5)), files=files))
    first = next(statements(differs))
    assert first.text.endswith("other rows, by their digest")
    assert '["9 rows", "digest 5"]' in first.details[0]
    assert record(differs)["digests"]


# What a verdict says beside the sample as it is.


def plan_of(*projected: str) -> str:
    lines = [
        "== Analyzed Logical Plan ==",
        "n: bigint",
        f"~Project [{', '.join(projected)}]",
        "+- Relation [n#1L] json",
    ]
    return "\n".join(["== Parsed Logical Plan ==", *lines, "", PHYSICAL_PLAN, "*(1) Project [n#1L]"])


UUID = plan_of(
    "n#1L", "upper(uuid(Some(-42))) AS u#2", "rand(7) AS r#3", "current_batch_timestamp(17, DateType, Some(UTC)) AS d#4"
)
OTHER_UUID = UUID.replace("-42", "-43")


def with_plan(seen: Observation, plan: str) -> Observation:
    return seen.model_copy(update={"steps": (seen.steps[0].model_copy(update={"plan": plan}), *seen.steps[1:])})


def test_what_the_sample_does_not_fix_is_named_from_the_plan() -> None:
    names = ("uuid(…) in the projection of u", "the clock in the projection of d")
    verdict = judge_job(ran(with_plan(ROWS, UUID), with_plan(ROWS, OTHER_UUID), ROWS, ROWS))
    # Both versions show the seed of rand, so it is the author's.
    assert (verdict.answer, verdict.not_fixed) == ("same", names)
    (statement,) = (each for each in statements(verdict) if each.text == NOT_FIXED)
    assert (statement.kind, statement.details) == ("unsupported", names)
    assert record(verdict)["not_fixed"] == [*names]


@pytest.mark.parametrize("side", ["3.5.9", "4.3.0", None])
def test_the_query_is_read_from_the_plan_of_the_version_that_tells_it(side: str | None) -> None:
    before, after = (with_plan(ROWS, UUID) if side == version else ROWS for version in ("3.5.9", "4.3.0"))
    verdict = judge_job(ran(before, after, ROWS, ROWS))
    assert (verdict.plan, record(verdict)["planned_by"]) == (UUID if side else "", side)
    assert bool(verdict.features) == bool(verdict.not_fixed) == bool(side)
    known = KnownOfJob(verdict.before, verdict.after, verdict.features, verdict.planned_elsewhere, (), (), {})
    of_the_query = [
        each.text for each in known.statements() if each.text.startswith("beside checkpoints, the suite knows no bug")
    ]
    assert len(of_the_query) == bool(side)
    assert all(text.endswith("can meet, by its plan on 4.3.0") is (side == "4.3.0") for text in of_the_query)


COLLECTS = "== Analyzed Logical Plan ==\nwho: string\nAggregate [who#1], [who#1, collect_set(x#2, 0, 0) AS {}#3]\n"


def collected(column: str, *emitted: list[int]) -> Observation:
    """The plan fills the column, and the query emits `who` and `xs`."""
    seen = observed(*(step(at, batch(at - 1, rows=(("a", xs),))) for at, xs in enumerate(emitted, 1)))
    columns = Column(name="who", type="string"), Column(name="xs", type="array<int>")
    return with_plan(seen.model_copy(update={"columns": columns}), COLLECTS.format(column))


def test_an_order_inside_arrays_that_spark_does_not_promise_is_no_other_row() -> None:
    before, after = collected("xs", [1, 2], [3, 4]), collected("xs", [2, 1], [3, 4])
    verdict = judge_job(ran(before, after, before, after))
    assert (verdict.answer, verdict.exit_code, verdict.reordered) == ("same", 0, ("xs",))
    assert summary(verdict) == "3.5.9 → 4.3.0: same rows, but for the order inside xs; the checkpoint resumes"
    (text,) = (each.text for each in statements(verdict) if "order inside" in each.text)
    assert text == "the order inside xs is another: collect_list and collect_set promise none; sort_array makes one"
    # What the engines showed is kept.
    assert verdict.wholes[1].observation == after
    assert record(verdict)["reordered"] == ["xs"]


@pytest.mark.parametrize(("column", "after"), [("xs", [2, 5]), ("ys", [2, 1])])
def test_other_elements_and_an_order_that_no_function_leaves_open_are_other_rows(column: str, after: list[int]) -> None:
    seen, other = collected(column, [1, 2], [3, 4]), collected(column, after, [3, 4])
    verdict = judge_job(ran(seen, other, seen, other))
    assert (verdict.answer, verdict.exit_code, verdict.reordered) == ("differs", 1, ())
    assert verdict.by_order == (f"collect_set(…) in the aggregation of {column}",)
    concluded = conclude(verdict, (), RowsOfVersions(()), lambda _: [], 1, ())
    assert concluded.line.endswith("depends on the order of rows, which Spark does not promise.")


CLOCK = "== Analyzed Logical Plan ==\nwho: string\nProject [who#1, current_batch_timestamp(1, TimestampType, None) AS at#2]\n"


def stamped(*emitted: tuple[str, str]) -> Observation:
    seen = observed(*(step(at, batch(at - 1, rows=(row,))) for at, row in enumerate(emitted, 1)))
    columns = Column(name="who", type="string"), Column(name="at", type="timestamp")
    return with_plan(seen.model_copy(update={"columns": columns}), CLOCK)


def test_a_column_that_the_clock_makes_is_not_compared_and_all_others_are() -> None:
    before, after = stamped(("ada", "10:00"), ("bob", "10:01")), stamped(("ada", "11:00"), ("bob", "11:01"))
    run = ran(before, after, before, after)
    first, *others = run.answers
    twice = replace(first, run=replace(first.run, observations=(before, stamped(("ada", "12:00"), ("bob", "12:01")))))
    verdict = judge_job(replace(run, answers=(twice, *others)))
    assert (verdict.answer, verdict.exit_code, verdict.left_out) == ("same", 0, ("at",))
    (statement,) = (each for each in statements(verdict) if each.text.startswith("not compared"))
    assert (statement.text, statement.details) == (
        "not compared, since the sample does not fix it: at",
        ("the clock in the projection of at",),
    )
    assert verdict.wholes[0].observation == before
    assert verdict.reordered == ()
    other = judge_job(ran(before, stamped(("eve", "11:00"), ("bob", "11:01")), before, after))
    assert (other.answer, other.exit_code) == ("differs", 1)


def test_beside_a_column_of_the_clock_another_order_inside_arrays_is_said_too() -> None:
    def seen(at: str, xs: list[int]) -> Observation:
        emitted = observed(*(step(n, batch(n - 1, rows=((at, xs),))) for n in (1, 2)))
        columns = Column(name="at", type="timestamp"), Column(name="xs", type="array<int>")
        plan = CLOCK + "+- Aggregate [who#1], [who#1, collect_set(x#4, 0, 0) AS xs#3]\n"
        return with_plan(emitted.model_copy(update={"columns": columns}), plan)

    before, after = seen("10:00", [1, 2]), seen("11:00", [2, 1])
    verdict = judge_job(ran(before, after, before, after))
    assert (verdict.answer, verdict.left_out, verdict.reordered) == ("same", ("at",), ("xs",))
    assert judge_job(ran(before, seen("11:00", [1, 2]), before, before)).reordered == ()


def test_a_job_that_is_not_comparable_says_what_it_calls() -> None:
    run = ran(with_plan(ROWS, UUID), ROWS, ROWS, ROWS)
    first, *others = run.answers
    twice = replace(first, run=replace(first.run, observations=(first.run.observations[0], OTHER_ROWS)))
    verdict = judge_job(replace(run, answers=(twice, *others)))
    assert (verdict.answer, verdict.exit_code, verdict.handoffs) == ("unknown", 3, ())
    ((_, why),) = verdict.failures
    assert why.splitlines() == [
        NOT_COMPARABLE,
        "uuid(…) in the projection of u, unless your code gives its seed",
        "rand(…) in the projection of r, unless your code gives its seed",
        "the clock in the projection of d",
    ]


def stress(verdict) -> Stress:
    return Stress("silent_streams", "with a silent stream", verdict)


def test_what_a_stress_shows_is_said_apart() -> None:
    fine, other = judge_job(ran(ROWS, ROWS, ROWS, ROWS)), judge_job(ran(ROWS, OTHER_ROWS, ROWS, ROWS))
    said = stress_statement(stress(fine), fine)
    assert (said.glyph, said.text) == ("●", "also with a silent stream: same rows; the checkpoint resumes")
    said = stress_statement(stress(other), fine)
    assert said.glyph == "✗"
    assert any(line.startswith("first difference") for line in said.details)
    *_, why, workaround = stress_statement(replace(stress(other), name="other_partitions"), fine).details
    assert (why.endswith("(SPARK-53942)"), workaround.startswith("workaround: set spark.sql.shuffle.part")) == (
        True,
        True,
    )
    # What the sample as it is shows as well is said once.
    said = stress_statement(stress(other), other)
    assert (said.glyph, said.text, said.details) == ("●", "with a silent stream: no other change", ())
    assert [combined_exit_code(fine, map(stress, found)) for found in ((), (fine,), (fine, other))] == [0, 0, 1]


def test_the_answer_for_the_sample_ends_where_rows_are_repeated() -> None:
    """One run shows both: what a repeated row does to it, an error too, is no answer for the sample as it is."""
    fails = observed(ROWS.steps[0], step(2, error=GONE))
    shorter = case(expect())
    for seen in (OTHER_ROWS, fails):
        run = ran(ROWS, seen, ROWS, seen)
        whole, head = judge_job(run), judge_job(run.as_far_as(shorter))
        assert (whole.exit_code, head.exit_code, head.answer) == (1, 0, "same")
        assert (head.case, head.handoffs) == (shorter, ())
        assert [len(whole.observation.steps) for whole in head.wholes] == [1, 1]
    survives_not = stress(judge_job(ran(fails, fails, fails, fails)))
    assert survives_not.fails_before
    assert combined_exit_code(judge_job(ran(fails, fails, fails, fails).as_far_as(shorter)), [survives_not]) == 0


def test_a_job_that_fails_says_nothing_of_its_checkpoints() -> None:
    fails = judge_job(ran(REFUSED, REFUSED, REFUSED, REFUSED))
    assert (fails.handoffs, fails.exit_code) == ((), 2)
    assert "checkpoint" not in summary(fails)
    # Where only the handoffs fail, that is said.
    assert judge_job(ran(ROWS, ROWS, REFUSED, REFUSED)).handoffs


def test_what_the_earlier_version_does_not_survive_is_no_change() -> None:
    fails = judge_job(ran(REFUSED, ROWS, REFUSED, REFUSED))
    fine = judge_job(ran(ROWS, ROWS, ROWS, ROWS))
    said = stress_statement(stress(fails), fine)
    assert said.glyph == "▲"
    assert said.details[0] == "3.5.9 itself fails there, so the upgrade does not change this"
    assert combined_exit_code(fine, [stress(fails)]) == 0


def test_late_rows_are_told_only_if_there_were_some() -> None:
    said = next(statements(judge_job(ran(ROWS, ROWS, ROWS, ROWS)))).text
    assert said == "same rows, watermarks and state in 2 micro-batches"
    late = judge_job(ran(LATE, LATE, LATE, LATE))
    assert next(statements(late)).text.startswith("same rows, watermarks, late rows and state in 2 micro-batches")


def test_the_page_shows_what_a_stranger_wrote_as_text(tmp_path: Path) -> None:
    said = statements(judge_job(ran(LATE, LATE, LATE, LATE)))
    write_verdict(tmp_path / "verdict.html", "<b>title</b>", ["<script>alert(1)</script>"], [*said])
    page = (tmp_path / "verdict.html").read_text()
    assert "<script>" not in page
    assert "&lt;b&gt;title" in page
    assert "same rows, watermarks, late rows and state" in page
