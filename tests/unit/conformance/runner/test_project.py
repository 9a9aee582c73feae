"""What ``[tool.conformance]`` of a project says, and that nothing of it runs code without permission."""

import os
import re

import pytest

from conformance.core.errors import WrongUsage
from conformance.runner.project import ProjectSettings, own_job
from harness.runtimes.own_code import JarPackage

WHOLE = """
[tool.conformance]
code = ["jobs"]
requirements = "job.txt"
spark = ["3.5", "4.3"]

[tool.conformance.packages]
"3.5" = "io.delta:delta-spark_2.12:3.2.0"
4.0 = ["a:b:1", "c:d:2"]

[tool.conformance.conf]
"spark.sql.extensions" = "io.delta.sql.DeltaSparkSessionExtension"
spark.sql.ansi.enabled = true
"""


@pytest.fixture
def root(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "my" / "cases").mkdir(parents=True)
    (tmp_path / "job.txt").write_text("pandas==2.2.3\n")
    return tmp_path


def read(root, text):
    (root / "pyproject.toml").write_text(text)
    return ProjectSettings.read(root / "my" / "cases")


def test_it_is_found_upward(root):
    project = read(root, WHOLE)
    assert (project.root, project.file) == (root, root / "pyproject.toml")
    assert project.code == (root / "jobs",)
    assert project.requirements == root / "job.txt"
    assert project.spark == ("3.5", "4.3")
    assert project.packages == (
        JarPackage("3.5", "io.delta:delta-spark_2.12:3.2.0"),
        JarPackage("4.0", "a:b:1"),
        JarPackage("4.0", "c:d:2"),
    )
    expected = {"spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension", "spark.sql.ansi.enabled": "true"}
    assert project.conf == expected


def test_a_project_without_the_table_or_the_file_says_nothing(root):
    assert read(root, "[project]\nname = 'x'\n").needs_permission() == ()
    (root / "pyproject.toml").unlink()
    assert ProjectSettings.read(root / "jobs").file is None


def test_what_a_pull_request_writes_there_runs_nothing_without_permission(root):
    project = read(root, WHOLE)
    assert project.needs_permission() == ("code", "requirements", "packages", "conf")
    job = own_job(project, allow_code=False)
    assert (job.own_code, job.requirements, job.packages, job.conf) == (None, (), (), {})
    allowed = own_job(project, allow_code=True)
    assert allowed.own_code.folders == (root / "jobs",)
    assert (allowed.requirements, len(allowed.packages), len(allowed.conf)) == (("pandas==2.2.3",), 3, 2)


def test_options_replace_what_the_project_says(root):
    project = read(root, WHOLE)
    (root / "other.txt").write_text("numpy\n")
    job = own_job(
        project,
        allow_code=True,
        code=[root / "my"],
        requirements=root / "other.txt",
        packages=["all=e:f:3"],
        conf={"spark.sql.ansi.enabled": "false"},
    )
    assert job.own_code.folders == (root / "my",)
    assert (job.requirements, job.packages) == (("numpy",), (JarPackage("all", "e:f:3"),))
    assert job.conf["spark.sql.ansi.enabled"] == "false"
    assert job.conf["spark.sql.extensions"]


def test_what_the_user_types_counts_without_permission_but_their_code_needs_it(root):
    project = read(root, "")
    job = own_job(project, allow_code=False, packages=["all=e:f:3"], conf={"spark.x": "1"})
    assert (job.packages, job.conf) == ((JarPackage("all", "e:f:3"),), {"spark.x": "1"})
    with pytest.raises(WrongUsage, match="--code: cases run your code only with --allow-code"):
        own_job(project, allow_code=False, code=[root])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "requirement = 'job.txt'",
            "[tool.conformance] has an unknown key 'requirement': did you mean 'requirements'?",
        ),
        ("code = 7", "[tool.conformance] code is not a list of folders"),
        ("requirements = ['a']", "[tool.conformance] requirements is not the name of a file"),
        ("packages = ['a:b:1']", "[tool.conformance] packages is not a table such as"),
        (
            "packages = {'3.5' = 'delta'}",
            "[tool.conformance] packages: '3.5=delta' is not VERSION=GROUP:ARTIFACT:VERSION",
        ),
        ("conf = {ansi = true}", "[tool.conformance] conf.'ansi' is not a Spark setting"),
        ("conf = {'spark.x' = []}", "[tool.conformance] conf.'spark.x' is not a Spark setting"),
        ("spark = [3.5]", "[tool.conformance] spark is not a list of versions"),
        ("spark = [", "cannot be read"),
    ],
    ids=range(9),
)
def test_a_mistake_is_one_line_with_file_and_key(root, text, message):
    with pytest.raises(WrongUsage) as caught:
        read(root, f"[tool.conformance]\n{text}\n")
    said = str(caught.value)
    assert said.startswith(f"{root / 'pyproject.toml'}: {message}")
    assert "\n" not in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 100_000, "it is nested too deeply"),
        ("a = " + "9" * 5_000, "Exceeds the limit"),
        ("#" * 1_000_001, "it has more than 1,000,000 bytes"),
        ("a = '\x1b'", "nvalid character|Illegal character"),
    ],
    ids=range(4),
)
def test_a_file_that_a_stranger_made_hostile_is_one_line(root, text, message):
    with pytest.raises(WrongUsage, match=message) as caught:
        read(root, text)
    assert "\n" not in str(caught.value)


def test_a_file_without_an_end_is_not_read_whole(root):
    (root / "pyproject.toml").touch()
    os.truncate(root / "pyproject.toml", 5 << 30)
    with pytest.raises(WrongUsage, match="has more than 1,000,000 bytes"):
        ProjectSettings.read(root)


@pytest.mark.parametrize("text", ["tool = 1", "tool = []", "[[tool]]\nconformance = 1"])
def test_another_tool_is_no_mistake_of_ours(root, text):
    assert read(root, text).spark == ()


def test_a_setting_with_a_name_without_end_is_none(root):
    with pytest.raises(WrongUsage, match="is not a Spark setting"):
        read(root, "[tool.conformance.conf]\nspark." + "a." * 5_000 + "b = 1\n")


def test_a_folder_of_the_project_that_is_not_there_is_named(root):
    project = read(root, "[tool.conformance]\ncode = 'sources'\n")
    with pytest.raises(WrongUsage, match=re.escape(f"{root / 'pyproject.toml'}: [tool.conformance] code: ")):
        own_job(project, allow_code=True)
