"""Where the user's code is, and how engines find it."""

import zipfile
from pathlib import Path

import pytest

from conformance.core.errors import WrongUsage
from conformance.core.operations import read_pipeline
from harness.engine.engine import NOTHING_ELSE, EngineNeeds
from harness.runtimes.cluster import Cluster
from harness.runtimes.connect import ConnectRuntime, Endpoint
from harness.runtimes.local import LocalRuntime
from harness.runtimes.own_code import Jar, OwnCode, modules, worker_settings
from harness.targets.targets import Targets
from tests.support.observations import case


def write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def test_the_code_of_a_project_is_in_the_working_directory_its_root_and_src(tmp_path, monkeypatch):
    write(tmp_path, "src/acme_jobs/totals.py", "cases/x.yaml")
    monkeypatch.chdir(tmp_path / "cases")
    assert OwnCode.of_project(tmp_path).folders == (tmp_path / "cases", tmp_path, tmp_path / "src")
    monkeypatch.chdir(tmp_path)
    assert OwnCode.of_project(tmp_path).folders == (tmp_path, tmp_path / "src")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(WrongUsage, match=r"--code: .*sources is not a folder; name the folder that holds your modules"):
        OwnCode.at([tmp_path / "sources"])


def test_only_modules_of_ones_own_and_what_they_read_are_copied(tmp_path):
    write(
        tmp_path,
        "job.py",
        "pkg/__init__.py",
        "pkg/totals.sql",
        ".git/x.py",
        "env/lib/y.py",
        "node_modules/z.py",
        "pkg/a.bin",
    )
    (tmp_path / "env" / "pyvenv.cfg").touch()
    (tmp_path / "pkg" / "big.csv").write_text("x" * (1 << 21))
    found = [path.relative_to(tmp_path).as_posix() for path in modules(tmp_path)]
    assert found == ["job.py", "pkg/__init__.py", "pkg/totals.sql"]


def test_a_zip_has_the_modules_of_all_folders_and_the_first_wins(tmp_path):
    write(tmp_path, "a/job.py", "b/job.py", "b/pkg/__init__.py")
    path = OwnCode.at([tmp_path / "a", tmp_path / "b"]).zipped(tmp_path)
    with zipfile.ZipFile(path) as archive:
        assert sorted(archive.namelist()) == ["job.py", "pkg/__init__.py"]
        assert archive.read("job.py") == b"a/job.py"


def test_a_case_names_jars_in_the_folders_of_the_code(tmp_path):
    write(tmp_path, "a/text.jar", "b/job.py")
    with zipfile.ZipFile(tmp_path / "b" / "jobs.jar", "w") as archive:
        archive.writestr("acme/Jobs.class", "")
    code = OwnCode.at([tmp_path / "a", tmp_path / "b"])
    assert code.jar("2.13=jobs.jar") == Jar(tmp_path / "b" / "jobs.jar", "2.13")
    assert code.jar("jobs.jar").scala is None
    with pytest.raises(WrongUsage, match=r"a case names the jar gone\.jar, which is in none of .*/a, .*/b: build it"):
        code.jar("2.12=gone.jar")
    with pytest.raises(WrongUsage, match=r"a case: .*text\.jar is not a jar"):
        code.jar("text.jar")


def test_an_engine_has_the_jars_of_its_cases_and_no_others(tmp_path):
    (target,) = Targets.load().select(["4.3.0"])
    call = {"call": {"jvm": "acme.Jobs.clicked", "jar": ["2.12=a.jar", "2.13=b.jar"]}, "with": ["events"]}
    of_jars = case(None, query=read_pipeline([call]))
    assert of_jars.jars == ("2.12=a.jar", "2.13=b.jar")
    needs = EngineNeeds.of(of_jars, target)
    assert needs.cover(needs)
    assert not NOTHING_ELSE.cover(needs)
    assert not needs.cover(NOTHING_ELSE)


def test_a_main_method_needs_an_engine_of_which_others_need_less(tmp_path):
    (target,) = Targets.load().select(["4.3.0"])
    call = {"call": {"main": "acme.Main"}, "with": ["events"]}
    main = case(None, query=read_pipeline([call]))
    needs = EngineNeeds.of(main, target)
    assert needs == EngineNeeds(main=True)
    assert needs.cover(NOTHING_ELSE)
    assert not NOTHING_ELSE.cover(needs)
    assert not EngineNeeds(topics=True).cover(needs)


@pytest.mark.parametrize(
    ("operation", "more", "says"),
    [
        ({"from": "events"}, {}, None),
        ({"from": "events"}, {"sink": "a:b"}, "a sink of the case's author"),
        ({"call": {"main": "acme.Main"}, "with": ["events"]}, {}, "its main method runs in the JVM"),
        ({"call": {"jvm": "acme.Jobs", "jar": "a.jar"}, "with": ["events"]}, {}, "on the class path of the server"),
    ],
)
def test_what_does_not_run_through_connect(tmp_path, operation, more, says):
    (target,) = Targets.load().select(["4.3.0"])
    asked = case(None, query=read_pipeline([operation]), **more)
    assert LocalRuntime(tmp_path).unsupported(asked, target) is None
    why = ConnectRuntime(tmp_path, Endpoint.parse("sc://localhost")).unsupported(asked, target)
    assert says in why if says else why is None


def test_python_workers_import_what_the_driver_imports(tmp_path):
    write(tmp_path, "src/job.py")
    code = OwnCode.at([tmp_path / "src"])
    assert worker_settings(code.paths()) == {"spark.executorEnv.PYTHONPATH": str(tmp_path / "src")}
    work = tmp_path / "work"
    work.mkdir()

    def settings(**options):
        return LocalRuntime(tmp_path, own_code=code, **options)._modules(work)

    assert settings() == {"spark.executorEnv.PYTHONPATH": str(tmp_path / "src")}
    here = settings(cluster=Cluster("local-cluster[2,1,1024]"))
    assert here == {"spark.executorEnv.PYTHONPATH": f"{work}/engine:{tmp_path / 'src'}"}
    elsewhere = settings(cluster=Cluster("spark://other:7077"))
    assert elsewhere == dict.fromkeys(("spark.files", "spark.submit.pyFiles"), str(work / "own_code.zip"))
    assert zipfile.is_zipfile(work / "own_code.zip")
    assert LocalRuntime(tmp_path)._modules(work) == {}
