"""Whether checkpoints resume: what was observed, and what the cases document where nothing was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.core.case import ExpectedError, Upgrade
from conformance.core.observation import ErrorSeen
from conformance.core.versions import VersionRange
from reports.analysis.checkpoints import CheckpointChange, checkpoints
from reports.analysis.gate import gate
from reports.results.published import published_results, upgrade_files
from reports.results.records import Cell, TargetRecord
from tests.support import cells as a
from tests.support.observations import case, change, expect
from tests.unit.reports.analysis.test_gate import gate as run_gate
from tests.unit.tools.test_publish_upgrades import QUERY

OLD, NEW = (TargetRecord(name=f"spark-{version}", spark=version) for version in ("3.5.9", "4.3.0"))
GONE = ErrorSeen(stage="run", classes=("Incompatible",), message="no")


def cell(id: str, met: str) -> Cell:
    return a.handoff_cell(id, met, error=GONE if met == "refused" else None)


def test_the_worst_come_first_and_the_same_reason_once() -> None:
    cells = [cell("f/a", "resumed"), cell("f/b", "refused"), cell("f/c", "refused"), cell("f/d", "violates")]
    found = checkpoints(cells, (), OLD, NEW)
    assert found is not None
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
        (["not-applicable"], "nothing was handed over"),
    ],
)
def test_the_summary_says_what_was_tried(statuses: list[str], summary: str) -> None:
    found = checkpoints([cell(f"f/{at}", status) for at, status in enumerate(statuses)], (), OLD, NEW)
    assert found is not None
    assert found.summary() == summary


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
        found = checkpoints([own, *cells], [of], OLD, NEW)
        assert found is not None
        return found.change(own)

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
        found = checkpoints([a.handoff_cell("f/b", "fails later"), cell("f/c", "refused")], [of], OLD, NEW)
        assert found is not None
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
        found = checkpoints((), [self.CASE], OLD, NEW)
        assert found is not None
        assert [(one.case, one.status, one.outcome, one.entry.workaround) for one in found.documented] == [
            ("f/b", "differs", "refused", "some.conf=false")
        ]
        assert found.summary() == "not run between these versions; 1 case documents a refusal or other results"
        assert checkpoints((), [self.CASE], NEW, OLD) is None

    def test_a_result_takes_its_place(self) -> None:
        found = checkpoints([cell("f/b", "refused")], [self.CASE], OLD, NEW)
        assert found is not None
        assert found.documented == ()

    def test_a_cell_without_an_answer_does_not(self) -> None:
        found = checkpoints([cell("f/b", "not-run")], [self.CASE], OLD, NEW)
        assert found is not None
        assert [one.case for one in found.documented] == ["f/b"]


def test_the_gate_counts_them_and_does_not_fail_on_them(tmp_path: Path) -> None:
    results = a.results(tmp_path / "r", {"f/a": {"3.5.9": a.CALM, "4.3.0": a.CALM}})
    handed = results.__class__(results.header, results.cells, results.footer, (), (cell("f/a", "refused"),))
    answer = gate(handed, "3.5.9", "4.3.0")
    assert answer.exit_code == 0
    assert "checkpoints: of 1 tried checkpoint, 1 is refused" in answer.summary()
    other = gate(handed, "3.5.9", "4.3.0", uses=frozenset(["SQL"]), needs={"f/a": ("union",)})
    assert other.checkpoints is None


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
        assert "Will my checkpoints resume? of " in out
        told = out[out.index("Will my checkpoints resume?") :]
        assert "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE" in told
        assert "workaround: spark.sql.streaming.stateStore.stateSchemaCheck=false" in told

    def test_the_gate_says_what_is_documented_where_nothing_ran(self, capsys: pytest.CaptureFixture[str]) -> None:
        _, out = run_gate(capsys, "--from", "4.2.1", "--to", "3.5.9", "--json")
        assert {one["status"] for one in json.loads(out)["checkpoints"]} <= {"differs, not run", "bug, not run"}
        _, out = run_gate(capsys, "--from", "3.5.9", "--to", "4.2.1", "--json")
        assert ("differs, not run", "refused") in {
            (one["status"], one["outcome"]) for one in json.loads(out)["checkpoints"]
        }
