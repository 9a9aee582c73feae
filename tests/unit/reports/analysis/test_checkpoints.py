"""Whether checkpoints resume: what was observed, and what the cases document where nothing was."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.core.case import Case, ExpectedError, Upgrade
from conformance.core.observation import ErrorSeen
from conformance.core.versions import VersionRange
from reports.analysis.checkpoints import CheckpointChange, Checkpoints, UpgradeMatrix, by_pair
from reports.results import published
from reports.results.published import published_results, upgrade_files
from reports.results.reading import Results
from reports.results.records import Cell, TargetRecord
from tests.support import cells as a
from tests.support.gates import gate
from tests.support.observations import case, change, expect
from tests.unit.reports.analysis.test_gate import gate as run_gate
from tests.unit.tools.test_publish_upgrades import QUERY

OLD, NEW = (TargetRecord(name=f"spark-{version}", spark=version) for version in ("3.5.9", "4.3.0"))
GONE = ErrorSeen(stage="run", classes=("Incompatible",), message="no")


def cell(id: str, met: str, *pair: str) -> Cell:
    return a.handoff_cell(id, met, *pair, error=GONE if met == "refused" else None)


def known(
    cells: Iterable[Cell], cases: Iterable[Case] = (), before: TargetRecord = OLD, after: TargetRecord = NEW
) -> Checkpoints:
    return UpgradeMatrix(by_pair(cells), {case.id: case for case in cases}).between(before, after)


def test_the_worst_come_first_and_the_same_reason_once() -> None:
    cells = [cell("f/a", "resumed"), cell("f/b", "refused"), cell("f/c", "refused"), cell("f/d", "violates")]
    found = known(cells)
    assert [(group.status, group.outcome, group.error, tuple(group.cases)) for group in found.groups] == [
        ("violates", "other rows", "", ("f/d",)),
        ("differs", "refused", "Incompatible", ("f/b", "f/c")),
    ]
    assert found.summary() == "of 4 tried checkpoints, 2 are refused, 1 is not as expected"


@pytest.mark.parametrize(
    ("statuses", "summary"),
    [
        (["resumed"], "of 1 tried checkpoint, every one resumes as if the version had not changed"),
        (["refused", "not-run"], "of 1 tried checkpoint, 1 is refused; 1 not run"),
        (["other rows", "fails later", "not-applicable"], "of 2 tried checkpoints, 2 resume with other results"),
        (
            ["flaky", "bug", "broken"],
            "of 3 tried checkpoints, 1 resumes with other results, 1 is not as expected, 1 has no answer",
        ),
        (["not-applicable"], "no checkpoint was tried"),
        (["not-run"], "3.5.9 → 4.3.0 was not run, nor any other pair of the lines 3.5 and 4.3"),
    ],
)
def test_the_summary_says_what_was_tried(statuses: list[str], summary: str) -> None:
    assert known([cell(f"f/{at}", status) for at, status in enumerate(statuses)]).summary() == summary


class TestNearestPair:
    """A pair that was not run is answered by another pair of the same lines, which the answer names."""

    OTHERS = (
        cell("f/a", "refused", "spark-3.5.9", "spark-4.3.0"),
        cell("f/b", "resumed", "spark-3.5.8", "spark-4.2.1"),
        cell("f/c", "resumed", "spark-4.3.0", "spark-3.5.9"),
        cell("f/a", "not-run", "spark-3.5.3", "spark-4.3.0"),
        cell("f/d", "resumed", "spark-3.5.8", "spark-4.3.0-connect"),
        cell("f/d", "resumed", "my-build", "spark-4.3.0"),
    )

    @pytest.mark.parametrize(
        ("before", "after", "by"),
        [
            ("3.5.9", "4.3.0", ""),
            ("3.5.3", "4.3.0", "3.5.9 → 4.3.0"),
            ("3.5.8", "4.3.1", "3.5.9 → 4.3.0"),
            ("3.5.3", "4.2.0", "3.5.8 → 4.2.1"),
            ("4.3.0", "3.5.0", "4.3.0 → 3.5.9"),
        ],
    )
    def test_it_is_of_the_same_lines_and_direction(self, before: str, after: str, by: str) -> None:
        ends = (TargetRecord(name=f"spark-{version}", spark=version) for version in (before, after))
        found = known(self.OTHERS, (), *ends)
        assert found.answered_by == by
        assert {cell.pair for cell in found.cells} == {
            tuple(f"spark-{version}" for version in (by or f"{before} → {after}").split(" → "))
        }
        assert found.summary().startswith(f"{before} → {after} was not run; {by} was: of 1 tried") is bool(by)
        assert found.untried == ("every checkpoint" if by else "")

    @pytest.mark.parametrize(
        ("before", "after", "said", "untried"),
        [
            ("3.5.8", "4.3.0", "3.5.8 writes the same files as 3.5.9 in 2 queries", ""),
            (
                "3.5.7",
                "4.3.0",
                "3.5.7 writes the same files as 3.5.9 in 2 queries, but for the recorded settings: a, b",
                None,
            ),
            ("3.5.6", "4.3.0", "", None),
            ("3.5.5", "4.3.0", "", None),
            # Whether it reads them alike, nobody compared.
            ("3.5.8", "4.3.1", "", None),
        ],
    )
    def test_a_release_that_writes_the_same_files_counts_as_tried(
        self, monkeypatch: pytest.MonkeyPatch, before: str, after: str, said: str, untried: str | None
    ) -> None:
        left = {"digests": {"join": "0", "count": "1"}, "settings": ["a=1", "c=1"]}
        others = {
            "3.5.7": {**left, "settings": ["b=1", "c=1"]},
            "3.5.6": {**left, "digests": {"join": "0", "count": "2"}},
        }
        written = {"3.5.9": left, "3.5.8": left, "4.3.1": left, "4.3.0": left, **others}
        monkeypatch.setattr(
            published, "_written", lambda: {f"spark-{release}": own for release, own in written.items()}
        )
        ends = (TargetRecord(name=f"spark-{version}", spark=version) for version in (before, after))
        found = known([cell("f/a", "refused", "spark-3.5.9", "spark-4.3.0")], (), *ends)
        assert found.summary().partition("refused")[2] == (f"; {said}" if said else "")
        assert found.untried == ("every checkpoint" if untried is None else untried)

    def test_a_pair_with_one_of_the_two_versions_is_nearer_than_one_with_more_checkpoints(self) -> None:
        more = [cell(f"f/{number}", "resumed", "spark-3.5.7", "spark-4.3.1") for number in range(3)]
        assert known([*self.OTHERS, *more], (), TargetRecord(name="spark-3.5.3", spark="3.5.3"), NEW).ran == (
            OLD.name,
            NEW.name,
        )

    def test_a_build_of_ones_own_stands_in_its_line(self) -> None:
        build = TargetRecord(name="our-3.5", spark="3.5.1-acme")
        assert (
            known(self.OTHERS, (), build, NEW).summary().startswith("our-3.5 → 4.3.0 was not run; 3.5.9 → 4.3.0 was: ")
        )

    @pytest.mark.parametrize("versions", [("2.4.8", "4.3.0"), ("3.5.3", "3.5.9"), ("4.2.1", "3.5.9")])
    def test_where_no_pair_of_the_lines_ran_it_says_so(self, versions: tuple[str, str]) -> None:
        ends = [TargetRecord(name=f"spark-{version}", spark=version) for version in versions]
        within = cell("f/a", "resumed", "spark-3.5.9", "spark-3.5.3")
        found = known([*self.OTHERS, within], (), *ends)
        lines = " and ".join(dict.fromkeys(version[:3] for version in versions))
        assert found.summary().startswith(f"{versions[0]} → {versions[1]} was not run, nor any other pair of the line")
        assert found.summary().endswith(lines)
        assert (found.cells, found.tried, found.untried) == ((), 0, "every checkpoint")


class TestWhatDiffers:
    """Which rows, watermarks and states differ, and whether the later version does so with a checkpoint of its own."""

    LATER = Upgrade(because="it waits", steps={2: change(rows=[["12:00", "12:10", 1]], watermark="11:00", state=3)})
    ROWS = Upgrade(because="others", steps={2: change(rows=[])})
    FAILS = Upgrade(because="fails", steps={2: change(error={"class": ("Gone",), "stage": "run"})})

    @staticmethod
    def found(entry: Upgrade, outcome: str, *cells: Cell, **keys: Any) -> CheckpointChange:
        wanted = expect(rows=[["12:00", "12:10", 1]], watermark="12:00", state=1)
        of = case(wanted, wanted, id="f/b", digest="0", upgrades=(entry,), query=QUERY, **keys)
        own = a.handoff_cell("f/b", "other rows", outcome=outcome)
        return known([own, *cells], [of]).change(own)

    @pytest.mark.parametrize(
        ("entry", "outcome", "differs_in"),
        [
            (LATER, "resumed", ("state", "watermark")),
            (ROWS, "other rows", ("rows",)),
            (FAILS, "fails later", ("error",)),
        ],
    )
    def test_it_is_what_the_entry_of_the_case_changes(
        self, entry: Upgrade, outcome: str, differs_in: tuple[str, ...]
    ) -> None:
        assert self.found(entry, outcome).differs_in == differs_in

    def test_an_entry_about_any_versions_is_about_a_restart(self) -> None:
        assert self.found(self.LATER, "resumed").condition.kind == "restart"
        versions = {"from_": VersionRange.parse("<4"), "to": VersionRange.parse(">=4")}
        one_way = self.LATER.model_copy(update=versions)
        assert self.found(one_way, "resumed").condition.kind == "default settings"

    @pytest.mark.parametrize(("met", "kind"), [("resumed", "default settings"), ("other rows", "restart")])
    def test_what_the_later_version_did_with_its_own_counts_more(self, met: str, kind: str) -> None:
        alone = a.handoff_cell("f/b", met, origin=NEW.name)
        assert self.found(self.ROWS, "other rows", alone).condition.kind == kind

    def test_what_the_case_needs_counts_before_a_restart(self) -> None:
        conf = {"spark.sql.streaming.multipleWatermarkPolicy": "max"}
        assert self.found(self.LATER, "resumed", conf=conf).condition.kind == "setting"

    def test_the_summary_counts_them_and_says_how_many_have_other_rows(self) -> None:
        of = case(expect(), expect(), id="f/b", digest="0", upgrades=(self.FAILS,), query=QUERY)
        found = known([a.handoff_cell("f/b", "fails later"), cell("f/c", "refused")], [of])
        assert found.summary() == (
            "of 2 tried checkpoints, 1 is refused, 1 resumes with other results (none with default settings, "
            "1 also with a checkpoint of 4.3.0; none with other rows; 1 then failed)"
        )


class TestDocumented:
    """Where no run covers two versions, the cases still say what is known."""

    ENTRY = Upgrade(
        from_=VersionRange.parse("<4"),
        to=VersionRange.parse(">=4"),
        because="another schema",
        link="SPARK-1",
        workaround="some.conf=false",
        error=ExpectedError(classes=("Incompatible",), stage="run"),
    )
    CASE = case(*(expect(rows=[]) for _ in range(2)), id="f/b", upgrades=(ENTRY,), query=QUERY)

    def test_it_is_told_for_the_versions_that_it_names(self) -> None:
        found = known((), [self.CASE])
        assert [(one.case, one.status, one.outcome, one.entry.workaround) for one in found.documented] == [
            ("f/b", "differs", "refused", "some.conf=false")
        ]
        documents = "without a run, 1 case documents a refusal or other results for"
        assert found.summary() == (
            f"3.5.9 → 4.3.0 was not run, nor any other pair of the lines 3.5 and 4.3; {documents} 3.5.9 → 4.3.0"
        )
        assert known((), [self.CASE], NEW, OLD).documented == ()
        patch = TargetRecord(name="spark-3.5.10", spark="3.5.10")
        assert known([cell("f/b", "refused")], [self.CASE], patch).summary() == (
            "3.5.10 → 4.3.0 was not run; 3.5.9 → 4.3.0 was: of 1 tried checkpoint, 1 is refused; "
            f"{documents} 3.5.10 → 4.3.0"
        )

    def test_a_result_takes_its_place(self) -> None:
        assert known([cell("f/b", "refused")], [self.CASE]).documented == ()

    def test_a_cell_without_an_answer_does_not(self) -> None:
        found = known([cell("f/b", "not-run")], [self.CASE])
        assert [one.case for one in found.documented] == ["f/b"]


def test_the_gate_counts_them_and_does_not_fail_on_them(tmp_path: Path) -> None:
    results = a.results(tmp_path / "r", {"f/a": {"3.5.9": a.CALM, "4.3.0": a.CALM}})
    handed = results.__class__(results.header, results.cells, results.footer, (), (cell("f/a", "refused"),))
    answer = gate(handed, "3.5.9", "4.3.0")
    assert answer.exit_code == 0
    assert "1 of 1 checkpoint is refused" in answer.headline()
    other = gate(handed, "3.5.9", "4.3.0", uses=frozenset(["SQL"]), needs={"f/a": ("union",)})
    assert "no checkpoint was tried" in other.headline()
    assert "no compared case related to --uses" in other.verdict()


class TestPublished:
    def test_they_come_with_the_suite(self) -> None:
        found = published_results()
        assert {(one.pair[0][:9], one.pair[1][:9]) for one in found.upgrades} >= {("spark-3.5", "spark-4.3")}
        assert any(one.status == "conforms" for one in found.upgrades)
        assert sum(path.stat().st_size for path in upgrade_files().values()) < 2 * 1024**2

    def test_only_the_files_of_the_lines_asked_for_are_read(self) -> None:
        assert {one.pair[0] for one in published_results(origins=["3.5", "4.1.4"]).upgrades} == {
            "spark-3.5.9",
            "spark-4.1.4",
        }
        assert published_results(origins=()).upgrades == ()

    def test_the_gate_says_what_to_do(self, capsys: pytest.CaptureFixture[str]) -> None:
        # SPARK-57003: the key of a join is nullable in the schema of the state from 4.0 on.
        _, out = run_gate(capsys, "--from", "3.5.9", "--to", "4.3.0", "--uses", "inner-join", "--verbose")
        told = out[out.index("CHECKPOINTS  of ") :]
        assert "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE" in told
        assert "same rows on each with spark.sql.streaming.stateStore.stateSchemaCheck=false" in told

    def test_the_gate_says_what_is_documented_where_nothing_ran(self, capsys: pytest.CaptureFixture[str]) -> None:
        _, out = run_gate(capsys, "--from", "4.2.0", "--to", "3.2.4", "--json")
        assert ("differs, not run", "refused") in {
            (one["status"], one["outcome"]) for one in json.loads(out)["checkpoints"]
        }

    def test_a_changed_case_is_not_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ran = published_results()
        case = next(one.case for one in ran.upgrades if one.status == "conforms")
        changed = [one.model_copy(update={"case_digest": "0" * 64}) if one.case == case else one for one in ran.cells]
        monkeypatch.setattr(Results, "read_all", lambda _: replace(ran, cells=tuple(changed)))
        upgrades = published_results().upgrades
        assert len(upgrades) == len(ran.upgrades)
        assert {one.status for one in upgrades if one.case == case} == {"not-run"}
