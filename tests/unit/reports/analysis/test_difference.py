"""Two results files beside each other, and the commands that show and combine them."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.core.observation import Column
from reports.analysis.equivalence import NothingInCommon, compare
from reports.results.reading import Results
from reports.results.writing import ResultsWriter
from tests.support.cells import handoff_cell
from tests.support.runs import cell, header

CASES = ("late/a", "late/b")
SPARK = "spark-3.5.9"


def write(path, cells, cases=CASES, targets=(SPARK,), suite="5" * 64):
    with ResultsWriter(path, header(cases, targets, suite)) as writer:
        for one in cells:
            writer.write(one)
    return path


def results(tmp_path, name, *cells, **more):
    return Results.read(write(tmp_path / name, cells, **more))


@pytest.fixture
def run():
    def run(*arguments):
        done = CliRunner().invoke(app, [str(argument) for argument in arguments])
        return done.exit_code, done.output

    return run


def test_runs_that_saw_the_same(tmp_path):
    cells = [cell(case, SPARK) for case in CASES]
    found = compare(results(tmp_path, "a", *cells), results(tmp_path, "b", *cells))
    assert (found.compared, found.different, found.exit_code) == (2, (), 0)


def test_the_first_place_where_they_part(tmp_path):
    a = results(tmp_path, "a", cell("late/a", SPARK), cell("late/b", SPARK))
    b = results(tmp_path, "b", cell("late/a", SPARK), cell("late/b", SPARK, "violates"))
    (different,) = compare(a, b).different
    assert different.case == "late/b"
    assert (different.divergence.step, different.divergence.batch, different.divergence.what) == (1, 0, "rows")
    assert "only here: " in different.divergence.values[0]
    assert different.divergence.values[0] != different.divergence.values[1]


def test_an_answer_against_none(tmp_path):
    a = results(tmp_path, "a", cell("late/a", SPARK), cases=("late/a",))
    b = results(tmp_path, "b", cell("late/a", SPARK, "broken"), cases=("late/a",))
    (different,) = compare(a, b).different
    assert str(different.divergence) == "status conforms | broken"


def test_other_output_columns_are_a_difference_though_rows_are_the_same(tmp_path):
    one = cell("late/a", SPARK)
    columns = (Column(name="N", type="int"), *one.observation.columns[1:])
    other = one.model_copy(update={"observation": one.observation.model_copy(update={"columns": columns})})
    files = [results(tmp_path, name, each, cases=("late/a",)) for name, each in (("a", one), ("b", other), ("c", one))]
    (different,) = compare(*files[:2]).different
    assert (different.divergence.what, different.divergence.b[:5]) == ("columns", "N int")
    assert compare(files[0], files[2]).different == ()


@pytest.mark.parametrize("other", ["broken", "changed"])
def test_fewer_cells_compared_than_both_runs_have_is_no_equality(tmp_path, other):
    cells = [cell("late/a", SPARK), cell("late/b", SPARK, "broken" if other == "broken" else "conforms")]
    if other == "changed":
        changed = [cells[0], cells[1].model_copy(update={"case_digest": "1" * 64})]
    found = compare(results(tmp_path, "a", *cells), results(tmp_path, "b", *(changed if other == "changed" else cells)))
    assert (found.compared, found.different, found.exit_code) == (1, (), 3)
    assert (found.changed, found.silent) == ((("late/b",), 0) if other == "changed" else ((), 1))


@pytest.mark.parametrize("status", ["broken", "not-applicable", "changed"])
def test_nothing_compared_is_no_equality(tmp_path, run, status):
    cells = [cell("late/a", SPARK, "conforms" if status == "changed" else status) for _ in "ab"]
    if status == "changed":
        cells[1] = cells[1].model_copy(update={"case_digest": "1" * 64})
    for name, one in zip("ab", cells, strict=True):
        write(tmp_path / name, [one], cases=("late/a",))
    code, said = run("maintain", "diff", tmp_path / "a", tmp_path / "b")
    assert (code, said.splitlines()[0]) == (3, "nothing compared: no cell of the same case has an answer")


def test_checkpoints_are_counted_as_not_compared(tmp_path):
    a = results(tmp_path, "a", cell("late/a", SPARK), cases=("late/a",))
    assert compare(replace(a, upgrades=(handoff_cell("late/a"),)), a).checkpoints == 1


def test_columns_of_other_names_are_paired_by_version(tmp_path):
    ours = cell("late/a", SPARK).model_copy(update={"target": "installed-3.5.9"})
    path = tmp_path / "b"
    named = header(("late/a",), (SPARK,))
    target = named.targets[0].model_copy(update={"name": "installed-3.5.9"})
    with ResultsWriter(path, named.model_copy(update={"targets": (target,)})) as writer:
        writer.write(ours)
    found = compare(results(tmp_path, "a", cell("late/a", SPARK), cases=("late/a",)), Results.read(path))
    assert [(one.name, other.name) for one, other in found.pairs] == [(SPARK, "installed-3.5.9")]
    assert found.compared == 1


def test_what_only_one_has_is_counted(tmp_path, run):
    write(tmp_path / "a", [cell(case, SPARK) for case in CASES])
    write(tmp_path / "b", [cell("late/a", SPARK)], cases=("late/a",))
    code, said = run("maintain", "diff", tmp_path / "a", tmp_path / "b")
    assert code == 0
    assert f"1 cell only in {tmp_path / 'a'}" in said
    assert "1 cells compared" not in said
    assert "1 cell compared: 1 the same, 0 different" in said


def test_nothing_in_common(tmp_path):
    a = results(tmp_path, "a", cell("late/a", SPARK), cases=("late/a",))
    b = results(tmp_path, "b", cell("late/a", "spark-4.0.5"), cases=("late/a",), targets=("spark-4.0.5",))
    with pytest.raises(
        NothingInCommon, match=r"one file has 1 case on spark-3\.5\.9, the other 1 case on spark-4\.0\.5"
    ):
        compare(a, b)


def test_diff_for_a_program(tmp_path, run):
    write(tmp_path / "a", [cell(case, SPARK) for case in CASES])
    write(tmp_path / "b", [cell("late/a", SPARK), cell("late/b", SPARK, "violates")])
    code, said = run("maintain", "diff", tmp_path / "a", tmp_path / "b", "--json")
    assert code == 1
    told = json.loads(said)
    assert told["compared"] == 2
    assert [(one["case"], one["statuses"], one["step"]) for one in told["different"]] == [
        ("late/b", ["conforms", "violates"], 1)
    ]


def test_combine_makes_one_matrix_and_one_file(tmp_path, run):
    write(tmp_path / "a", [cell("late/a", SPARK)], cases=("late/a",))
    write(tmp_path / "b", [cell("late/a", "spark-4.0.5")], cases=("late/a",), targets=("spark-4.0.5",))
    code, said = run("maintain", "combine", tmp_path / "a", tmp_path / "b", "--output", tmp_path / "all")
    assert code == 0, said
    assert "1 case × 2 versions: 2 conform; 0 violate" in said
    assert [target.name for target in Results.read(tmp_path / "all").header.targets] == [SPARK, "spark-4.0.5"]


def test_combine_exits_as_a_run_does(tmp_path, run):
    write(tmp_path / "a", [cell("late/a", SPARK, "violates")], cases=("late/a",))
    assert run("maintain", "combine", tmp_path / "a")[0] == 1
