"""Columns of others: what may be published, what a comparison with Apache's release says, and that no total counts them."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.core.observation import StepSeen
from conformance.suite import discovery
from conformance.suite.discovery import Suite
from reports.analysis.columns import (
    UnusableColumn,
    beside_apache,
    problems_of_submission,
    published_columns,
    read_column,
)
from reports.analysis.matrix import summary
from reports.analysis.report import Report
from reports.exports.ci_reports import badge
from reports.html.addresses import InAFolder
from reports.html.pages import renderings
from reports.results.published import published_results
from reports.results.reading import Results
from reports.results.records import Cell, TargetRecord
from tests.support.observations import batch, failed, observed, step
from tests.support.runs import case_named, written

SUITE = "5" * 64
DIGESTS = {id: case_named(id).digest for id in ("late/a", "late/b")}
TOLD = {
    "title": "Acme Spark 1",
    "by": "Acme",
    "build": "image sha256:" + "a" * 64,
    "suite": "b" * 40,
    "run": "https://ci.acme.example/runs/7",
}
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A column with two cases on a Spark 4.3.0 of Acme's."""

    def make(
        told: Mapping[str, object] = TOLD,
        *,
        name: str = "acme",
        suffix: str = ".jsonl.xz",
        digest: str | None = "sha256:" + "a" * 64,
        label: str = "acme 1",
        **more: object,
    ) -> Path:
        run = Results.read(written(tmp_path / "run", targets=("spark-4.3.0",), **more))  # type: ignore[arg-type]
        target = TargetRecord(
            name=label, spark="4.3.0", java="17", os="Linux", runtime="container", image_digest=digest
        )
        ours = replace(
            run,
            header=run.header.model_copy(update={"targets": (target,)}),
            cells=tuple(one.model_copy(update={"target": label}) for one in run.cells),
        )
        ours.write(tmp_path / f"{name}{suffix}")
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(dict(told)))
        return tmp_path / f"{name}.yaml"

    return make


def bodies(report: Report) -> dict[str, str]:
    """Each page by its key."""
    return {page.key: page.body for page in (render() for render in renderings(report, InAFolder()))}


def why(path: Path) -> tuple[str, ...]:
    with pytest.raises(UnusableColumn) as found:
        read_column(path)
    assert found.value.exit_code == 2
    assert all(line.startswith(str(path.parent)) for line in str(found.value).splitlines())
    return found.value.reasons


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.xz"])
def test_a_complete_column_may_be_published(make: Make, suffix: str) -> None:
    column = read_column(make(suffix=suffix))
    assert (column.name, column.provenance.by, column.target.spark) == ("acme", "Acme", "4.3.0")
    assert list(problems_of_submission(column, SUITE, DIGESTS)) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"by": None}, "by: Input should be a valid string"),
        ({"suite": "main"}, "suite: String should match pattern"),
        ({"run": "javascript:alert(1)"}, "run: String should match pattern"),
        ({"title": "a\n::error::b"}, "title: Value error, must be text on one line"),
        ({"vendor": "x"}, "vendor: Extra inputs are not permitted"),
        ({"covers": "some"}, "covers: Input should be 'all' or 'part'"),
        ({"covers": "part"}, "no note says why"),
        ({"run": None}, "neither run: names the CI run nor note:"),
        ({"build": "ours"}, "the results are of the image sha256:aaaa"),
    ],
)
def test_what_must_be_told(make: Make, change: Mapping[str, object], said: str) -> None:
    (problem,) = why(make({**TOLD, **change}))
    assert said in problem


def test_results_must_be_of_one_engine_that_is_not_apaches(make: Make, tmp_path: Path) -> None:
    assert why(make(label="spark-4.3.0")) == (
        "the column has the name of Apache's release, spark-4.3.0; run with --label",
    )
    path = make()
    written(tmp_path / "acme.jsonl.xz")
    assert why(path) == ("the results have 2 columns; a file has one",)
    (tmp_path / "acme.jsonl.xz").write_bytes(b"\xfd7zXZ\x00")
    assert "cannot be decompressed" in why(path)[0]
    (tmp_path / "acme.jsonl.xz").unlink()
    assert why(path) == ("there must be one file acme.jsonl.xz or acme.jsonl",)
    path.unlink()
    assert why(path) == ("cannot read the file: there is no such file",)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[", "line 1: "),
        (b"[" * 3000, "line 1: nested more than 60 levels deep"),
        (b"title: a\ntitle: b\n", "line 2: duplicate key 'title', first used in line 1"),
        (b"title: \xff\n", "line 1: byte 0xff is not UTF-8"),
        (b"!!python/object/apply:os.system [x]", "line 1: tag !!python/object/apply:os.system is not allowed"),
        (b"- title", "the file: Input should be a valid dictionary"),
        (b"title: ''", "title: Value should have at least 1 item"),
        (b"title: '  '", "title: Value should have at least 1 item"),
        (b"title: " + b"x" * 501, "title: Value should have at most 500 items"),
        (b"by: '" + "\u202e".encode() + b"x'", "by: Value error, must be text on one line"),
    ],
)
def test_a_hostile_file_is_named(make: Make, content: bytes, said: str) -> None:
    path = make()
    path.write_bytes(content)
    assert any(problem.startswith(said) for problem in why(path)), why(path)


def test_a_file_without_end_is_not_read(make: Make) -> None:
    path = make()
    with path.open("r+b") as file:
        file.truncate(5 * 1024**3)
    assert why(path) == ("line 1: the file has more than 2000000 bytes, the limit",)
    path.unlink()
    os.mkfifo(path)
    assert why(path) == ("cannot read the file: it is not a regular file",)


def test_what_keeps_a_column_from_being_published(make: Make) -> None:
    column = read_column(make(statuses={("late/a", "spark-4.3.0"): "broken"}))
    (problem,) = problems_of_submission(column, SUITE, DIGESTS)
    assert (
        problem
        == "1 case without a reliable answer: late/a; the engine did not answer within 60 s; mend that, then run again"
    )
    column = read_column(make())
    (problem,) = problems_of_submission(column, SUITE, {**DIGESTS, "late/c": "1" * 64})
    assert problem.startswith("1 case of the suite did not run: late/c; run all")
    (problem,) = problems_of_submission(column, "6" * 64, {**DIGESTS, "late/a": "1" * 64})
    assert "of another suite than this one (1 case of it changed or went: late/a)" in problem


def test_a_part_is_a_part(make: Make) -> None:
    """Its cases must be those of this suite; that others did not run is told by a note."""
    more = {**DIGESTS, "late/c": "1" * 64}
    column = read_column(make({**TOLD, "covers": "part", "note": "Only late rows."}))
    assert list(problems_of_submission(column, "6" * 64, more)) == []
    (problem,) = problems_of_submission(column, "6" * 64, {**more, "late/a": "2" * 64})
    assert "1 case of it changed or went: late/a" in problem
    assert beside_apache(column, column.results, more).of == 3


@pytest.fixture
def apache(tmp_path: Path) -> Results:
    return Results.read(written(tmp_path / "apache"))


def test_it_is_compared_with_apaches_release_of_its_version(make: Make, apache: Results) -> None:
    same = beside_apache(read_column(make()), apache, DIGESTS)
    assert same.release is not None
    assert (same.release.spark, same.compared, same.different, same.changed) == ("4.3.0", 2, (), ())
    other = beside_apache(read_column(make(statuses={("late/b", "spark-4.3.0"): "violates"})), apache, DIGESTS)
    assert (other.compared, [one.case for one in other.different]) == (2, ["late/b"])


def test_cases_without_an_answer_are_not_compared(make: Make, apache: Results) -> None:
    found = beside_apache(read_column(make(statuses={("late/a", "spark-4.3.0"): "not-applicable"})), apache, DIGESTS)
    assert (found.compared, found.different) == (1, ())


def test_cases_that_changed_since_are_told(make: Make, apache: Results) -> None:
    found = beside_apache(read_column(make()), apache, {**DIGESTS, "late/a": "1" * 64})
    assert (found.changed, found.newer) == (("late/a",), ())


def test_cases_that_the_suite_got_since_are_told(make: Make, apache: Results) -> None:
    more = {**DIGESTS, "late/c": "1" * 64}
    found = beside_apache(read_column(make()), apache, more)
    assert (found.newer, found.compared, found.of) == (("late/c",), 2, 3)
    part = read_column(make({**TOLD, "covers": "part", "note": "Only late rows."}))
    assert beside_apache(part, apache, more).newer == ()
    report = Report.of(apache, Suite((case_named("late/c"),)), columns=[found.column])
    about = bodies(report)["about"]
    assert "1 not run: newer than this run" in about


def test_a_version_without_results_is_compared_with_nothing(make: Make, tmp_path: Path) -> None:
    older = Results.read(written(tmp_path / "older", targets=("spark-3.5.9",)))
    found = beside_apache(read_column(make()), older, DIGESTS)
    assert (found.release, found.compared, found.different) == (None, 0, ())


def answering(results: Results, *answers: tuple[StepSeen, ...]) -> Results:
    """The results with these answers to their cases, in order, none of them as the case says."""
    cells = []
    for cell, steps in zip(results.cells, answers, strict=True):
        seen = observed(*steps)
        answer = {"status": "violates", "observation": seen, "behaviour": seen.behaviour_digest}
        cells.append(Cell.model_validate({**cell.model_dump(), **answer}))
    return replace(results, cells=tuple(cells))


def test_what_an_engine_refuses_is_told_apart_from_what_it_answers_otherwise(make: Make, tmp_path: Path) -> None:
    """It refuses a query that fails before a micro-batch ran. A refusal of a later query of the case is another answer."""
    refused = failed(1, "UnsupportedOperationException", stage="analysis", message="with\n watermark")
    ran, fails, later = step(1, batch(0)), failed(1, "Gone"), failed(2, "Gone", stage="start")
    cases = tuple(f"late/{name}" for name in "abcde")
    told = (ran,), (failed(1, "AnalysisException", stage="start", message="no"),), (ran,), (ran,), (ran,)
    apache = answering(Results.read(written(tmp_path / "apache", cases, ("spark-4.3.0",))), *told)
    acme = read_column(make(cases=cases))
    acme = replace(acme, results=answering(acme.results, (refused,), (refused,), (fails,), (ran, later), (ran,)))
    found = beside_apache(acme, apache, DIGESTS)
    reasons = {why: [cell.case for cell in cells] for why, cells in found.refused.items()}
    assert reasons == {"with watermark": ["late/a", "late/b"]}
    assert [cell.case for cell in found.otherwise] == ["late/c", "late/d"]
    outcome = "4 different: refuses 2 cases, 1 of which Apache's refuses too, with another error; answers 2 otherwise"
    assert found.outcome == outcome
    report = Report.of(apache, Suite(()), columns=[acme])
    about = bodies(report)["about"]
    assert "refuses 2, <span class=quiet>“with watermark”</span>: <a href=" in about
    assert outcome in unescape(about)


def test_the_documentation_says_what_the_column_of_sail_holds() -> None:
    (column,) = (one for one in published_columns() if one.name.startswith("sail"))
    ran = {cell.case: cell.case_digest for cell in column.results.cells}
    found = beside_apache(column, published_results((column.target.spark,)), ran)
    page = " ".join((Path(__file__).parents[4] / "docs" / "spark-developers.md").read_text(encoding="utf-8").split())
    assert f"{found.compared} cases compared with Apache's {column.target.spark}, {found.outcome} ```" in page
    refused = {why: len(cells) for why, cells in found.refused.items()}
    assert f"`withWatermark` in {refused['with watermark']} cases" in page
    assert f"refuses {refused['missing argument: Python UDF output type']} because of `foreachBatch`" in page
    conform = [
        cell.observation.error for cell in column.results.cells if cell.status == "conforms" and cell.observation
    ]
    assert f"The {len(conform)} cases that conform are errors of PySpark's client" in page
    assert f"The {len(conform)} cases that conform are refused by PySpark's client" in (column.provenance.note or "")
    # The client wraps each error of a server in one of these.
    assert not any("SparkConnectException" in error.classes for error in conform if error is not None)
    assert all("SparkConnectException" in cell.b.observation.error.classes for cell in found.different)  # type: ignore[union-attr]


def test_no_total_counts_it(make: Make, apache: Results) -> None:
    column = read_column(make(statuses={("late/b", "spark-4.3.0"): "violates"}))
    without, beside = Report.of(apache, Suite(())), Report.of(apache, Suite(()), columns=[column])
    assert summary(beside.matrix) == summary(without.matrix)
    assert badge(beside.results) == badge(without.results)
    assert beside.versions == without.versions
    plain, shown = bodies(without), bodies(beside)
    assert [key for key in shown if shown[key] != plain[key]] == ["about"]
    assert "Acme Spark 1" in shown["about"]
    assert "2 compared with 4.3.0, <details><summary>1 different</summary>" in shown["about"]
    assert 'href="https://ci.acme.example/runs/7"' in shown["about"]


def test_the_command_checks_a_submission(make: Make) -> None:
    """Against the suite as it is: these two cases are not of it."""
    done = CliRunner().invoke(app, ["maintain", "columns", str(make())])
    assert done.exit_code == 2
    assert "acme.yaml: the results are of another suite than this one (2 cases of it changed or went" in done.output
    assert "of the suite did not run" in done.output


def test_the_published_columns_are_ones_that_may_be_published() -> None:
    """Cases may change or be added after a column was made; they are not compared then, and nothing else may be wrong."""
    cases = {case.id: case.digest for case in discovery.load().cases}
    columns = published_columns()
    assert {column.name for column in columns} >= {"image-3.5.9", "connect-4.3.0"}
    for column in columns:
        ran = {cell.case: cell.case_digest for cell in column.results.cells}
        assert list(problems_of_submission(column, column.results.header.suite, ran)) == []
        found = beside_apache(column, published_results((column.target.spark,)), cases)
        assert found.release is not None
        assert found.otherwise == ()
        assert bool(found.refused) == column.name.startswith("sail")
    done = CliRunner().invoke(app, ["maintain", "columns"], env={"COLUMNS": "60"})
    assert max(map(len, done.output.splitlines())) <= 60
    done = CliRunner().invoke(app, ["maintain", "columns"])
    assert done.exit_code == 0
    assert "compared with Apache's 3.5.9, none different" in done.output
    done = CliRunner().invoke(app, ["maintain", "columns", "--verbose"])
    assert "of the suite newer than this run" in done.output
