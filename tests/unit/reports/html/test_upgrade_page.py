"""The files about one upgrade: a page, a picture and a file of changes to accept."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conformance.judging.comparison import MEANINGS
from conformance.suite.discovery import Suite
from reports.analysis.releases import released, releases_between, routes
from reports.analysis.report import Report
from reports.html.writer import upgrade_page, write_upgrade_page
from reports.results import reading
from reports.results.published import NoSuchVersion
from reports.results.reading import Results
from reports.results.records import Cell
from tests.support import cells as a
from tests.support.commands import exit_code_of

VERSIONS = ("3.5.9", "4.0.5", "4.1.4")
SETTING = "spark.sql.streaming.stateStore.stateSchemaCheck=false"


def handed(origin: str, to: str, met: str) -> Cell:
    entry = a.ENTRY.model_copy(update={"workaround": SETTING, "proven": True}) if met == "refused" else None
    return a.handoff_cell("f/a", met, f"spark-{origin}", f"spark-{to}", differs=entry)


def report(folder: Path, *upgrades: Cell) -> Report:
    bug = a.bug("<4")
    both = a.bug(">=3", because="it is late", link="SPARK-58904")
    found = a.results(
        folder / "r.jsonl",
        {
            "f/fixed": {"3.5.9": a.LOST, "4.0.5": a.CALM, "4.1.4": a.CALM},
            "f/both": dict.fromkeys(VERSIONS, a.LOST),
            "f/rows": {"3.5.9": a.CALM, "4.0.5": a.CALM, "4.1.4": a.OTHER},
        },
        {"f/fixed": (bug,), "f/both": (both,)},
    )
    return Report.of(Results(found.header, found.cells, found.footer, (), upgrades), Suite(()))


class TestRoute:
    def test_a_stop_is_worth_it_where_it_saves_refused_checkpoints(self, tmp_path: Path) -> None:
        made = report(
            tmp_path,
            handed("3.5.9", "4.1.4", "refused"),
            handed("3.5.9", "4.0.5", "resumed"),
            handed("4.0.5", "4.1.4", "resumed"),
        )
        found = routes(made, made.versions[0], made.versions[2])
        assert [(str(route), route.refused) for route in found] == [
            ("3.5.9 → 4.0.5 → 4.1.4", 0),
            ("3.5.9 → 4.1.4", 1),
        ]

    def test_equal_routes_are_short_and_a_hop_that_was_not_tried_gives_none(self, tmp_path: Path) -> None:
        made = report(tmp_path, handed("3.5.9", "4.1.4", "resumed"), handed("3.5.9", "4.0.5", "resumed"))
        assert [str(route) for route in routes(made, made.versions[0], made.versions[2])] == ["3.5.9 → 4.1.4"]
        assert routes(report(tmp_path), made.versions[0], made.versions[2]) == ()

    def test_each_release_on_the_way_has_its_changes_bugs_and_checkpoints(self, tmp_path: Path) -> None:
        made = report(tmp_path, handed("3.5.9", "4.0.5", "resumed"))
        found = list(releases_between(made, made.versions[0], made.versions[2]))
        assert [(one.target.title, one.changes, one.bugs, "was not run" in one.checkpoints) for one in found] == [
            ("4.0.5", 1, 1, False),
            ("4.1.4", 2, 1, True),
        ]

    def test_a_release_without_checkpoints_has_the_route_of_its_line(self, tmp_path: Path) -> None:
        answers = {"f/a": {"3.5.3": a.LOST, "3.5.9": a.CALM, "4.0.0": a.CALM, "4.0.5": a.CALM}}
        found = a.results(tmp_path / "r.jsonl", answers)
        made = Report.of(
            Results(found.header, found.cells, found.footer, (), (handed("3.5.9", "4.0.5", "resumed"),)), Suite(())
        )
        told = upgrade_page(made, "3.5.3", "4.0.5")
        assert [(asked.title, tried.title) for asked, tried in told.instead] == [("3.5.3", "3.5.9")]
        assert str(told.route) == "3.5.9 → 4.0.5"
        assert [one.target.title for one in told.releases] == ["3.5.9", "4.0.0", "4.0.5"]
        assert str(released(told.releases[1].target)) == "2025-05-23"
        path = Path(next(write_upgrade_page(made, "3.5.3", "4.0.5", tmp_path)))
        assert "No checkpoint of 3.5.3 was tried; the route is that of 3.5.9" in path.read_text()
        # Nothing was tried on any release of its line.
        assert upgrade_page(report(tmp_path), "3.5.9", "4.1.4").instead == ()

    def test_of_each_line_the_newest_of_those_with_the_fewest_bugs(self, tmp_path: Path) -> None:
        bug = a.bug("==3.5.9", because="lost")
        found = a.results(
            tmp_path / "r.jsonl",
            {"f/a": {"3.5.3": a.CALM, "3.5.4": a.CALM, "3.5.9": a.LOST, "4.0.0": a.CALM, "4.0.5": a.CALM}},
            {"f/a": (bug,)},
        )
        told = upgrade_page(Report.of(found, Suite(())), "3.5.3", "4.0.5")
        assert [one.target.title for one in told.fewest] == ["3.5.4", "4.0.5"]

    def test_a_downgrade_has_no_releases_on_the_way(self, tmp_path: Path) -> None:
        made = report(tmp_path)
        assert list(releases_between(made, made.versions[2], made.versions[0])) == []


class TestUpgradePage:
    def test_it_says_what_is_fixed_what_stays_and_what_to_do(self, tmp_path: Path) -> None:
        found = upgrade_page(report(tmp_path, handed("3.5.9", "4.1.4", "refused")), "3.5.9", "4.1.4")
        assert found.title == "Upgrade from Spark 3.5.9 to 4.1.4"
        assert [because for because, _, _ in found.fixed] == ["it is lost"]
        assert [one.because for one in found.comparison.bugs] == ["it is late"]
        assert found.workarounds == (f"Checkpoints: {SETTING}", "Define a watermark on both inputs.")

    def test_its_picture_draws_checkpoints_and_cases_each_to_their_own_scale(self, tmp_path: Path) -> None:
        made = report(tmp_path, handed("3.5.9", "4.1.4", "refused"))
        _, picture, _ = write_upgrade_page(made, "3.5.9", "4.1.4", tmp_path / "out")
        drawn = Path(picture).read_text()
        counts = dict(re.findall(r'data-fact="([^"]+) 3\.5\.9 4\.1\.4">(\d+)<', drawn))
        assert counts["bugs of both"] == counts["checkpoints that do not resume"] == "1"
        # One of one checkpoint is a whole bar, and so is the most frequent change; nobody knows all bugs, so they have no bar.
        widths = re.findall(r'<rect x="350" y="\d+" width="([\d.]+)"', drawn)
        assert len(widths) == len(MEANINGS) + 1
        assert widths.count("300") == 2

    def test_what_the_report_has_compared_is_not_compared_again(self, tmp_path: Path) -> None:
        made = report(tmp_path)
        assert len(made.pairs) == 3
        reading._read_again.cache_clear()
        (tmp_path / "r.jsonl").unlink()
        assert upgrade_page(made, "3.5.9", "4.1.4").gate.compared is made.pairs[1]

    def test_a_version_without_results(self, tmp_path: Path) -> None:
        with pytest.raises(NoSuchVersion):
            upgrade_page(report(tmp_path), "3.5.9", "4.2.0")

    def test_the_files(self, tmp_path: Path) -> None:
        made = report(tmp_path, handed("3.5.9", "4.1.4", "refused"))
        told = list(write_upgrade_page(made, "3.5.9", "4.1.4", tmp_path / "out"))
        names = [Path(line).name for line in told]
        assert names == ["upgrade-3.5.9-4.1.4.html", "upgrade-3.5.9-4.1.4.svg", "accepted-3.5.9-4.1.4.yaml"]
        page = (tmp_path / "out" / names[0]).read_text()
        assert "size: A4" in page
        assert "of 1 tried checkpoint, 1 is refused" in page
        assert "<h2>Route</h2>" in page
        assert ElementTree.parse(tmp_path / "out" / names[1]).getroot().tag.endswith("svg")
        assert "case: f/rows" in (tmp_path / "out" / names[2]).read_text()
        before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
        list(write_upgrade_page(made, "3.5.9", "4.1.4", tmp_path / "out"))
        assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before

    def test_reasons_that_somebody_wrote_stay(self, tmp_path: Path) -> None:
        made = report(tmp_path)
        accepted = Path(list(write_upgrade_page(made, "3.5.9", "4.1.4", tmp_path))[2])
        accepted.write_text(accepted.read_text().replace("because:", "because: our job has no such window"))
        assert list(write_upgrade_page(made, "3.5.9", "4.1.4", tmp_path))[2].endswith("stays: it has your reasons")
        assert "our job" in accepted.read_text()


class TestCommand:
    def test_it_names_what_it_wrote(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        report(tmp_path)
        about = [str(tmp_path / "r.jsonl"), "-o", str(tmp_path / "out")]
        assert exit_code_of("report", *about, "--from", "3.5.9", "--to", "4.1") == 0
        assert capsys.readouterr().out.count("3.5.9-4.1.4") == 3
        assert exit_code_of("report", *about, "--from", "3.5.9") == 2
        assert "name both versions" in capsys.readouterr().err
        assert exit_code_of("report", *about, "--from", "3.5.9", "--to", "4.1", "--single-file") == 2
