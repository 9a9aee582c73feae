"""``conformance gate``: what may pass, what may not, and what cannot be said."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from conformance.cli.main import main
from conformance.core.versions import VersionRange
from conformance.core.wrapping import MOST_ROWS
from conformance.language.source import InvalidCase
from conformance.suite import discovery
from reports.analysis import published_pairs
from reports.analysis.change import Change, changes
from reports.analysis.gate import Acceptance, draft, read_accepted
from reports.analysis.matrix import Matrix
from reports.results.published import published
from reports.results.reading import Results
from reports.terminal.gate import lines
from tests.support import cells as a
from tests.support.gates import gate as decide
from tests.support.observations import case, differs
from tests.support.runs import forged

BEFORE = differs("<4", because="it was late", link="SPARK-1", steps=a.ONLY_FIRST)
ANSWERS = {
    "f/same": {"3.5.9": a.CALM, "4.3.0": a.CALM},
    "f/rows": {"3.5.9": a.LOST, "4.3.0": a.CALM},
    "f/metric": {"3.5.9": a.CALM, "4.3.0": a.FULLER},
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    a.results(tmp_path / "results.jsonl", ANSWERS, {"f/rows": (BEFORE,)})
    return tmp_path


def gate(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stopped:
        main(["gate", *(arguments or ("results.jsonl", "--from", "3.5.9", "--to", "4.3.0"))])
    out, err = capsys.readouterr()
    assert isinstance(stopped.value.code, int)
    return stopped.value.code, out + err


PAIR = ("results.jsonl", "--from", "3.5.9", "--to", "4.3.0")
UNTRIED = "3.5.9 → 4.3.0 was not run, nor any other pair of the lines 3.5 and 4.3"


def calm(verdict: str = "no change", *, exit_code: int = 0, bugs: str = "") -> str:
    """Return the whole answer about one case without a change."""
    return (
        "● passes: 3.5.9 → 4.3.0: no checkpoint was tried; none of 1 case changes rows or fails.\n"
        f"CHECKPOINTS  {UNTRIED}\n{bugs}NOT TRIED  every checkpoint\nexit {exit_code}: {verdict}\n"
    )


def test_a_change_fails_and_is_told_with_its_reason(capsys) -> None:
    code, out = gate(capsys, *PAIR)
    assert code == 1
    assert "✗ f/rows: 1 more row than before, 1 fewer dropped as late  [fails the gate]" in out
    assert "3.5.9: it was late (SPARK-1)" in out
    assert "no case gives a reason; step 1, micro-batch 1: state [1] | [7]" in out
    first, *_, last = out.splitlines()
    assert first == "✗ fails: 3.5.9 → 4.3.0: no checkpoint was tried; 1 of 3 cases changes rows or fails."
    assert "ROWS  of 3 cases compared, 1 changes rows or fails\n  1 whose case is not at hand\n" in out
    assert last == "exit 1: 2 changes: 2 fail the gate"


def test_each_change_says_under_which_condition_a_job_meets_it(tmp_path) -> None:
    entry = differs("<4", because="it was late", link="SPARK-1", steps=a.ONLY_FIRST)
    results = a.results(
        tmp_path / "r", {f"f/{name}": {"3.5.9": a.LOST, "4.3.0": a.CALM} for name in "ab"}, {"f/a": (entry,)}
    )
    conf = {"spark.sql.streaming.multipleWatermarkPolicy": "max"}
    cases = [case(id="f/a", conf=conf), case(id="f/b", conf=conf, digest="1" * 64)]
    answer = decide(results, "3.5.9", "4.3.0", cases=cases)
    assert [ruling.condition.kind for ruling in answer.rulings] == ["setting", "unknown"], (
        "another text of the case says nothing"
    )
    out = "\n".join(line.plain for line in lines(answer, {}, verbose=True, width=100))
    assert "  1 only with a setting\n    ✗ f/a: " in out
    assert "  1 whose case is not at hand\n    ✗ f/b: " in out


def test_nothing_changes(capsys, tmp_path) -> None:
    a.results(tmp_path / "calm.jsonl", {"f/same": {"3.5.9": a.CALM, "4.3.0": a.CALM}})
    code, out = gate(capsys, "calm.jsonl", "--from", "3.5", "--to", "4.3")
    assert (code, out) == (0, calm())


@pytest.mark.parametrize(("fail_on", "failing"), [("any", 2), ("running", 2), ("documented", 2), ("guaranteed", 1)])
def test_what_it_fails_on(capsys, fail_on, failing) -> None:
    code, out = gate(capsys, *PAIR, "--fail-on", fail_on, "--json")
    assert code == 1
    assert sum(change["passing"] == "fails" for change in json.loads(out)["changes"]) == failing


def test_changes_of_what_is_only_observed_are_not_documented(tmp_path) -> None:
    answer = decide(
        Results.read(tmp_path / "results.jsonl"),
        "3.5.9",
        "4.3.0",
        fail_on="documented",
        cases=[case(id="f/rows", strength="observed")],
    )
    assert [(ruling.change.case, ruling.passing) for ruling in answer.rulings] == [
        ("f/rows", "tolerated"),
        ("f/metric", "fails"),
    ]


class TestKnownBugs:
    ENTRY = a.bug("<4")
    ALL = a.bug(">=3")

    def test_one_that_only_the_later_version_has_fails_with_every_option(self, capsys, tmp_path) -> None:
        a.results(tmp_path / "bug.jsonl", {"f/a": {"3.5.9": a.LOST, "4.3.0": a.CALM}}, {"f/a": (self.ENTRY,)})
        read = Results.read(tmp_path / "bug.jsonl")
        observed: dict[str, object] = {"fail_on": "guaranteed", "cases": [case(id="f/a", strength="observed")]}
        into, out_of = decide(read, "4.3.0", "3.5.9", **observed), decide(read, "3.5.9", "4.3.0", **observed)  # type: ignore[arg-type]
        assert [ruling.passing for ruling in (*into.rulings, *out_of.rulings)] == ["fails", "tolerated"]
        code, out = gate(capsys, "bug.jsonl", "--from", "4.3.0", "--to", "3.5.9")
        assert code == 1
        assert "3.5.9: ▲ known bug, fixed in 4.0.0: it is lost (SPARK-2)" in out

    def test_one_that_both_have_is_told_and_fails_nothing(self, capsys, tmp_path) -> None:
        a.results(tmp_path / "bug.jsonl", {"f/a": {"3.5.9": a.LOST, "4.3.0": a.LOST}}, {"f/a": (self.ALL,)})
        code, out = gate(capsys, "bug.jsonl", "--from", "3.5.9", "--to", "4.3.0")
        assert code == 0
        assert "BUGS  1 known bug in both, 1 case wrong on both\n" in out
        assert "  ▲ known bug, not fixed in any release: it is lost (SPARK-2)  f/a\n" in out
        assert out.endswith("exit 0: no change\n")

    def test_a_change_that_fixes_one_fails_in_other_words_than_lost_rows(self, capsys, tmp_path) -> None:
        a.results(tmp_path / "bug.jsonl", {"f/a": {"3.5.9": a.LOST, "4.3.0": a.CALM}}, {"f/a": (self.ENTRY,)})
        code, out = gate(capsys, "bug.jsonl", "--from", "3.5.9", "--to", "4.3.0")
        assert code == 1
        assert "[must be accepted: a known bug is fixed]" in out
        assert out.endswith("exit 1: 1 change: 1 fixes a known bug and must be accepted\n")
        _, out = gate(capsys, "bug.jsonl", "--from", "3.5.9", "--to", "4.3.0", "--json")
        assert [(one["passing"], one["fixes_a_bug"]) for one in json.loads(out)["changes"]] == [("fails", True)]

    def test_a_long_answer_is_short_unless_all_is_asked_for(self, capsys, tmp_path) -> None:
        answers = {f"f/{number}": {"3.5.9": a.CALM, "4.3.0": a.LOST} for number in range(30)}
        a.results(tmp_path / "many.jsonl", answers)
        _, out = gate(capsys, "many.jsonl", "--from", "3.5.9", "--to", "4.3.0")
        assert "    ✗ f/0: 1 of 2 rows is no longer emitted" in out
        assert "    26 more; --verbose lists all\n" in out
        assert len(out.splitlines()) <= MOST_ROWS
        _, out = gate(capsys, "many.jsonl", "--from", "3.5.9", "--to", "4.3.0", "--verbose")
        assert all(f" f/{number}: 1 of 2 rows" in out for number in range(30))

    def test_it_is_one_bug_whichever_cases_show_it(self, capsys, tmp_path) -> None:
        later = self.ENTRY.model_copy(update={"spark": VersionRange.parse(">=4")})
        lost, calm = a.LOST, a.CALM
        answers = {
            "f/a": {"3.5.9": lost, "4.3.0": calm},
            "f/b": {"3.5.9": calm, "4.3.0": lost},
            "f/c": {"3.5.9": calm, "4.3.0": lost},
        }
        a.results(tmp_path / "bug.jsonl", answers, {"f/a": (self.ENTRY,), "f/b": (later,), "f/c": (later,)})
        _, out = gate(capsys, "bug.jsonl", "--from", "3.5.9", "--to", "4.3.0", "--json")
        (bug,) = json.loads(out)["known_bugs_of_both"]
        assert (bug["link"], bug["cases"]) == ("SPARK-2", ["f/b", "f/c"])

    def test_one_that_only_the_later_version_has_waits_there(self, capsys, tmp_path) -> None:
        later = self.ENTRY.model_copy(update={"spark": VersionRange.parse(">=4")})
        a.results(tmp_path / "bug.jsonl", {"f/a": {"3.5.9": a.CALM, "4.3.0": a.LOST}}, {"f/a": (later,)})
        _, out = gate(capsys, "bug.jsonl", "--from", "3.5.9", "--to", "4.3.0")
        assert "BUGS  0 known bugs in both, 1 only in 4.3.0\n" in out
        assert ", only in 4.3.0: it is lost (SPARK-2)  f/a" in " ".join(out.split()).replace(") f/a", ")  f/a")
        _, out = gate(capsys, "bug.jsonl", "--from", "3.5.9", "--to", "4.3.0", "--json")
        assert [bug["cases"] for bug in json.loads(out)["new_known_bugs"]] == [["f/a"]]
        assert json.loads(out)["known_bugs_of_both"] == []

    def test_one_that_no_ticket_reports(self, capsys, tmp_path) -> None:
        entry = self.ALL.model_copy(update={"link": None, "introduced_by": "SPARK-51955"})
        a.results(tmp_path / "bug.jsonl", {"f/a": {"3.5.9": a.LOST, "4.3.0": a.LOST}}, {"f/a": (entry,)})
        _, out = gate(capsys, "bug.jsonl", "--from", "3.5.9", "--to", "4.3.0")
        assert "▲ known bug, not fixed in any release: it is lost (no ticket, introduced by SPARK-51955)  f/a" in out

    def test_a_documented_difference_that_both_have_is_not_a_bug(self, capsys, tmp_path) -> None:
        entry = differs(">=3", because="it is late", link="SPARK-1", steps=a.ONLY_FIRST)
        a.results(tmp_path / "late.jsonl", {"f/a": {"3.5.9": a.LOST, "4.3.0": a.LOST}}, {"f/a": (entry,)})
        code, out = gate(capsys, "late.jsonl", "--from", "3.5.9", "--to", "4.3.0")
        assert (code, out) == (0, calm())


class TestAccepting:
    def write(self, text: str) -> None:
        Path("accepted.yaml").write_text(text)

    def test_by_case_by_link_and_by_kind(self, capsys) -> None:
        self.write(
            "accepted:\n  - link: SPARK-1\n    because: we keep a day of slack\n"
            "  - case: f/metric\n    change: metric\n    from: 3.5.9\n    because: nobody reads it\n"
        )
        code, out = gate(capsys, *PAIR, "--accept", "accepted.yaml")
        assert code == 0
        assert "[accepted: we keep a day of slack]" in out
        assert out.endswith("exit 0: 2 changes: 2 accepted\n")

    def test_another_kind_of_change_is_not_what_was_accepted(self, capsys) -> None:
        self.write("accepted:\n  - {case: f/rows, change: timing, because: later is fine}\n")
        code, out = gate(capsys, *PAIR, "--accept", "accepted.yaml")
        assert code == 1
        assert "stale: accepted.yaml:2: f/rows, change: timing" in out

    def test_a_stale_acceptance_fails(self, capsys) -> None:
        self.write(
            "accepted:\n  - {case: f/rows, because: slack}\n  - {case: f/metric, because: unread}\n"
            "  - {case: f/same, because: it changed once}\n"
        )
        code, out = gate(capsys, *PAIR, "--accept", "accepted.yaml")
        assert code == 1
        assert "stale: accepted.yaml:4: f/same: no such change any more, remove the entry" in out
        assert out.endswith("exit 1: 2 changes: 2 accepted; 1 stale acceptance\n")

    def test_what_speaks_of_other_versions_is_not_stale(self, capsys) -> None:
        self.write(
            "accepted:\n  - {case: f/rows, because: slack}\n  - {case: f/metric, because: unread}\n"
            "  - {case: f/same, from: 3.0.3, because: for the other job}\n"
        )
        assert gate(capsys, *PAIR, "--accept", "accepted.yaml")[0] == 0

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("accepted:\n  - case: f/rows\n", "accepted.yaml:2:5: an accepted change needs a reason: add `because`"),
            ("accepted:\n  - case: f/rows\n    because:\n", "accepted.yaml:3:"),
            (
                'accepted:\n  - case: f/rows\n    because: "\\u200b"\n',
                "accepted.yaml:3:14: an accepted change needs a reason",
            ),
            ("accepted:\n  - because: I say so\n", "an entry needs a `case`, or the `link` of a reason"),
            ("accepted:\n  - {case: x, because: y, why: z}\n", "unknown key 'why'"),
            ("accepted:\n  - {case: x, because: y, change: row}\n", "did you mean 'rows'"),
            ("acepted: []\n", "did you mean 'accepted'"),
            ("- case: x\n", "must be a mapping with one key"),
            ("accepted: everything\n", "must be a mapping with one key"),
            ("accepted:\n  - hello\n", "an entry must be a mapping"),
        ],
    )
    def test_what_is_wrong_is_told_by_line(self, capsys, text, problem) -> None:
        self.write(text)
        code, out = gate(capsys, *PAIR, "--accept", "accepted.yaml")
        assert code == 2
        assert problem in out

    def test_a_draft_is_valid_once_reasons_are_written(self, capsys) -> None:
        assert gate(capsys, *PAIR, "--draft", "accepted.yaml")[0] == 1
        assert gate(capsys, *PAIR, "--accept", "accepted.yaml")[0] == 2
        self.write(Path("accepted.yaml").read_text().replace("because:", "because: looked at"))
        assert gate(capsys, *PAIR, "--accept", "accepted.yaml")[0] == 0


class TestWhatAnAcceptanceCovers:
    @pytest.fixture
    def rows(self, tmp_path: Path) -> Change:

        matrix = Matrix.of(Results.read(tmp_path / "results.jsonl"))
        return next(one for one in changes(matrix, *matrix.targets).changes if one.case == "f/rows")

    @pytest.mark.parametrize(
        ("entry", "covered"),
        [
            ({"case": "f/rows"}, True),
            ({"case": "f/row"}, False),
            ({"case": "f/rows2"}, False),
            ({"link": "SPARK-1"}, True),
            ({"link": "SPARK-0"}, False),
            ({"link": "SPARK-2"}, False),
            ({"case": "f/rows", "link": "SPARK-2"}, False),
            ({"case": "f/other", "link": "SPARK-1"}, False),
            ({"case": "f/rows", "change": "rows"}, True),
            ({"case": "f/rows", "change": "metric"}, False),
            ({"case": "f/rows", "change": "timing"}, False),
        ],
    )
    def test_every_key_that_it_has_must_match(self, rows: Change, entry, covered) -> None:
        assert Acceptance(Path("a.yaml"), 1, "slack", **entry).covers(rows) is covered

    @pytest.mark.parametrize(
        ("entry", "applies"),
        [
            ({}, True),
            ({"before": "3.5.9"}, True),
            ({"before": "3.5.8"}, False),
            ({"before": "4.0.0"}, False),
            ({"after": "4.3.0"}, True),
            ({"after": "4.2.0"}, False),
            ({"after": "4.4.0"}, False),
            ({"before": "3.5.9", "after": "4.4.0"}, False),
            ({"before": "3.5.8", "after": "4.3.0"}, False),
        ],
    )
    def test_it_applies_to_the_versions_that_it_names(self, entry, applies) -> None:
        assert Acceptance(Path("a.yaml"), 1, "slack", **entry).applies_to("3.5.9", "4.3.0") is applies

    def test_a_file_is_read_entry_by_entry_with_every_problem(self, tmp_path: Path) -> None:
        path = tmp_path / "accepted.yaml"
        path.write_text(
            "accepted:\n  - {link: SPARK-1, from: 3.5.9, to: 4.3.0, because: ' slack '}\n"
            "  - {case: f/metric, change: metric, because: unread}\n"
        )
        assert read_accepted(path) == (
            Acceptance(path, 2, "slack", link="SPARK-1", before="3.5.9", after="4.3.0"),
            Acceptance(path, 3, "unread", case="f/metric", change="metric"),
        )
        path.write_text(
            "accepted:\n  - {case: f/a, because: ''}\n  - {case: [f/a], because: x}\n  - {link: SPARK-1}\nmore: 1\n"
        )
        with pytest.raises(InvalidCase) as invalid:
            read_accepted(path)
        *entries, unknown = [(one.line, one.message) for one in invalid.value.problems]
        assert entries == [
            (2, "an accepted change needs a reason"),
            (3, "`case` must be text"),
            (4, "an accepted change needs a reason: add `because`"),
        ]
        assert unknown[0] == 5
        assert unknown[1].startswith("unknown key 'more'")

    def test_a_file_without_entries_accepts_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "accepted.yaml"
        path.write_text(draft(()))
        assert read_accepted(path) == ()

    def test_the_first_of_several_that_cover_a_change_says_why(self, tmp_path: Path) -> None:
        entries = [Acceptance(Path("a"), line, because, case="f/rows") for line, because in ((1, "one"), (2, "two"))]
        answer = decide(Results.read(tmp_path / "results.jsonl"), "3.5.9", "4.3.0", accepted=entries)
        assert [(one.change.case, one.passing, one.because) for one in answer.rulings] == [
            ("f/rows", "accepted", "one"),
            ("f/metric", "fails", None),
        ]
        assert (answer.stale, [one.change.case for one in answer.failing]) == ((), ["f/metric"])


class TestBaseline:
    def test_only_what_is_new_fails(self, capsys, tmp_path) -> None:
        a.results(tmp_path / "old.jsonl", {k: v for k, v in ANSWERS.items() if k != "f/metric"}, {"f/rows": (BEFORE,)})
        code, out = gate(capsys, *PAIR, "--baseline", "old.jsonl")
        assert code == 1
        assert "f/rows: 1 more row than before, 1 fewer dropped as late  [in the baseline]" in out
        assert out.endswith("exit 1: 2 changes: 1 fails the gate, 1 in the baseline\n")

    @pytest.mark.parametrize("rows", [{"3.5.9": a.OTHER, "4.3.0": a.CALM}, {"3.5.9": a.LOST, "4.3.0": a.FULLER}])
    def test_a_change_between_other_answers_is_new(self, capsys, tmp_path, rows) -> None:
        a.results(tmp_path / "old.jsonl", {**ANSWERS, "f/rows": rows})
        code, out = gate(capsys, *PAIR, "--baseline", "old.jsonl")
        assert (code, "f/rows: 1 more row than before, 1 fewer dropped as late  [fails the gate]" in out) == (1, True)

    def test_a_changed_case_is_new_although_both_answers_are_as_before(self, capsys, tmp_path) -> None:
        text = (tmp_path / "results.jsonl").read_text()
        lines = []
        for line in text.splitlines():
            record = json.loads(line)
            if record.get("case") == "f/rows":
                record["case_digest"] = "f" * 64
            lines.append(record)
        (tmp_path / "edited.jsonl").write_text(forged(lines))
        code, out = gate(capsys, *PAIR, "--baseline", "edited.jsonl")
        assert (code, out.endswith("2 changes: 1 fails the gate, 1 in the baseline\n")) == (1, True)


@pytest.mark.parametrize(("accepted", "code"), [([], 1), ([Acceptance(Path("a"), 1, "slack", case="f/b")], 3)])
def test_a_change_is_certain_even_if_something_is_missing(tmp_path, accepted, code) -> None:
    both = {"f/a": {"3.5.9": a.CALM, "4.3.0": a.NOT_RUN}, "f/b": {"3.5.9": a.CALM, "4.3.0": a.LOST}}
    assert decide(a.results(tmp_path / "x.jsonl", both), "3.5.9", "4.3.0", accepted=accepted).exit_code == code


class TestNotTried:
    CALM: ClassVar = {"f/a": {"3.5.9": a.CALM, "4.3.0": a.CALM}}

    def of(self, tmp_path: Path, answers=CALM, met=(), **options):  # type: ignore[no-untyped-def]
        handed = tuple(a.handoff_cell(f"f/{number}", one) for number, one in enumerate(met))
        results = replace(a.results(tmp_path / "x.jsonl", answers), upgrades=handed)
        found = decide(results, "3.5.9", "4.3.0", **options)
        return found.exit_code, found.untried

    @pytest.mark.parametrize(
        ("answers", "met", "left_out", "code", "said"),
        [
            (CALM, ["resumed", "not-applicable"], [], 0, "nothing"),
            (CALM, ["not-applicable"], [], 0, "nothing"),
            (CALM, ["resumed", "not-run", "broken"], [], 3, "2 checkpoints"),
            (CALM, [], [], 3, "every checkpoint"),
            (CALM, ["resumed"], ["f/new"], 3, "1 case left out"),
            ({**CALM, "f/b": {"3.5.9": a.CALM, "4.3.0": a.NOT_RUN}}, ["resumed"], [], 3, "1 cell without a result"),
            (
                {**CALM, "f/b": {"3.5.9": a.OUTSIDE, "4.3.0": a.CALM}},
                ["resumed"],
                [],
                0,
                "1 case that only one version could run",
            ),
            ({**CALM, "f/b": {"3.5.9": a.OUTSIDE, "4.3.0": a.OUTSIDE}}, ["resumed"], [], 0, "nothing"),
        ],
    )
    def test_the_verdict_says_it_and_may_fail_because_of_it(self, tmp_path, answers, met, left_out, code, said) -> None:
        assert self.of(tmp_path, answers, met, left_out=left_out)[1] == said
        assert self.of(tmp_path, answers, met, left_out=left_out, require_tried=True) == (code, said)

    def test_a_change_is_certain_whatever_was_not_tried(self, tmp_path) -> None:
        assert self.of(tmp_path, ANSWERS, require_tried=True)[0] == 1

    @pytest.mark.parametrize("other", [a.OUTSIDE, a.NOT_RUN, a.BROKEN])
    def test_nothing_compared_is_no_equality(self, tmp_path, other) -> None:
        found = decide(a.results(tmp_path / "x.jsonl", {"f/a": {"3.5.9": a.CALM, "4.3.0": other}}), "3.5.9", "4.3.0")
        assert found.exit_code == 3
        for said in (found.headline(), found.verdict()):
            assert "nothing compared, as no case has a result on both versions" in said
            assert "no change" not in said

    def test_for_a_program(self, capsys) -> None:
        code, out = gate(capsys, *PAIR, "--require-tried", "--json")
        said = json.loads(out)
        assert (code, said["not_tried"], said["on_one_version"]) == (1, ["every checkpoint"], [])
        assert said["checkpoints_summary"] == UNTRIED

    def test_of_a_patch_release_the_checkpoints_of_its_line_are_shown_and_named(self, capsys) -> None:
        _, out = gate(capsys, "--from", "3.5.3", "--to", "4.3.0", "--verbose")
        out = " ".join(out.split())
        assert "3.5.3 → 4.3.0 was not run; 3.5.9 → 4.3.0 was: of " in out
        assert re.search(r"STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE, 3\.5\.9 → 4\.3\.0: ", out)
        assert ", not run for 3.5.3 → 4.3.0: " in out
        _, out = gate(capsys, "--from", "3.5.3", "--to", "4.3.0", "--json")
        pairs = {(one["from"], one["to"], one["status"].endswith("not run")) for one in json.loads(out)["checkpoints"]}
        assert pairs == {("3.5.9", "4.3.0", False), ("3.5.3", "4.3.0", True)}


def test_two_texts_of_a_case_are_not_compared(tmp_path: Path) -> None:
    same = {"f/a": {"3.5.9": a.CALM, "4.3.0": a.CALM}, "f/b": {"3.5.9": a.CALM, "4.3.0": a.CALM}}
    results = a.results(tmp_path / "y.jsonl", same)
    assert decide(results, "3.5.9", "4.3.0").exit_code == 0
    cells = [
        cell.model_copy(update={"case_digest": "1" * 64})
        if (cell.case, cell.target) == ("f/a", "spark-4.3.0")
        else cell
        for cell in results.cells
    ]
    found = decide(replace(results, cells=tuple(cells)), "3.5.9", "4.3.0")
    assert (found.exit_code, [(one.case, one.target) for one in found.compared.missing]) == (
        3,
        [("f/a", "spark-3.5.9")],
    )
    assert found.compared.missing[0].why == "it ran another text of the case than the other version; run both again"


def test_missing_cells_fail(capsys, tmp_path) -> None:
    a.results(
        tmp_path / "open.jsonl",
        {"f/a": {"3.5.9": a.CALM, "4.3.0": a.BROKEN}, "f/b": {"3.5.9": a.CALM, "4.3.0": a.CALM}},
    )
    code, out = gate(capsys, "open.jsonl", "--from", "3.5.9", "--to", "4.3.0")
    assert code == 3
    assert "no answer: f/a on spark-4.3.0 (broken)" in out
    assert out.endswith("exit 3: no change; no answer: 1 cell without a result, every checkpoint\n")


@pytest.mark.parametrize("asked", ["4.0.5", "4", "spark-9"])
def test_a_version_that_is_not_there(capsys, asked) -> None:
    code, out = gate(capsys, "results.jsonl", "--from", "3.5", "--to", asked)
    assert code == 2
    assert f"results.jsonl has no {asked}; available: 3.5.9, 4.3.0" in out


@pytest.mark.parametrize("named", ["missing.jsonl", "README.md", "other.json", "."])
def test_a_missing_or_wrong_file_is_wrong_usage_in_one_line(capsys, tmp_path, named) -> None:
    (tmp_path / "README.md").write_text("# Results\n")
    (tmp_path / "other.json").write_text('{"a": 1}\n')
    code, out = gate(capsys, named, "--from", "3.5", "--to", "4.3")
    assert code == 2
    assert out.count("\n") == 1
    assert f"conformance: {named}: " in out
    assert "pass the results.jsonl that a run wrote" in out


def test_the_published_results_answer_without_a_spark(capsys) -> None:
    assert published()
    code, out = gate(capsys, "--from", "3.5.9", "--to", "4.3.0")
    assert code == 1
    assert "SPARK-57003" in out
    assert "without an answer" not in out


@pytest.mark.parametrize("more", [(), ("--fail-on", "documented"), ("--uses", "outer-join"), ("--json",)])
def test_no_case_is_read_of_which_nothing_is_needed(capsys, monkeypatch, tmp_path, more) -> None:
    mine = tmp_path / "mine" / "cases" / "f"
    mine.mkdir(parents=True)
    for name in ("rows", "same", "other"):
        (mine / f"{name}.yaml").write_text(
            "title: A title\nstreams: {events: event_time TIMESTAMP}\nquery: [from: events]\nsteps: [idle: {}]\n"
        )
    files: list[str] = []
    read_any = discovery.read_any
    monkeypatch.setattr(discovery, "read_any", lambda file, *rest: files.append(file.name) or read_any(file, *rest))
    gate(capsys, *PAIR, "--cases", "mine", *more)
    assert sorted(files) == ["rows.yaml", *(["same.yaml"] if "--uses" in more else [])]


@pytest.mark.parametrize("width", [60, 80, 100, 160])
@pytest.mark.parametrize("pair", [("3.5.9", "4.3.0"), ("3.3.4", "4.0.5"), ("3.0.3", "3.1.3"), ("4.2.1", "4.3.0")])
def test_the_answer_has_the_width_of_the_terminal(capsys, monkeypatch, pair, width) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    _, out = gate(capsys, "--from", pair[0], "--to", pair[1])
    assert all(len(line) <= width for line in out.splitlines())
    assert width < 100 or len(out.splitlines()) <= MOST_ROWS
    assert " → ".join(pair) in out.splitlines()[0]
    assert out.splitlines()[-1].startswith("exit ") or width < 100


@pytest.mark.parametrize(
    ("before", "after", "options"),
    [
        ("4.2", "spark-4.3.0", ()),
        ("3.5.3", "4.3", ("--verbose", "--fail-on", "any")),
        ("dbr-15.4", "4.1.2", ("--json", "--fail-on", "guaranteed", "--uses", "outer-join")),
    ],
)
def test_a_published_pair_is_answered_as_by_its_results_and_cases(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    before: str,
    after: str,
    options: tuple[str, ...],
) -> None:
    asked = ("--from", before, "--to", after, *options)
    with monkeypatch.context() as without:
        without.delattr(Results, "read_all")
        answer = gate(capsys, *asked)
    monkeypatch.setattr(published_pairs, "PAIRS", tmp_path / "none")
    assert gate(capsys, *asked) == answer
