"""A method of a jar as a job: which text names one, and which class the jars lack."""

import zipfile
from pathlib import Path

import pytest

from conformance.core.errors import WrongUsage
from conformance.own_job.job_case import OwnQuery, own_function, write_job
from conformance.own_job.jvm_method import function_or_method
from conformance.own_job.sample import read_sample
from conformance.query import read_query
from harness.runtimes.own_code import LOCAL_JARS, Jar, local_jar_settings


def jar(folder: Path, name: str, *classes: str) -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        for entry in ("META-INF/MANIFEST.MF", *(f"{name}.class" for name in classes)):
            archive.writestr(entry, "")
    return path


def method(name: str, output_mode: str = "append") -> OwnQuery:
    return OwnQuery(name, {"jvm": name}, name, output_mode)


def test_a_text_names_a_function_or_a_method_of_the_jars(tmp_path: Path) -> None:
    jars = [Jar.parse(str(jar(tmp_path, "jobs.jar", "acme/Jobs", "acme/Only$", "acme/Jobs$Inner")))]
    assert function_or_method("jobs:build", "append", jars) == own_function("jobs:build", "append")
    assert function_or_method("acme.Jobs.clicked", "update", jars) == method("acme.Jobs.clicked", "update")
    assert function_or_method("acme.Only.clicked", "append", jars) == method("acme.Only.clicked")
    for text, jars_given, says in (
        ("acme.Job.clicked", jars, r"jobs\.jar: unknown class 'acme\.Job': did you mean 'acme\.Jobs'\?"),
        ("acme.Jobs.clicked", [], "if it is a method of Java or Scala, --jar is missing"),
        (
            "acme/Jobs.clicked",
            jars,
            r"'acme/Jobs\.clicked' is neither package\.Class\.method of a jar nor module:function",
        ),
        ("clicked", [], "write module:function"),
    ):
        with pytest.raises(WrongUsage, match=says):
            function_or_method(text, "append", jars_given)


def test_each_version_of_scala_has_its_jar(tmp_path: Path) -> None:
    older, newer = jar(tmp_path, "a.jar", "acme/Jobs"), jar(tmp_path, "b.jar", "acme/Job")
    jars = [Jar.parse(f"2.12={older}"), Jar.parse(f"2.13={newer}")]
    assert local_jar_settings(jars, "2.12") == {LOCAL_JARS: str(older)}
    assert local_jar_settings(jars, "2.13", "x.jar") == {LOCAL_JARS: f"x.jar,{newer}"}
    assert local_jar_settings([], "2.13", "x.jar") == {}
    with pytest.raises(
        WrongUsage,
        match=r"no jar is for Scala 2\.11, .*: add --jar 2\.11=FILE, or 2\.11=FILE to .*; given for 2\.12, 2\.13",
    ):
        local_jar_settings(jars, "2.11")
    with pytest.raises(WrongUsage, match=r"b\.jar: unknown class 'acme\.Jobs': did you mean 'acme\.Job'"):
        function_or_method("acme.Jobs.clicked", "append", jars)
    of_any = Jar.parse(str(newer))
    assert local_jar_settings([jars[0], of_any], "2.13") == {LOCAL_JARS: str(newer)}


def test_what_is_no_jar_is_named(tmp_path: Path) -> None:
    (tmp_path / "no.jar").write_text("text")
    with pytest.raises(WrongUsage, match=r"--jar: there is no file .*gone\.jar"):
        Jar.parse(str(tmp_path / "gone.jar"))
    with pytest.raises(WrongUsage, match=r"pyproject\.toml: .*no\.jar is not a jar"):
        Jar.parse("no.jar", "pyproject.toml", tmp_path)


def test_the_case_calls_the_method(tmp_path: Path) -> None:
    (tmp_path / "orders.jsonl").write_text('{"t": "2026-03-01 12:00:00"}\n')
    case = write_job(method("acme.Jobs.clicked"), [read_sample("orders", tmp_path / "orders.jsonl")], tmp_path)
    assert case.query.wire() == [{"call": {"jvm": "acme.Jobs.clicked"}, "with": ["orders"]}]
    assert (case.path.name, case.output_mode) == ("acme.Jobs.clicked.yaml", "append")
    assert case.needs_code
    assert read_query(case.query, case.streams).unread == ("the method acme.Jobs.clicked",)
