"""The pages for those who lost a row or want to understand: what they name exists, and every mode is drawn."""

from conformance.core.data import read_data
from conformance.core.versions import SparkVersion
from reports.analysis.model_agreement import in_each_mode
from reports.html.timeline import timeline
from tests.support.whole_suite import whole_suite

WRITTEN = read_data("reports.html", "guides.yaml")
CASES = {case.id: case for case in whole_suite().cases}


def test_every_case_that_is_named_is_in_the_suite() -> None:
    named = [WRITTEN["modes"], *WRITTEN["pictures"], *WRITTEN["vanished"]]
    assert [one["case"] for one in named if one["case"] not in CASES] == []
    assert len({one["case"] for one in WRITTEN["pictures"]}) == 10


def test_one_trace_in_each_output_mode() -> None:
    # "Output Modes" of the guide: append emits a window once, when it is final; update each change; complete everything.
    found = {
        case.output_mode: timeline(case, predicted.account)
        for case, predicted in in_each_mode(CASES[WRITTEN["modes"]["case"]], SparkVersion(4, 3, 0))
    }
    assert list(found) == ["append", "update", "complete"]
    treated = {mode: [row.treatment for row in line.rows] for mode, line in found.items() if line is not None}
    assert [treated[mode].count("late") for mode in found] == [1, 1, 0]
    emissions = {mode: sum(len(bar.emissions) for bar in line.windows) for mode, line in found.items() if line}
    assert emissions == {"append": 1, "update": 2, "complete": 5}
    complete = found["complete"]
    assert complete is not None
    assert {bar.end for bar in complete.windows} == {"open"}
