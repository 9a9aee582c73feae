"""Which changes fail the gate: by the ``--fail-on`` threshold, and by what the query uses."""

from pathlib import Path

import pytest

from reports.analysis.change import changes
from reports.analysis.gate import fails
from reports.analysis.matrix import Matrix
from tests.support import cells as a
from tests.unit.reports.analysis.test_gate import gate


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


THRESHOLDS = ("running", "any", "documented", "guaranteed")


@pytest.mark.parametrize(
    ("change", "strength", "fails_on"),
    [
        ("rows", "documented", ["running", "any", "documented", "guaranteed"]),
        ("refused", "documented", ["running", "any", "documented", "guaranteed"]),
        ("timing", "documented", ["running", "any", "documented"]),
        ("metric", None, ["running", "any", "documented"]),
        ("rows", None, ["running", "any", "documented", "guaranteed"]),
        ("rows", "observed", ["running", "any"]),
        ("timing", "observed", ["running", "any"]),
    ],
)
def test_the_thresholds(tmp_path: Path, change, strength, fails_on) -> None:
    after = {"rows": a.LOST, "refused": a.REFUSED, "timing": a.EARLIER, "metric": a.FULLER}[change]
    matrix = Matrix.of(a.results(tmp_path / "one.jsonl", {a.CASE: {"3.5.9": a.CALM, "4.3.0": after}}))
    (found,) = changes(matrix, *matrix.targets).changes
    assert found.meaning == change
    assert [each for each in THRESHOLDS if fails(found, strength, each)] == fails_on


@pytest.mark.parametrize(
    ("before", "after", "met"),
    [
        (a.REFUSED, a.CALM, False),
        (a.FAILED_LATER, a.FAILED_LATER_OTHERWISE, False),
        (a.FAILED_LATER, a.FAILED_LATER_FULLER, True),
        (a.CALM, a.FULLER, True),
    ],
)
def test_what_no_running_query_can_meet_fails_only_if_any_change_does(tmp_path: Path, before, after, met) -> None:
    matrix = Matrix.of(a.results(tmp_path / "one.jsonl", {a.CASE: {"3.5.9": before, "4.3.0": after}}))
    (found,) = changes(matrix, *matrix.targets).changes
    assert found.met_by_running_queries is met
    assert [fails(found, "documented", each) for each in ("any", "running")] == [True, met]
    assert not fails(found, "documented", "documented") or met


class TestUses:
    CASES = (("window", "  - groupBy: [\"window(t, '5 minutes')\"]\n    agg: [count(*) AS n]\n"), ("plain", ""))
    PAIR = ("uses.jsonl", "--from", "3.5.9", "--to", "4.3.0", "--cases", "cases")

    @pytest.fixture(autouse=True)
    def cases(self, tmp_path: Path) -> None:
        (tmp_path / "cases").mkdir()
        for name, query in self.CASES:
            (tmp_path / "cases" / f"{name}.yaml").write_text(
                f"title: {name}\nstreams: {{s: t TIMESTAMP}}\nquery:\n  - from: s\n  - withWatermark: [t, 1 minute]\n"
                f"{query}steps:\n  - add: {{s: [['12:00']]}}\n"
            )
        answers = {"3.5.9": a.LOST, "4.3.0": a.CALM}
        a.results(tmp_path / "uses.jsonl", {"window": answers, "plain": answers, "unknown": answers})

    def test_changes_of_cases_that_use_something_else_pass(self, capsys) -> None:
        code, out = gate(capsys, *self.PAIR, "--uses", "window-aggregation,dedup", "--uses", "update")
        assert code == 1
        assert "window: 1 more row than before" in out
        assert "plain: " not in out

    def test_a_case_of_which_nothing_is_known_may_use_anything(self, capsys) -> None:
        code, out = gate(capsys, *self.PAIR, "--uses", "outer-join,update")
        assert code == 1
        assert "unknown: 1 more row than before, 1 fewer dropped as late  [fails the gate]" in out
        verdict = out.splitlines()[-1]
        assert "3 changes: 1 fails the gate, 2 unrelated to --uses; " in verdict
        assert "; 1 compared case related to --uses" in verdict

    def test_an_unknown_feature_is_wrong_usage(self, capsys) -> None:
        code, out = gate(capsys, *self.PAIR, "--uses", "outer-jion")
        assert code == 2
        assert "--uses: unknown feature 'outer-jion': did you mean 'outer-join'?" in out
