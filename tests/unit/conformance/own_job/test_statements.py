"""What a verdict on a job tells about known bugs."""

from __future__ import annotations

from dataclasses import replace

from conformance.core.observation import ErrorSeen, OwnCodeError
from conformance.core.versions import SparkVersion
from conformance.judging.checkpoint_verdict import CheckpointVerdict
from conformance.own_job.verdict import Handoffs, JobVerdict, Known, Published, record, statements
from conformance.query.reading import PHYSICAL_PLAN
from reports.results.published import published_results
from tests.support.whole_suite import whole_suite

JOIN = ("append mode", "outer join", "several watermarks")
PLAN = f"{PHYSICAL_PLAN}\nStreamingSymmetricHashJoin [a#1], [b#2], LeftOuter\n:- EventTimeWatermark t#1\n+- FileScan json [u#2]"
"""Of a join with a watermark on one input."""
WORKAROUND = "Define a watermark on both inputs."
"""Of SPARK-58904, in ``reports/results/known_bugs.yaml``."""


def verdict() -> tuple[JobVerdict, Known]:
    results, suite = published_results(), whole_suite()
    published = Published.about(results, SparkVersion(3, 5, 9), SparkVersion(4, 3, 0))
    assert published is not None
    about = published.known(JOIN, plan=PLAN)
    cell = results.cells[0]
    found = JobVerdict(
        suite.cases[0], results.header, about.before, about.after, (cell, cell), (), "unknown", None, (), JOIN
    )
    return found, about


def test_a_query_that_fails_after_it_resumed_is_not_told_as_a_refused_checkpoint() -> None:
    found, about = verdict()
    mistake = OwnCodeError(
        raised="KeyError('fee')", at="acme/totals.py:12", during="in a UDF", traceback="  fee = row['fee']"
    )
    error = ErrorSeen(stage="run", classes=("PythonException",), message="it raised", own_code=mistake)
    one = Handoffs((3,), CheckpointVerdict("fails later", error))
    told = next(line for line in statements(replace(found, handoffs=(one,)), about) if line.glyph == "✗")
    assert told.text == (
        f"the checkpoint resumes on {about.after.title}, then the query fails, handed over before step 3: "
        "your code raised KeyError('fee') at acme/totals.py:12, in a UDF"
    )
    assert told.details == ("  fee = row['fee']",)
    assert replace(found, handoffs=(one,)).exit_code == 1


def test_a_known_bug_has_its_workaround() -> None:
    told = [line for one in statements(*verdict()) if one.kind == "bug" for line in one.details]
    at = next(place for place, line in enumerate(told) if "SPARK-58904" in line)
    assert told[at + 1] == f"workaround: {WORKAROUND}"
    assert "Met by: append mode, outer join" in told[at]


def test_so_it_has_for_programs() -> None:
    bugs = {bug["link"]: bug["workaround"] for bug in record(*verdict())["known_bugs"]}
    assert bugs["SPARK-58904"] == WORKAROUND


def test_a_checkpoint_that_resumes_has_no_details_and_one_with_other_rows_has_the_first_difference() -> None:
    found, about = verdict()
    handoffs = (
        Handoffs((2,), CheckpointVerdict("resumed", difference="step 2: error")),
        Handoffs((3,), CheckpointVerdict("other rows", difference="step 3, micro-batch 4: rows")),
    )
    resumed, other = (
        one for one in statements(replace(found, handoffs=handoffs), None) if one.text.startswith("the checkpoint")
    )
    assert resumed.details == ()
    assert other.details == (f"first difference from a restart on {about.before.title}: step 3, micro-batch 4: rows",)
    checkpoints = record(replace(found, handoffs=handoffs), None)["checkpoints"]
    assert [one["first_difference"] for one in checkpoints] == ["step 2: error", "step 3, micro-batch 4: rows"]
