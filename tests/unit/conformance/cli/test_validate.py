"""``conformance case validate`` as it is called."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import answer_of
from tests.unit.conformance.suite.test_discovery import CASE


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "good.yaml").write_text(CASE)
    return mine


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return answer_of(capsys, "case", "validate", *arguments)


def test_nothing_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "mine") == (0, "", "1 case, no problems\n")


def test_every_problem_one_a_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.yaml").write_text(CASE.replace("title", "titel") + "trigger: never\n")
    code, out, err = run(capsys, "mine")
    assert code == 2
    assert out == (
        "mine/bad.yaml:1:1: unknown key 'titel' in a case: did you mean 'title'?\n"
        "mine/bad.yaml:5:10: unknown trigger 'never': expected one of default, once, availableNow, realTime\n"
    )
    assert err == "2 cases, 2 problems in 1 file\n"


def test_paths_elsewhere_are_absolute(folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bad = folder / "bad.yaml"
    bad.write_text("title: A title\n")
    (tmp_path / "elsewhere").mkdir()
    os.chdir(tmp_path / "elsewhere")
    _, out, _ = run(capsys, str(folder))
    assert all(line.startswith(f"{bad}:1:1: ") for line in out.splitlines())


def test_for_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.yaml").write_text(CASE.replace("title", "titel"))
    code, out, err = run(capsys, "--json", "mine")
    found = json.loads(out)
    assert (code, err) == (2, "")
    assert found["valid"] is False
    assert found["cases"] == ["good"]
    place = {"path": str(folder / "bad.yaml"), "line": 1, "column": 1}
    assert found["problems"] == [{**place, "message": "unknown key 'titel' in a case: did you mean 'title'?"}]
    assert found["coverage"] == []


def test_coverage(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "behaviours.yaml").write_text(
        "one: The first\ntwo: The second\nthree: {sentence: A, reason: It needs B}\n"
    )
    (folder / "good.yaml").write_text(CASE + "behaviour: [one]\nstrength: observed\n")
    code, out, err = run(capsys, "--coverage", "--verbose", "mine")
    assert code == 0
    assert out == (
        "behaviours 1 of 3\n  ✓ one  good\n  ✗ two  no case: The second\n  ✗ three  no case: A\n      It needs B\n\n"
    )
    assert err == "1 case, no problems\ncovered: behaviours 1 of 3\n"


def test_coverage_tells_what_a_mirror_loses(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "behaviours.yaml").write_text("one: The first\n")
    (folder / "spark-tests.yaml").write_text("T001: {suite: S, test: a}\nT002: {suite: S, test: b}\n")
    mirrors = "mirrors: [T001, {test: T002, partly: the metrics}]\n"
    (folder / "good.yaml").write_text(CASE + "behaviour: [one]\nstrength: observed\n" + mirrors)
    _, out, _ = run(capsys, "--coverage", "mine")
    assert out.endswith(
        "Spark's own tests 1 faithful, 1 partly, 0 not, of 2\n  ◐ T002  good\n      partly: the metrics\n\n"
    )
    _, out, _ = run(capsys, "--json", "mine")
    assert json.loads(out)["coverage"][-1]["lost"] == {"T002": ["the metrics"]}


OPEN = """\
title: A title
behaviour: [one]
strength: observed
streams: {events: event_time TIMESTAMP}
query:
  - from: events
  - withWatermark: [event_time, 10 minutes]
  - dropDuplicates: [event_time]
steps:
  - add: {events: [["12:05"]]}
    expect: {rows: [["12:05"]]}
"""


def test_a_suite_is_warned_of_steps_that_do_not_say_which_micro_batch_emits(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "good.yaml").write_text(OPEN)
    assert run(capsys, "mine") == (0, "", "1 case, no problems\n")
    (folder / "behaviours.yaml").write_text("one: The first\n")
    code, out, err = run(capsys, "mine")
    assert code == 0
    assert out.startswith("mine/good.yaml:11: warning: step 1 has 2 micro-batches on ")
    assert out.endswith(
        " (data, no-data), and does not say which of them emits its rows: replace `rows` by `batches`\n"
    )
    assert err == "1 case, no problems, 1 warning\ncovered: behaviours 1 of 1\n"
    (warning,) = json.loads(run(capsys, "--json", "mine")[1])["warnings"]
    assert warning["line"] == 11
    assert out == f"mine/good.yaml:11: warning: {warning['message']}\n"
    (folder / "good.yaml").write_text(OPEN.replace('rows: [["12:05"]]', 'batches: [{rows: [["12:05"]]}, {rows: []}]'))
    assert run(capsys, "mine")[1] == ""


def test_the_suite_that_ships_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["warnings"] == []
    names = [one["name"] for one in json.loads(out)["coverage"]]
    assert names == ["behaviours", "founding statements", "Spark's own tests"]


def test_as_a_process_without_a_terminal_there_is_no_colour(folder: Path) -> None:
    (folder / "bad.yaml").write_text("title: [\n")
    source = str(Path(__file__).parents[4])
    done = subprocess.run(
        [sys.executable, "-m", "conformance.cli.main", "case", "validate", "mine"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert done.returncode == 2
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stdout.startswith("mine/bad.yaml:2:1: invalid YAML: ")


def test_what_runs_only_with_permission_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = CASE.replace("[from: events]", "[from: events, {where: \"reflect('a', 'b')\"}]")
    (folder / "hostile.yaml").write_text(hostile.replace("query: [from: events, {", "query: [{from: events}, {"))
    code, out, err = run(capsys, "mine")
    assert code == 2
    message = "the function reflect calls any static method of Java: only --allow-code runs this"
    assert out == f"mine/hostile.yaml:3:34: {message}\n"
    assert err == "2 cases, 1 problem in 1 file\n"
    assert run(capsys, "mine", "--allow-code") == (0, "", "2 cases, no problems\n")
