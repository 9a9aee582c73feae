"""Which steps leave open in which of their micro-batches rows come out."""

import json
from pathlib import Path

import pytest

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion
from conformance.language import read_case
from conformance.oracle import unstated as module
from conformance.oracle.prediction import predict
from conformance.oracle.unstated import unstated_in, unstated_moments
from reports.results.compression import open_results
from tests.support.whole_suite import whole_suite

BASELINE = Path(__file__).parents[4] / "reports" / "baselines" / "lines.jsonl.xz"

CASE = """\
title: A title
streams: {events: event_time TIMESTAMP}
query:
  - from: events
  - withWatermark: [event_time, 10 minutes]
  - groupBy: ["window(event_time, '10 minutes')"]
    agg: [count(*) AS total]
  - select: [window.end, total]
steps:
  - name: the first row
    add: {events: [["12:05"]]}
    expect: {rows: []}
  - name: the window closes
    add: {events: [["12:20"]]}
    expect: EXPECTED
"""
OPEN = '{rows: [["12:10", 1]]}'


def found(tmp_path: Path, expected: str, differs: str = "") -> list[tuple[int, int, str]]:
    """Step, line, and version."""
    file = tmp_path / "x.yaml"
    file.write_text(CASE.replace("EXPECTED", expected) + differs)
    problems = [(one.line, one.message.split()) for one in unstated_moments([read_case(file, "x")])]
    return [(int(words[1]), line, words[words.index("on") + 1]) for line, words in problems]


def test_rows_that_any_of_two_micro_batches_may_emit(tmp_path: Path) -> None:
    ((step, line, version),) = found(tmp_path, OPEN)
    assert (step, line) == (2, 15)
    (one,) = unstated_moments([read_case(tmp_path / "x.yaml", "x")])
    assert one.message == (
        f"step 2 has 2 micro-batches on {version} (data, no-data), and does not say which of them emits its rows: "
        "replace `rows` by `batches`"
    )


@pytest.mark.parametrize(
    ("expected", "open_"),
    [
        ('{batches: [{rows: []}, {kind: no-data, rows: [["12:10", 1]]}]}', False),
        ('{batches: [{kind: data, rows: []}, {kind: no-data}], rows: [["12:10", 1]]}', True),
        ('{batches: [{kind: data}, {kind: no-data}], rows: [["12:10", 1]]}', True),
    ],
)
def test_each_micro_batch_states_its_rows(tmp_path: Path, expected: str, open_: bool) -> None:
    assert [step for step, *_ in found(tmp_path, expected)] == [2] * open_


@pytest.mark.parametrize(
    "said", ["{rows: []}", '{batches: [{rows: []}, {rows: [["12:10", 1]]}]}', "{watermark: '12:10'}"]
)
def test_the_model_is_not_asked_where_no_step_leaves_a_moment_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    asked: list[Case] = []
    monkeypatch.setattr(module, "predict", lambda case, version: asked.append(case) or predict(case, version))
    assert found(tmp_path, said) == []
    assert asked == []
    assert len(found(tmp_path, OPEN)) == len(asked) == 1


def test_a_differs_entry_that_replaces_only_the_rows(tmp_path: Path) -> None:
    stated = '{batches: [{rows: []}, {rows: [["12:10", 1]]}]}'
    differs = "differs:\n  - {spark: <3.4, because: x, steps: {2: CHANGE}}\n"
    assert [one[0] for one in found(tmp_path, stated, differs.replace("CHANGE", OPEN))] == [2]
    assert found(tmp_path, stated, differs.replace("CHANGE", stated)) == []
    # The entry of a version that ends with an error, or removes the rows, says nothing about them.
    assert found(tmp_path, stated, differs.replace("CHANGE", "{error: {stage: run}}")) == []
    assert found(tmp_path, stated, differs.replace("CHANGE", "{unchecked: [rows]}")) == []


def test_no_published_answer_leaves_it_open() -> None:
    """Cases that the model does not predict, too."""
    cases = {case.id: case for case in whole_suite().cases}
    answers = 0
    with open_results(BASELINE) as lines:
        for line in lines:
            record = json.loads(line)
            case = cases.get(record.get("case"))
            if case is None or record["record"] != "cell" or record["observation"] is None:
                continue
            answers += 1
            version = SparkVersion.parse(record["target"].removeprefix("spark-"))
            observation = Observation.model_validate(record["observation"])
            assert list(unstated_in(case, version, observation)) == [], case.id
    assert answers > len(cases)
