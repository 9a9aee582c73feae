"""A notebook as a job: its cells, what of it is skipped, and what is wrong with it, by file, cell and line."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.core.errors import WrongUsage
from conformance.own_job.job_case import write_job
from conformance.own_job.named_job import kind_of
from conformance.own_job.notebook import Notebook, is_notebook
from conformance.own_job.program import NamedProgram, queries
from conformance.own_job.sample import read_sample
from harness.engine.protocol import ProgramSeen, QuerySeen, SourceSeen
from harness.runtimes.own_code import OwnCode

FIRST = "# Databricks notebook source\n"
NEXT = "\n# COMMAND ----------\n\n"


def jupyter(*cells: str | tuple[str, str], **metadata: object) -> str:
    """A notebook of Jupyter; a cell is the text of code, or a kind and a text."""
    pairs = [("code", cell) if isinstance(cell, str) else cell for cell in cells]
    of_code = {"outputs": [], "execution_count": None}
    written = [
        {"cell_type": kind, "metadata": {}, "source": text.splitlines(True), **(of_code if kind == "code" else {})}
        for kind, text in pairs
    ]
    return json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": metadata, "cells": written})


def read(folder: Path, text: str, name: str = "job.py") -> Notebook:
    (folder / name).write_text(text)
    return Notebook.read(folder / name, name)


def test_the_cells_of_an_exported_notebook_keep_the_lines_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "names.sql").write_text("-- Databricks notebook source\nSELECT 1;\n\nSELECT ';' AS a\n")
    (tmp_path / "child.py").write_text("x = 1")
    text = NEXT.join(
        [
            FIRST + "# MAGIC %md ## Title\n# MAGIC more",
            "# DBTITLE 1,Packages\n# MAGIC %pip install delta-spark\ndbutils.library.restartPython()",
            "# MAGIC %run ./names",
            "# DBTITLE 1,In SQL\n# MAGIC %sql\n# MAGIC SET a = 1;\n# MAGIC -- of b\n# MAGIC SET b = 2",
            "# MAGIC %sh ls /\n# MAGIC %sh ls",
            'value = dbutils.notebook.run("./child", 60)',
        ]
    )
    notebook = read(tmp_path, text)
    assert notebook.cells["job.py"] == (
        "# job.py, cell 2, line 6, Python\n# DBTITLE 1,Packages\npass\ndbutils.library.restartPython()",
        "# names.sql, cell 1, line 2, SQL\nSELECT 1",
        "# names.sql, cell 1, line 4, SQL\nSELECT ';' AS a",
        "# job.py, cell 4, line 16, SQL\nSET a = 1",
        "# job.py, cell 4, line 18, SQL\nSET b = 2",
        '# job.py, cell 6, line 25, Python\nvalue = dbutils.notebook.run("./child", 60)',
    )
    assert notebook.cells["./child"] == ("# child.py, cell 1, line 1, Python\nx = 1",)
    assert notebook.notes == (
        "job.py, cell 2, line 7: %pip is skipped: give its packages with --requirements FILE",
        "job.py, cell 5, line 21: %sh is skipped",
    )


def test_the_cells_of_a_notebook_of_jupyter_have_lines_of_their_own(tmp_path: Path) -> None:
    text = jupyter(
        ("markdown", "# Title"),
        "%matplotlib inline\n!pip list\nx = (7\n  % 4)\nx?",
        "%%sql\nSELECT 1",
        "%%pyspark\ny = 1",
        "%%configure -f\n{}",
        "z = (7\n  % 4)",
        kernelspec={"language": "python", "name": "k"},
    )
    notebook = read(tmp_path, text, "job.ipynb")
    assert notebook.cells == {
        "job.ipynb": (
            "# job.ipynb, cell 2, line 1, Python\npass\npass\nx = (7\n  % 4)\npass",
            "# job.ipynb, cell 3, line 2, SQL\nSELECT 1",
            "# job.ipynb, cell 4, line 2, Python\ny = 1",
            "# job.ipynb, cell 6, line 1, Python\nz = (7\n  % 4)",
        )
    }
    assert notebook.notes == (
        "job.ipynb, cell 2, line 1: %matplotlib is skipped",
        "job.ipynb, cell 2, line 2: !pip is skipped: give its packages with --requirements FILE",
        "job.ipynb, cell 2, line 5: ? is skipped",
        "job.ipynb, cell 5, line 1: %configure is skipped: give the settings of Spark with --conf KEY=VALUE",
    )


def test_notebooks_that_others_run_are_read_and_comments_run_none(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text('dbutils.notebook.run(path="./last", timeout_seconds=0)')
    (tmp_path / "last.py").write_text("x = 1")
    (tmp_path / "with space.py").write_text("y = 1")
    text = FIRST + NEXT.join(
        ["dbutils.notebook.run('./child', 0)  # dbutils.notebook.run('./gone', 0)", '# MAGIC %run "./with space"']
    )
    notebook = read(tmp_path, text)
    assert [*notebook.cells] == ["job.py", "./child", "./last"]
    assert notebook.cells["job.py"][1] == "# with space.py, cell 1, line 1, Python\ny = 1"


def test_what_run_passes_on_goes_to_widgets(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(FIRST + "x = 1")
    notebook = read(tmp_path, FIRST + "x = 0" + NEXT + '# MAGIC %run ./other $a="x y" $b=2  # as a test')
    assert notebook.cells["job.py"][1:] == (
        "# job.py, cell 2, line 5, Python\ndbutils.widgets.give({'a': 'x y', 'b': '2'})",
        "# other.py, cell 1, line 2, Python\nx = 1",
    )


def test_sql_makes_and_removes_widgets_as_databricks_lets_it(tmp_path: Path) -> None:
    text = (
        "-- Databricks notebook source\nCREATE WIDGET TEXT day DEFAULT 'mon';\n"
        'create widget dropdown slide default "10 min" choices SELECT * FROM (VALUES ("10 min"));\nREMOVE WIDGET day;\n'
        "SELECT * FROM widget"
    )
    assert read(tmp_path, text, "job.sql").cells["job.sql"] == (
        "# job.sql, cell 1, line 2, Python\ndbutils.widgets.text('day', 'mon')",
        "# job.sql, cell 1, line 3, Python\ndbutils.widgets.text('slide', '10 min')",
        "# job.sql, cell 1, line 4, Python\ndbutils.widgets.remove('day')",
        "# job.sql, cell 1, line 5, SQL\nSELECT * FROM widget",
    )


def test_what_follows_time_or_the_language_in_its_line_runs(tmp_path: Path) -> None:
    text = jupyter(
        "%time a = 1\nb = 2", "c = 3\nif c:\n  %time d = 4", "%python e = 5", "%%time\nf = 6", "%timeit -n 2 g()"
    )
    notebook = read(tmp_path, text, "job.ipynb")
    assert [cell.partition("\n")[2] for cell in notebook.cells["job.ipynb"]] == [
        "a = 1\nb = 2",
        "c = 3\nif c:\n  d = 4",
        "e = 5",
        "f = 6",
    ]
    assert notebook.notes == ()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "job.ipynb",
            '{"a":\nno}',
            "job.ipynb is not a Jupyter notebook: Expecting value: line 2 column 1 (char 6): save or export it again",
        ),
        ("job.ipynb", "[]", "job.ipynb is not a Jupyter notebook"),
        ("job.ipynb", '{"nbformat": 4, "metadata": [], "cells": [1]}', "job.ipynb is not a Jupyter notebook"),
        (
            "job.ipynb",
            jupyter("x = 1", "val y = 1", language_info={"name": "scala"}),
            "job.ipynb, cell 1, line 1: a cell in Scala is not run: build a jar and name its class with --main",
        ),
        (
            "job.py",
            FIRST + NEXT + "# MAGIC %r\n# MAGIC x <- 1",
            "job.py, cell 2, line 5: a cell in R is not run: write it in Python or SQL",
        ),
        (
            "job.py",
            FIRST + "# MAGIC %run ./absent",
            "job.py, cell 1, line 2: %run ./absent: there is no such notebook beside job.py",
        ),
        (
            "job.py",
            FIRST + "# MAGIC %run ./other {'a': 1}",
            "job.py, cell 1, line 2: what follows %run ./other is not passed on",
        ),
        ("job.py", FIRST + "# MAGIC %run", "job.py, cell 1, line 2: %run names no notebook"),
        (
            "job.ipynb",
            jupyter("x = 1\n%run other.py"),
            "job.ipynb, cell 1, line 2: %run stands beside other code: put it into a cell of its own",
        ),
        ("job.py", FIRST + "# MAGIC %run ./job", "job.py: it runs itself by %run, so it never ends"),
        ("job.py", FIRST + "dbutils.notebook.run('absent', 1)", "notebook.run of absent: there is no such notebook"),
        (
            "job.py",
            FIRST + "# MAGIC %sql\n# MAGIC SELECT 'a",
            "job.py, cell 1: a text or a comment in its SQL has no end",
        ),
        ("job.scala", "// Databricks notebook source", "job.scala is not a notebook in Python or SQL: build a jar"),
        ("job.dbc", "", "job.dbc is not a notebook in Python or SQL: export its source, or as .ipynb"),
    ],
)
def test_what_is_wrong_is_said_with_cell_line_and_remedy(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / "other.py").write_text(FIRST)
    with pytest.raises(WrongUsage) as caught:
        read(tmp_path, text, name)
    assert said in str(caught.value)


def test_a_notebook_is_known_by_its_name_or_its_first_line(tmp_path: Path) -> None:
    (tmp_path / "of_sql.sql").write_text("-- Databricks notebook source\nSELECT 1")
    (tmp_path / "plain.sql").write_text("SELECT 1")
    (tmp_path / "plain.py").write_text("x = 1")
    assert [is_notebook(str(tmp_path / name)) for name in ("a.ipynb", "of_sql.sql", "plain.sql", "plain.py")] == [
        True,
        True,
        False,
        False,
    ]
    assert [kind_of(str(tmp_path / name)) for name in ("of_sql.sql", "plain.sql")] == ["a program", "a file of SQL"]


def test_the_case_that_is_kept_has_the_cells_and_the_values(tmp_path: Path) -> None:
    (tmp_path / "job.ipynb").write_text(jupyter("x = 1\ny = 2"))
    code = OwnCode.at([tmp_path.parent])
    program, code = NamedProgram.named(str(tmp_path / "job.ipynb"), (), code, values={"target": "gold"})
    assert code.folders[0] == tmp_path.parent
    (tmp_path / "orders.jsonl").write_text('{"t": "2026-03-01 12:00:00"}\n{"t": "2026-03-01 12:09:00"}\n')
    started = QuerySeen(name=None, output_mode="append", trigger="default", sink="table", at=None, reads=("orders",))
    seen = ProgramSeen(
        kind="program",
        case="job",
        sources=(SourceSeen(name="orders", format="table", ddl=None),),
        queries=(started,),
        error=None,
    )

    class Files:
        names = ("orders",)

        def read(self, stream: str, ddl: str | None = None, *, records: bool = False, texts: bool = False):
            return read_sample(stream, tmp_path / "orders.jsonl")

    ((query, samples),) = queries(program, seen, Files())
    assert query.stem.endswith(".job")
    case = write_job(query, samples, tmp_path / "kept", batches=2)
    called = case.query.wire()[0]["call"]
    path = f"{tmp_path.name}/job.ipynb"
    assert called["cells"] == {path: [f"# {path}, cell 1, line 1, Python\nx = 1\ny = 2"]}
    assert called["set"] == {"target": "gold"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["job.py", "--set", "a=1"],
            "--set: job.py is not a notebook, and asks no dbutils for widgets or secrets: omit it",
        ),
        (["jobs:build", "--set", "a=1"], "only a notebook has widgets and secrets: omit it"),
        (["job.ipynb", "--set", "=1"], "must be NAME=VALUE, such as target=gold.orders"),
    ],
)
def test_a_value_is_for_a_notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.py").write_text("x = 1")
    for command in (["check", *options, "--from", "3.5", "--to", "4.3"], ["explain", *options, "--spark", "4.3"]):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 2
        assert said in " ".join(done.output.replace("│", " ").split())
