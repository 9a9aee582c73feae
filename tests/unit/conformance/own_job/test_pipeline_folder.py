"""A folder with `spark-pipeline.yml`: which files and settings it names, what is wrong with it, and the queries of its files."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from conformance.cli.job_options import SampleOptions
from conformance.core.errors import WrongUsage
from conformance.own_job.named_job import JobQueries, NamedJob, kind_of
from conformance.own_job.pipeline_folder import read_folder
from conformance.runner.resources import EngineUse
from tests.support.miniature.two_versions import OLD

SPEC = """\
name: shop
storage: file:///storage
catalog: lake
configuration: {spark.sql.ansi.enabled: "false"}
libraries:
  - glob: {include: flows/**}
  - glob: {include: more.sql}
"""
FLOW = "CREATE STREAMING TABLE {0}_big AS SELECT * FROM STREAM {0};"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "flows" / "__pycache__").mkdir(parents=True)
    for name, text in {
        "spark-pipeline.yml": SPEC,
        "more.sql": FLOW.format("orders"),
        "flows/clicks.sql": FLOW.format("clicks"),
        "flows/batch.sql": "CREATE MATERIALIZED VIEW totals AS SELECT count(*) FROM orders_big;",
        "flows/__pycache__/clicks.pyc": "",
        "other.txt": "",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("named", ["", "spark-pipeline.yml"])
def test_it_names_the_files_and_settings_of_the_pipeline(folder: Path, named: str) -> None:
    files, conf, database = read_folder(str(folder / named))
    assert [file.relative_to(folder).as_posix() for file in files] == [
        "flows/batch.sql",
        "flows/clicks.sql",
        "more.sql",
    ]
    assert (conf, database) == ({"spark.sql.ansi.enabled": "false"}, "default")
    assert kind_of(str(folder / named)) == "a pipeline"


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        (SPEC, None, " has no file spark-pipeline.yml: name the folder of a pipeline, or a file of the job"),
        (SPEC, "name: [", "spark-pipeline.yml:1:8: invalid YAML"),
        (SPEC, "name: a\nname: b\n", "duplicate key"),
        (
            SPEC,
            "flows",
            "is not a pipeline that Spark's runner takes: write libraries: [{glob: {include: transformations/**}}]",
        ),
        ("include: more.sql", "includes: more.sql", "is not a pipeline that Spark's runner takes"),
        ('"false"', "false", "and settings of configuration in quotes"),
        (
            "more.sql",
            "gone/**",
            "spark-pipeline.yml: gone/** names no file as Spark's runner reads it: write a file below",
        ),
        ("more.sql", "flows/**/*.sql", "flows/**/*.sql names no file as Spark's runner reads it"),
        ("more.sql", "other.txt", "other.txt, neither .py nor .sql: move it"),
    ],
)
def test_what_is_wrong_with_it_is_said_with_its_file(folder: Path, was: str, now: str | None, says: str) -> None:
    spec = folder / "spark-pipeline.yml"
    spec.write_text(SPEC.replace(was, now)) if now is not None else spec.unlink()
    with pytest.raises(WrongUsage) as wrong:
        read_folder(str(folder))
    assert says in str(wrong.value)
    assert str(folder) in str(wrong.value)


def queries(folder: Path, *samples: str) -> tuple[list[tuple[str, list[str]]], JobQueries]:
    """The title of each query, with its streams; and what was asked for."""
    for name in samples:
        (folder / f"{name}.csv").write_text("t,n\n2026-03-01 12:00:00,1\n")
    files = SampleOptions([f"{name}={folder}/{name}.csv" for name in samples]).files(EngineUse(), allow_silent=True)
    with ExitStack() as stack:
        asked = NamedJob(str(folder), "a pipeline").queries(OLD, EngineUse(), files, stack, lambda _: print)
        assert asked.where.kept is not None
    own = [(query.title.rpartition("/")[2], [sample.stream for sample in read]) for query, read in asked.queries]
    return own, asked


def test_each_flow_of_its_files_is_a_query_with_its_own_samples(folder: Path) -> None:
    (folder / "flows" / "shared.py").write_text("def known(frame):\n    return frame.where('n IS NOT NULL')\n")
    found, asked = queries(folder, "orders", "clicks")
    assert found == [("clicks.sql, flow clicks_big", ["clicks"]), ("more.sql, flow orders_big", ["orders"])]
    not_tried = "no stream fills a table there, so it is not tried"
    assert asked.notes == tuple(f"{folder}/flows/{name}: {not_tried}" for name in ("batch.sql", "shared.py"))
    assert asked.where.runtime.conf == {"spark.sql.ansi.enabled": "false"}
    assert asked.where.runtime.own_code is not None
    assert asked.where.runtime.own_code.folders == ((folder / "flows").resolve(), folder.resolve())


def test_samples_that_no_file_reads_or_that_a_file_lacks_are_named(folder: Path) -> None:
    with pytest.raises(WrongUsage, match="unknown source 'order'"):
        queries(folder, "orders", "clicks", "order")
    with pytest.raises(WrongUsage, match="orders"):
        queries(folder, "clicks")
    with pytest.raises(WrongUsage) as lacks:
        queries(folder)
    assert [line.strip() for line in str(lacks.value).splitlines() if "--sample" in line] == [
        "--sample clicks=clicks.jsonl",
        "--sample orders=orders.jsonl",
    ]


def test_a_pipeline_without_flows_has_nothing_to_try(folder: Path) -> None:
    (folder / "spark-pipeline.yml").write_text(
        SPEC.replace("flows/**", "flows/batch.sql").replace("more.sql", "flows/batch.sql")
    )
    with pytest.raises(
        WrongUsage, match="no stream fills a table of this pipeline, so there is nothing to try: add a flow"
    ):
        queries(folder)


def test_all_samples_that_the_flows_of_a_file_lack_are_named_at_once(folder: Path) -> None:
    (folder / "more.sql").write_text(FLOW.format("orders") + FLOW.format("sales"))
    with pytest.raises(WrongUsage) as lacks:
        queries(folder, "clicks")
    assert [line.strip() for line in str(lacks.value).splitlines() if "--sample" in line] == [
        "--sample orders=orders.jsonl",
        "--sample sales=sales.jsonl",
    ]
