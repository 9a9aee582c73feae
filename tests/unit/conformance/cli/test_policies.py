"""``conformance maintain policies`` as it is called, and every command and case in its documentation."""

import json
import re
import shlex
from pathlib import Path

import pytest

from conformance.policies.case import check
from conformance.policies.engines import POLICIES
from conformance.suite.discovery import load
from tests.support.commands import answer_of

PAGE = (Path(__file__).parents[4] / "docs" / "watermark-policies.md").read_text(encoding="utf-8")
WRONG = "title: x\npolicy: {stream-time: {grace: 1}}\ntrace: [{event: 5, expect: {watermark: 5}}]\n"


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return answer_of(capsys, "maintain", "policies", *arguments)


def lines(out: str) -> list[list[str]]:
    return [re.split(r" {2,}", line.strip()) for line in out.splitlines() if line.strip()]


def test_alone_it_lists_the_policies(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys)
    assert code == 0
    assert [name for name in POLICIES if not re.search(rf"^{name} ", out, re.MULTILINE)] == []


def test_a_spark_case_under_sparks_rules(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "late-drops/sixty-seen-with-delay-twenty")
    assert code == 0
    assert lines(out)[:8] == [
        ["spark (delay 20000, multipleWatermarkPolicy min): Spark"],
        ["entry", "clock", "watermark", "downstream", "late"],
        ["2 event 00:01", "00:01", "–", "00:00"],
        ["3 batch", "00:01", "00:00:40", "→ 00:00:40"],
        ["5 event 00:00:41", "00:01:20", "00:00:40", "00:00:40"],
        ["6 event 00:00:39", "00:01:20", "00:00:40", "00:00:40", "late"],
        ["7 event 00:00:10", "00:01:20", "00:00:40", "00:00:40", "late"],
        ["8 batch", "00:01:20", "00:00:40", "00:00:40"],
    ]


def test_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "late-drops/far-future-row-makes-all-others-late", "--policy", "all", "--verbose")
    assert code == 0
    here, general = out.split("in general")
    late = {row[0]: row[1].partition(":")[0] for row in lines(here) if row[0] in POLICIES}
    assert late == {name: "0 of 5" if name == "limited-delay" else "3 of 5" for name in POLICIES}
    rows = {row[0]: row[1:] for row in lines(general) if row[0] in POLICIES}
    holds, clock, all_late = "waited for", "follows the clock", "all later rows are late"
    harmless = "no later row is late"
    assert rows == {
        "spark": ["Spark", holds, holds, all_late],
        "quantile": ["Spark (proposed)", holds, holds, harmless],
        "with-fixed-lag": ["Hazelcast Jet 0.5", holds, holds, all_late],
        "limiting-lag-and-delay": ["Hazelcast Jet 0.5", "waited for, at its last event", holds, all_late],
        "limiting-lag-and-lull": ["Hazelcast Jet 0.5", clock, holds, all_late],
        "limiting-timestamp-and-wall-clock-lag": ["Hazelcast Jet 0.5", clock, clock, all_late],
        "bounded-out-of-orderness": ["Flink", "left out", "left out", all_late],
        "limited-delay": ["Beam KafkaIO", clock, holds, harmless],
        "stream-time": ["Kafka Streams", "not waited for", "not waited for", all_late],
    }


def test_a_case_on_a_policy_is_read_under_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "policies/lowest-of-all-substreams")
    assert code == 0
    assert lines(out)[0] == ["with-fixed-lag (lag 10, release jet-0.5): Hazelcast Jet 0.5"]
    assert lines(out)[3] == ["2 event 30 on slow", "fast 90, slow 20", "→ 20"]


def test_an_engine_that_ends_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    case = tmp_path / "ends.yaml"
    case.write_text(
        "title: x\npolicy: {with-fixed-lag: {lag: 0}}\nthrottle: {emit-by-min-step: {step: 9223372036854775807}}\n"
        "trace: [{event: 10}, {event: 10, expect: {late: false}}, {event: 11}]\n"
    )
    code, out, _ = run(capsys, str(case))
    assert (code, lines(out)[-1]) == (0, ["the engine ends at entry 2: watermarks do not increase: 10 after 10"])
    assert json.loads(run(capsys, str(case), "--json")[1])[0]["failure"] == "watermarks do not increase: 10 after 10"
    code, out, _ = run(capsys, "--check", str(case))
    assert code == 1
    assert "step 2: the engine fails: watermarks do not increase: 10 after 10" in out


def test_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "policies/items-are-on-time-or-late", "--policy", "all", "--json")
    assert code == 0
    found = {one["policy"]: one for one in json.loads(out)}
    assert list(found) == list(POLICIES)
    assert found["with-fixed-lag"]["late"] == [3]
    moment = {"number": 1, "entry": "event 11", "clock": 0, "watermark": {"events": 8}, "emitted": 8, "downstream": 8}
    assert found["with-fixed-lag"]["moments"][0] == {**moment, "late": False, "closed": [], "idle": []}
    assert found["bounded-out-of-orderness"]["moments"][-1]["downstream"] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["late-drops/window-still-open", "--policy", "limiting-lull"], "did you mean 'limiting-lag-and-lull'?"),
        (["late-drops/window-still-open", "--policy", "x"], "use one of spark, quantile, "),
        (["output-modes/update-sql-distinct-repeats-rows"], "its query has no withWatermark"),
        (["late-drops/window-stil-open"], "Did you mean late-drops/window-still-open"),
        (["no-such-thing-at-all"], "is neither a case of the suite nor a file"),
        (["a", "b"], "pass one case, or add --check"),
    ],
)
def test_wrong_usage(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in re.sub(r"[\s│]+", " ", err)


def test_a_folder_of_several_is_not_one_case(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    for name in "ab":
        (tmp_path / "mine" / f"{name}.yaml").write_text(WRONG)
    code, _, err = run(capsys, "mine")
    assert code == 2
    assert "mine contains 2 cases" in err


def test_check(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.yaml").write_text(WRONG)
    assert run(capsys, "--check", "wrong.yaml") == (
        1,
        "wrong.yaml:3: step 1: expected watermark 5, but it is 4\n",
        "1 case on policies, 1 disagreement\n",
    )


def test_check_for_programs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text(WRONG)
    code, out, _ = run(capsys, "--check", "--json", str(tmp_path / "wrong.yaml"))
    assert code == 1
    where = {"case": "wrong", "path": str(tmp_path / "wrong.yaml"), "line": 3, "step": 1}
    assert json.loads(out) == [{**where, "key": "watermark", "expected": 5, "read": 4}]
    assert json.loads(run(capsys, "--check", "--json")[1]) == []


def test_every_policy_names_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, "--json")[1])
    assert [one["policy"] for one in found] == list(POLICIES)
    assert all(one["source"] and one["engine"] and one["meaning"].endswith(".") for one in found)
    assert all(all(one["parameters"].values()) for one in found)


@pytest.mark.parametrize("command", re.findall(r"^conformance maintain policies.*$", PAGE, re.MULTILINE))
def test_a_command_of_the_documentation(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    program, group, name, *arguments = shlex.split(command)
    assert (program, group, name) == ("conformance", "maintain", "policies")
    assert run(capsys, *arguments)[0] == 0


def test_the_case_in_the_documentation(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "documented.yaml").write_text(text)
    suite = load([tmp_path])
    assert suite.problems == ()
    assert check(suite.policy_cases[0]) == ()


def test_every_policy_is_in_the_documentation() -> None:
    assert re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE) == list(POLICIES)
