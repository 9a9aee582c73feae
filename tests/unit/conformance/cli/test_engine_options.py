"""Where commands look for the user's modules, and that they do only if they may run."""

import pytest
import typer

from conformance.cli import commands
from conformance.cli.engine_options import Code, EngineOptions, Settings, runtime_options
from conformance.core.errors import WrongUsage


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "src").mkdir()
    (tmp_path / "jobs").mkdir()
    (tmp_path / "my" / "cases").mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path / "my")
    return tmp_path


def folders(code):
    found = runtime_options(EngineOptions(), code=code).own_code
    return None if found is None else found.folders


def test_no_code_runs_unless_it_is_allowed(project):
    assert folders(None) is None
    assert folders(Code()) is None
    with pytest.raises(WrongUsage, match="only with --allow-code"):
        folders(Code(code=[project / "src"]))


def test_modules_are_found_in_the_project(project):
    assert folders(Code(allow_code=True)) == (project / "my", project, project / "src")


def test_the_option_says_where_they_are_instead(project):
    assert folders(Code(allow_code=True, code=[project / "jobs"])) == (project / "jobs",)
    with pytest.raises(WrongUsage, match=r"^--code: .*sources is not a folder"):
        folders(Code(allow_code=True, code=[project / "sources"]))


@pytest.mark.parametrize("command", ["run", "case record", "upgrade"])
def test_every_command_that_runs_cases_has_them(command):
    options = {option for parameter in commands.load(command).params for option in parameter.opts}
    assert {"--allow-code", "--code", "--requirements", "--package", "--conf", "--properties-file"} <= options


def test_the_project_counts_only_with_permission_and_says_so(project, capsys):
    (project / "pyproject.toml").write_text("[tool.conformance.conf]\nspark.sql.ansi.enabled = true\n")
    given = Settings(conf=["spark.x=1"])
    assert runtime_options(EngineOptions(), given, code=Code()).conf == {"spark.x": "1"}
    assert (
        capsys.readouterr().err == "pyproject.toml: conf in [tool.conformance] need --allow-code, and were left out\n"
    )
    allowed = runtime_options(EngineOptions(), given, code=Code(allow_code=True))
    assert allowed.conf == {"spark.sql.ansi.enabled": "true", "spark.x": "1"}
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("option", "value"), [("requirements", "job.txt"), ("package", ["all=a:b:1"])])
def test_a_container_has_its_own_packages(project, option, value):
    with pytest.raises(typer.BadParameter, match="a container has its own engine"):
        runtime_options(EngineOptions(runtime="container"), code=Code(**{option: value}))
