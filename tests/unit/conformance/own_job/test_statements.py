"""What a verdict on a job says of its checkpoints."""

from dataclasses import replace
from datetime import UTC, datetime

from conformance.core.observation import ErrorSeen, OwnCodeError
from conformance.judging.checkpoint_verdict import CheckpointVerdict
from conformance.judging.verdict import no_answer
from conformance.own_job.records import record
from conformance.own_job.statements import statements
from conformance.own_job.verdict import Handoffs, JobVerdict, WholeRun
from conformance.runner.execution import unseen
from harness.scheduling.cell_run import CellTask
from tests.support.miniature.two_versions import NEW, OLD
from tests.support.observations import case, expect


def verdict(*handoffs: Handoffs) -> JobVerdict:
    of = case(expect())
    before, after = (
        WholeRun(CellTask(of, (target,)), None, no_answer(of, target.version, "not-run", "")) for target in (OLD, NEW)
    )
    targets = unseen(OLD, "local"), unseen(NEW, "local")
    return JobVerdict(of, datetime.now(UTC), *targets, {}, (before, after), handoffs, "unknown", None, ())


def test_a_query_that_fails_after_it_resumed_is_not_told_as_a_refused_checkpoint() -> None:
    mistake = OwnCodeError(
        raised="KeyError('fee')", at="acme/totals.py:12", during="in a UDF", traceback="  fee = row['fee']"
    )
    error = ErrorSeen(stage="run", classes=("PythonException",), message="it raised", own_code=mistake)
    found = verdict(Handoffs((3,), CheckpointVerdict("fails later", error)))
    told = next(line for line in statements(found) if line.glyph == "✗")
    assert told.text == (
        f"the checkpoint resumes on {NEW.version}, then the query fails, handed over before step 3: "
        "your code raised KeyError('fee') at acme/totals.py:12, in a UDF"
    )
    assert told.details == ("  fee = row['fee']",)
    assert found.exit_code == 1


def test_rows_that_the_query_sorts_are_said_to_be_compared_without_their_order() -> None:
    of_a_join = "*(5) Sort [who#79 ASC NULLS FIRST], false, 0"
    for plan, count in (("+- Sort [who#49 ASC NULLS FIRST, a[0]#3 DESC], true\n   +- Aggregate", 1), (of_a_join, 0)):
        told = [
            one for one in statements(replace(verdict(), answer="same", plan=plan)) if "order of the rows" in one.text
        ]
        assert [one.kind for one in told] == ["unsupported"] * count


def test_a_checkpoint_that_resumes_has_no_details_and_one_with_other_rows_has_the_first_difference() -> None:
    found = verdict(
        Handoffs((2,), CheckpointVerdict("resumed", difference="step 2: error")),
        Handoffs((3,), CheckpointVerdict("other rows", difference="step 3, micro-batch 4: rows")),
    )
    resumed, other = (one for one in statements(found) if one.text.startswith("the checkpoint"))
    assert resumed.details == ()
    assert other.details == (f"first difference from a restart on {OLD.version}: step 3, micro-batch 4: rows",)
    checkpoints = record(found)["checkpoints"]
    assert [one["first_difference"] for one in checkpoints] == ["step 2: error", "step 3, micro-batch 4: rows"]
