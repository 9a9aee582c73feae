"""``conformance explain`` and ``conformance case validate --model`` as they are called."""

import json
from datetime import date
from pathlib import Path
from unittest.mock import Mock

import pytest

from conformance.cli import validate
from conformance.suite.discovery import shipped
from tests.support.cells import CALM, NOT_RUN, results
from tests.support.commands import answer_of as run

OPEN = "late-drops/window-still-open"
CHANGED = "late-drops/late-by-the-watermark-of-the-batch-before"


def test_the_explanation_shows_how_the_watermark_is_computed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "explain", OPEN, "--spark", "3.5.9", "--verbose")
    assert code == 0
    assert f"{OPEN} on Spark 3.5.9" in out
    assert "→ events: [12:30, 1]" in out
    assert "watermark: max 12:30 − 25 min = 12:05, advances from 11:35" in out
    assert "watermark: max 12:01 − 25 min = 11:36, stays at 12:05" in out
    assert "keeps 2: [window 12:00–12:10, total 6] [window 12:30–12:40, total 1]" in out
    record = json.loads(run(capsys, "explain", OPEN, "--json")[1])
    assert (record["case"], record["steps"][1]["batches"][0]["next_watermark"]) == (OPEN, "12:05")


def test_what_spark_did_is_explained_from_results(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    results(tmp_path / "r.jsonl", {OPEN: {"3.5.9": CALM}})
    code, out, _ = run(capsys, "explain", OPEN, "--results", str(tmp_path / "r.jsonl"))
    assert code == 0
    assert f"{OPEN} on Spark 3.5.9, as it ran" in out
    assert "← emits [12:00, 12:10, 1]" in out
    code, out, _ = run(capsys, "explain", OPEN, "--results", str(tmp_path / "r.jsonl"), "--json")
    assert json.loads(out)["spark"] == "3.5.9"
    code, _, err = run(capsys, "explain", OPEN, "--results", str(tmp_path / "r.jsonl"), "--policy", "all")
    assert code == 2
    assert "use it alone, or with --spark" in " ".join(err.split())


def test_of_several_versions_in_the_results_the_newest_is_explained_and_all_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "r.jsonl"
    results(path, {OPEN: {"3.5.9": CALM, "4.3.0": CALM}, CHANGED: {"3.5.9": CALM, "4.3.0": NOT_RUN}})
    for id, newest in ((OPEN, "4.3.0"), (CHANGED, "3.5.9")):
        code, out, err = run(capsys, "explain", id, "--results", str(path))
        assert (code, out.splitlines()[1]) == (0, f"{id} on Spark {newest}, as it ran")
        assert f"has 3.5.9, 4.3.0; newest answer: {newest} (--spark)" in " ".join(err.split())
    code, out, err = run(capsys, "explain", OPEN, "--results", str(path), "--spark", "3.5")
    assert (code, out.splitlines()[1], err) == (0, f"{OPEN} on Spark 3.5.9, as it ran", "")


def test_code_that_no_model_predicts_is_explained_from_results_only(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "job.yaml").write_text(
        "title: x\nstreams: {a: n INT}\nquery: {call: 'job:build', with: [a]}\nsteps: [{idle: {}}]\n"
    )
    code, _, err = run(capsys, "explain", str(tmp_path / "job.yaml"))
    assert code == 2
    assert "To see what Spark did, pass the results of a run: --results results.jsonl" in " ".join(err.split())


def test_the_first_difference_between_versions_and_its_rule(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "explain", CHANGED, "--from", "3.3", "--to", "3.5.9")
    assert code == 0
    assert "first difference: step 1 “three micro-batches without a gap”, micro-batch 2" in out
    assert "rule that differs: late_watermark (SPARK-40925)" in out


@pytest.mark.parametrize(
    ("case", "here", "there", "rule"),
    [
        ("several-watermarks/silent-streams-do-not-lend-their-watermark", "3.5.9", "4.0.5", "nodes_known_by"),
        ("window-eviction/window-before-1970-contains-its-rows", "3.3.4", "3.4.4", "window_before_origin"),
        (
            "chained-aggregations/unmatched-window-of-a-joined-aggregation",
            "3.5.3",
            "3.5.9",
            "stores_rows_that_go_at_once",
        ),
        ("chained-aggregations/two-aggregations-on-the-same-window", "3.3.4", "3.5.9", "several aggregations"),
        ("chained-aggregations/correctness-check-off-loses-rows", "3.4.4", "3.5.9", "watermark_per_operator"),
        ("session-windows/a-null-event-time-makes-no-session", "3.1.3", "3.2.4", "session_window"),
    ],
)
def test_the_rule_that_separates_two_versions_is_found(case, here, there, rule, capsys) -> None:
    code, out, _ = run(capsys, "explain", case, "--from", here, "--to", there, "--json")
    assert code == 0
    assert rule in [one["name"] for one in json.loads(out)["parting"]["rules"]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["late-drops/window-still-opne"], "Did you mean late-drops/window-still-open"),
        ([OPEN, "--spark", "3.5.99"], "Did you mean 3.5.9"),
        ([OPEN, "--spark", "spork"], "is not a version of Spark"),
        ([OPEN, "--from", "2.3.4", "--to", "3.5"], "is not a known release of Spark"),
        ([OPEN, "--from", "3.5"], "pass both, or neither"),
        ([OPEN, "--spark", "3.5", "--from", "3.4", "--to", "3.5"], "--from and --to for two"),
        ([OPEN, "--policy", "limiting-lag-and-lul"], "limiting-lag-and-lull"),
    ],
)
def test_unknown_cases_and_versions(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "explain", *arguments)
    plain = " ".join(err.replace("│", " ").split())
    assert code == 2
    assert said in plain


def test_a_construct_that_the_model_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "explain", "event-time-column/processing-time-as-event-time")
    assert (code, out) == (2, "")
    assert err.endswith("the model does not know current_timestamp, whose value is another in each run\n")
    code, _, err = run(
        capsys, "explain", "late-drops/one-watermark-for-both-with-allow-multiple-off", "--spark", "3.0.3"
    )
    assert (code, "is not for Spark 3.0.3" in err) == (2, True)


WRONG = """title: A case that is wrong about the watermark
streams: {events: event_time TIMESTAMP}
query: [{from: events}, {withWatermark: [event_time, 10 minutes]}]
steps:
  - add: {events: [["12:30"]]}
    expect: {rows: [["12:30"]], watermark: "12:25"}
"""


def test_a_wrong_expectation_is_found_without_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "wrong.yaml").write_text(WRONG)
    code, out, err = run(capsys, "case", "validate", "--spark", ">=2.4", str(tmp_path))
    assert code == 1
    assert "✗ wrong: the model disagrees on 2.4.8 – 4.3.0" in out
    assert "watermark: expected 12:25, observed 12:20" in out
    assert "rules to check: node_watermark_ms" in out
    assert "1 disagreement" in err
    assert out.count("watermark: expected 12:25") == 1
    (tmp_path / "wrong.yaml").write_text(WRONG.replace("12:25", "12:20"))
    code, out, err = run(capsys, "case", "validate", "--model", str(tmp_path))
    assert (code, "no disagreement" in err) == (0, True)


@pytest.mark.parametrize(
    ("options", "day", "judged"),
    [
        (["--model"], date(2026, 11, 30), "3.5.9, 4.0.5, 4.1.4, 4.2.1, 4.3.0"),
        (["--model"], date(2026, 12, 1), "3.5.9, 4.1.4, 4.2.1, 4.3.0"),
        (["--spark", "3.0,4.3"], date(2026, 12, 1), "3.0.3, 4.3.0"),
        (["--model", "--spark", "3.5.3"], date(2026, 12, 1), "3.5.3"),
    ],
)
def test_the_maintained_lines_are_judged_or_those_that_are_named_and_the_answer_names_them(
    options, day, judged, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validate, "date", Mock(today=lambda: day))
    (tmp_path / "right.yaml").write_text(WRONG.replace("12:25", "12:20"))
    code, _, err = run(capsys, "case", "validate", *options, str(tmp_path))
    assert (code, f" on {judged}: " in " ".join(err.split())) == (0, True)
    _, out, _ = run(capsys, "case", "validate", *options, "--json", str(tmp_path))
    assert json.loads(out)["model"]["versions"] == judged.split(", ")


def test_an_expectation_of_another_version_is_settled_by_its_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (shipped() / f"{CHANGED}.yaml").read_text(encoding="utf-8")
    (tmp_path / "x.yaml").write_text(text.partition("differs:")[0])
    code, out, _ = run(capsys, "case", "validate", "--spark", ">=2.4", "--json", str(tmp_path))
    disagreements = json.loads(out)["model"]["disagreements"]
    assert code == 1
    lines = {version.rpartition(".")[0] for one in disagreements for version in one["spark"]}
    assert sorted(lines) == ["2.4", "3.0", "3.1", "3.2", "3.3"]
    assert all("late_watermark" in one["settled_by"] for one in disagreements)


def test_a_case_under_the_policies_of_other_engines(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "explain", OPEN, "--policy", "all")
    assert code == 0
    assert "limiting-lag-and-lull" in out
    assert "bounded-out-of-orderness" in out
