"""Several results files as one: what is joined, and what does not fit."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from reports.results.errors import UnusableResults
from reports.results.reading import Results, together
from reports.results.records import Footer, Header, TargetRecord
from tests.support.cells import handoff_cell
from tests.support.runs import FINISHED, STARTED, cell, header, written

OLD, NEW = "spark-3.5.9", "spark-4.3.0"
MET = TargetRecord(name=OLD, spark="3.5.9", java="17")


def run(*cases: str, target: TargetRecord | None = None, paths: tuple[str, ...] = (), **keys: Any) -> Results:
    """A run of one target, without a file."""
    target = target or TargetRecord(name=OLD, spark="3.5.9")
    of = header(cases, ()).model_copy(update={"targets": (target,), **keys})
    cells = tuple(cell(case, OLD).model_copy(update={"target": target.name}) for case in cases)
    return Results(of, cells, Footer(counts={}, finished=FINISHED), tuple(map(Path, paths)))


def upgrades(case: str, *cuts: int) -> Results:
    of = Header(suite="5" * 64, cases=(), targets=(), started=STARTED, pairs=((OLD, NEW),), cuts={case: cuts})
    found = tuple(handoff_cell(case, cut=cut) for cut in cuts)
    return Results(of, (), Footer(counts={}, finished=FINISHED), (), found)


def test_times_are_the_first_start_and_the_last_end() -> None:
    early, late = run("a", started=STARTED - timedelta(hours=1)), run("b")
    late = Results(late.header, late.cells, Footer(counts={}, finished=FINISHED + timedelta(hours=1)))
    for order in ((early, late), (late, early)):
        one = together(order)
        assert (one.header.started, one.footer.finished) == (
            STARTED - timedelta(hours=1),
            FINISHED + timedelta(hours=1),
        )


def test_each_command_is_named_once() -> None:
    runs = [run("a", command="x"), run("b", command="y"), run("c", command="x"), run("d", command=None)]
    assert together(runs).header.command == "x ; y"
    assert together([run("a", command=None), run("b", command=None)]).header.command is None


def test_upgrade_cells_are_joined_and_counted() -> None:
    one = together([upgrades("a", 2, 3), upgrades("b", 2)])
    assert [(cell.case, cell.cut) for cell in one.upgrades] == [("a", 2), ("a", 3), ("b", 2)]
    assert one.header.pairs == ((OLD, NEW),)
    assert one.header.cuts == {"a": (2, 3), "b": (2,)}
    assert (one.cells, one.footer.counts) == ((), {"conforms": 3})
    assert [*one.all_cells()] == [*one.upgrades]


def test_an_upgrade_cell_twice_is_refused() -> None:
    with pytest.raises(UnusableResults, match=r"two results of a on spark-3\.5\.9 → spark-4\.3\.0 before step 2"):
        together([upgrades("a", 2), upgrades("a", 2)])


def test_a_target_that_only_one_run_started_is_described_by_it() -> None:
    for order in ((run("a"), run("b", target=MET)), (run("a", target=MET), run("b"))):
        assert together(order).header.targets == (MET,)
    assert together([run("a", target=MET), run("b", target=MET)]).header.targets == (MET,)


def test_a_target_that_is_two_engines_is_refused() -> None:
    other = MET.model_copy(update={"java": "21"})
    with pytest.raises(UnusableResults, match=f"{OLD} is not the same engine in one and two"):
        together([run("a", target=MET, paths=("one",)), run("b", target=other, paths=("two",))])


def test_files_of_different_suites_are_named_by_path_or_number() -> None:
    with pytest.raises(UnusableResults, match=r"different suites: file 1 has 1{12}, x, y has 2{12}, file 3 has 3{12};"):
        together([run("a", suite="1" * 64), run("b", suite="2" * 64, paths=("x", "y")), run("c", suite="3" * 64)])


@pytest.mark.parametrize("paths", [(), ("one",)])
def test_results_without_a_cell_say_nothing(paths: tuple[str, ...]) -> None:
    with pytest.raises(UnusableResults, match="there is no cell in these results") as caught:
        together([run(), run(paths=paths)])
    assert caught.value.path == (Path("one") if paths else None)
    with pytest.raises(UnusableResults, match="there is no cell in these results"):
        together([run()])


def test_cells_that_no_run_has_are_missing() -> None:
    new = run("b", target=TargetRecord(name=NEW, spark="4.3.0"))
    with pytest.raises(UnusableResults, match="without a result") as caught:
        together([run("a"), new])
    assert f"2 cells (a on {NEW}, b on {OLD})" in caught.value.problem
    assert caught.value.path is None


def test_the_first_file_of_a_duplicate_is_named() -> None:
    with pytest.raises(UnusableResults, match="two results of") as caught:
        together([run("a", paths=("one",)), run("a", paths=("two", "three"))])
    assert (caught.value.path, caught.value.problem) == (Path("two"), f"there are two results of a on {OLD}")


def test_a_secret_in_the_command_of_a_file_is_not_kept(tmp_path: Path) -> None:
    path = written(tmp_path / "r")
    path.write_text(path.read_text().replace('"conformance run"', '"conformance run --conf a.password=hush"'))
    assert "hush" not in (Results.read(path).header.command or "")
