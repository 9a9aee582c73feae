"""Running the cells of a notebook with the names of its platform, on a session that only remembers what it is asked."""

import sys
import tempfile
from types import SimpleNamespace

import pytest

from harness.driver.jobs.notebook import NotGiven, Platform


@pytest.fixture(autouse=True)
def temporary_files(tmp_path, monkeypatch):
    """The files of a platform go where an engine's go, into a folder that is removed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


class Session:
    sparkContext = SimpleNamespace()  # noqa: N815

    def __init__(self):
        self.asked = []

    def sql(self, text, args=None):
        self.asked.append((text, args) if args else text)
        return text


def run(folder, *cells, values=None, passes_over=lambda _: False, **others):
    """Run cells, each a text of Python or, with the kind SQL, a pair; return what they put into ``seen``, and the session."""
    session, seen = Session(), []
    texts = [cell if isinstance(cell, tuple) else ("Python", cell) for cell in cells]
    written = [f"# job.ipynb, cell {at}, line 1, {kind}\n{text}" for at, (kind, text) in enumerate(texts, 1)]
    children = {name: [f"# {name}, cell 1, line 1, Python\n{text}"] for name, text in others.items()}
    session.seen = seen
    Platform(session, {"job.ipynb": written, **children}, values or {}, str(folder), passes_over).run()
    return seen, session


def test_the_names_of_a_platform_are_there_and_cells_share_theirs(tmp_path):
    before = sys.modules["__main__"]
    seen, _ = run(
        tmp_path,
        "import sys\nseen, x = spark.seen, 1\nseen += [__name__, sys.modules['__main__'].x, display(spark), displayHTML('<b>')]",
        "dbutils.widgets.dropdown('day', 'mon', ['mon', 'tue'])\nseen += [x, getArgument('day'), dbutils.widgets.getAll()]",
        "import sys\nassert sys.modules['pyspark.dbutils'].DBUtils(spark) is dbutils\n"
        "from IPython.display import clear_output\nclear_output(wait=True)\nget_ipython()\n"
        "import findspark, notebookutils\nfindspark.init()\nfrom notebookutils import mssparkutils, fs\n"
        "assert notebookutils.fs is dbutils.fs is mssparkutils.fs is fs\n"
        "seen += [sc is spark.sparkContext, dbutils.library.restartPython(), dbutils.jobs.taskValues.get('t', 'k', default=4)]",
    )
    assert seen == ["__main__", 1, None, None, 1, "mon", {"day": "mon"}, True, None, 4]
    assert sys.modules["__main__"] is before


def test_a_program_imports_what_a_notebook_has(tmp_path):
    session = Session()
    before = {name for name in sys.modules if name.partition(".")[0] == "databricks"}
    with Platform(session, {}, {"kafka/key": "s"}, str(tmp_path)).importable():
        from databricks.sdk.runtime import dbutils, spark

        assert spark is session
        assert dbutils.secrets.get("kafka", "key") == "s"
        with pytest.raises(NotGiven, match=r"databricks\.sdk\.WorkspaceClient is of the platform"):
            from databricks.sdk import WorkspaceClient  # noqa: F401
        with pytest.raises(NotGiven, match=r"dbutils\.lakehouse is of the platform"):
            from notebookutils import lakehouse  # noqa: F401
    assert {name for name in sys.modules if name.partition(".")[0] == "databricks"} == before


def test_values_are_those_that_are_given_and_sql_has_them_too(tmp_path):
    secrets = "dbutils.secrets.get('kafka', 'key'), mssparkutils.credentials.getSecretWithLS('v', 'k')"
    given = "dbutils.widgets.give({'target': 'x', 'mode': 'reset'})\ndbutils.widgets.text('mode', 'no')\n"
    text = f"{given}spark.seen += [dbutils.widgets.get('target'), {secrets}, dbutils.widgets.get('mode')]"
    seen, session = run(
        tmp_path,
        text,
        ("SQL", "SELECT * FROM ${target}"),
        ("SQL", "SELECT :day, a::date"),
        ("SQL", "SELECT '$day', '$days', a -> '$.day' FROM $target"),
        "spark.seen.append(mssparkutils.env.getWorkspaceName())",
        values={"target": "gold", "kafka/key": "s", "v/k": "t", "day": "mon", "env/getWorkspaceName": "shop"},
    )
    assert seen == ["gold", "s", "t", "reset", "shop"]
    assert session.asked == [
        "SELECT * FROM gold",
        ("SELECT :day, a::date", {"day": "mon"}),
        "SELECT 'mon', '$days', a -> '$.day' FROM gold",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dbutils.widgets.get('target')", "the widget target has no value: give it, --set target=VALUE"),
        (
            "dbutils.secrets.get(scope='kafka', key='key')",
            "the secret kafka/key has no value: give it, --set kafka/key=VALUE",
        ),
        ("dbutils.jobs.taskValues.get('t', 'k')", "the task value t/k has no value"),
        (
            "mssparkutils.env.getUserName()",
            "the name env/getUserName has no value: give it, --set env/getUserName=VALUE",
        ),
        ("dbutils.secrets.listScopes()", "dbutils.secrets.listScopes is of the platform, and a trial has none"),
        ("dbutils.fs.ls('/mnt/in')", "there is no /mnt/in in the trial"),
        (
            "dbutils.notebook.run('./' + 'a')",
            "./a is not read: dbutils.notebook.run is followed where its path is a text",
        ),
    ],
)
def test_what_nobody_gives_is_refused_and_a_notebook_may_catch_it(tmp_path, text, said):
    with pytest.raises(NotGiven, match=said.replace("(", r"\(")) as caught:
        run(tmp_path, "x = 1", f"\n{text}")
    places = [(str(each.path), each.lineno + 1) for each in caught.traceback]
    assert (str(tmp_path / "job.ipynb, cell 2"), 2) in places
    run(tmp_path, f"try:\n    {text}\nexcept Exception:\n    pass")


def test_files_lie_in_a_folder_of_the_trial(tmp_path):
    seen, _ = run(
        tmp_path,
        """
fs, seen = dbutils.fs, spark.seen
seen.append(fs.rm("/mnt/checkpoint", True))
fs.put("dbfs:/mnt/a/x.txt", "hello")
fs.cp("/mnt/a/x.txt", "/mnt/b/y.txt")
fs.mkdirs("/mnt/b/c")
seen += [fs.head("/dbfs/../mnt/b/y.txt"), [file.name for file in fs.ls("/mnt/b")], fs.mount("s3a://x", "/mnt/x"), fs.mounts()]
fs.mv("/mnt/b", "/mnt/d", True)
seen += [fs.ls("/mnt/d/y.txt")[0].size, fs.rm("/mnt/d", True), fs.rm("/mnt/d", True)]
""",
    )
    assert seen == [False, "hello", ["c/", "y.txt"], True, [], 5, True, False]


def test_a_notebook_runs_others_with_names_of_their_own_until_they_exit(tmp_path):
    child = (
        "import sys\nx = 2\nspark.seen.append(dbutils.widgets.get('day'))\ndbutils.notebook.exit(x)\nraise ValueError"
    )
    seen, _ = run(
        tmp_path,
        "x = 1\nspark.seen += [dbutils.notebook.run('child', 60, {'day': 'mon'}), x]\ndbutils.notebook.exit('done')",
        "raise ValueError",
        child=child,
    )
    assert seen == ["mon", "2", 1]


def test_a_cell_that_may_fail_ends_and_the_next_runs(tmp_path):
    failed = []
    cells = "1 / 0\nspark.seen.append(1)", "spark.seen.append(2)"
    seen, _ = run(tmp_path, *cells, passes_over=lambda error: failed.append(type(error)) is None)
    assert (seen, failed) == ([2], [ZeroDivisionError])


def test_a_cell_without_its_comment_is_refused(tmp_path):
    with pytest.raises(ValueError, match="a cell begins with a comment such as"):
        Platform(Session(), {"a": ["x = 1"]}, {}, str(tmp_path)).run()


def test_a_notebook_that_another_runs_has_its_files(tmp_path):
    text = "dbutils.fs.put('/a/b', 'x')\ndbutils.notebook.run('child', 0)"
    seen, _ = run(tmp_path, text, child="spark.seen.append(dbutils.fs.head('dbfs:/a/b'))")
    assert seen == ["x"]
