"""The runtime on this machine."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.engine.engine import NOTHING_ELSE, EngineNeeds
from harness.environments.class_archive import ClassArchive
from harness.environments.environment import Environment
from harness.runtimes import local, program
from harness.runtimes.local import LocalRuntime
from harness.runtimes.own_code import Jar
from harness.targets.targets import Targets, tuning

(TARGET,) = Targets.load().select(["3.5.9"])


class Started(Exception):
    """With what an engine would have been started."""


@pytest.fixture
def environment(tmp_path, monkeypatch):
    python = Path("/usr/bin/python3")
    found = Environment("spark-3.5.9", python, "3.11", "3.5.9", tmp_path, tmp_path, "17", root=tmp_path)
    monkeypatch.setattr(local, "prepared", lambda _: found)
    monkeypatch.setattr(local, "prepare", lambda *_, **__: found)
    return found


def test_answers_of_an_engine_with_more_variables_are_not_cached(environment, tmp_path):
    assert LocalRuntime(tmp_path).fingerprint(TARGET) is not None
    assert LocalRuntime(tmp_path, variables={"A": "1"}).fingerprint(TARGET) is None


def test_an_engine_gets_these_variables_and_no_secrets(environment, tmp_path, monkeypatch):
    def started(*_, env, **__):
        raise Started(env)

    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    monkeypatch.setattr(program, "SubprocessTransport", started)
    with pytest.raises(Started) as end:
        LocalRuntime(tmp_path, variables={"A": "1"}).start(TARGET, on_progress=lambda _: None)
    (env,) = end.value.args
    assert env["A"] == "1"
    assert "GITHUB_TOKEN" not in env


def test_a_debugger_holds_the_jvm_only_for_main_methods(environment, tmp_path, monkeypatch):
    def started(_module, _environment, _work, settings, *_, **__):
        raise Started(settings.get("spark.conformance.debugger"))

    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.12-3.5.9.jar").touch()
    monkeypatch.setattr(program, "start", started)
    runtime = LocalRuntime(tmp_path, jars=[Jar(tmp_path / "jobs.jar")])
    for needs, expected in ((NOTHING_ELSE, "None"), (EngineNeeds(main=True), "true")):
        with pytest.raises(Started) as end:
            runtime.start(TARGET, on_progress=lambda _: None, needs=needs)
        assert str(end.value) == expected


class TestClassArchive:
    """The option of the engine's JVM, by what there is and how it was asked for."""

    OPTIONS = "spark.driver.extraJavaOptions"

    @pytest.fixture
    def options(self, environment, tmp_path, monkeypatch):
        """Starts an engine that does not start, and returns the options of its JVM."""

        def started(_module, _environment, _work, settings, *_, **__):
            raise Started(settings.get(self.OPTIONS, ""))

        (tmp_path / "lib").mkdir()
        (tmp_path / "lib" / "modules").write_bytes(b"modules")
        monkeypatch.setattr(program, "start", started)

        def options(target=TARGET, **named):
            with pytest.raises(Started) as end:
                LocalRuntime(tmp_path, **named).start(target, on_progress=lambda _: None)
            return str(end.value)

        return options

    @pytest.fixture
    def written(self, environment):
        self.write(environment)

    @staticmethod
    def write(environment):
        archive = ClassArchive.of(environment, tuning(TARGET.version))
        recording = archive.record() or archive.record()
        recording.partial.write_bytes(b"classes")
        recording.keep()

    def test_the_second_engine_writes_it(self, options):
        assert "Archive" not in options()
        assert "-XX:ArchiveClassesAtExit=" in options()
        assert "-XX:ArchiveClassesAtExit=" in options(), "the second did not start, so the third may"

    def test_later_engines_use_it(self, options, written):
        assert "-XX:SharedArchiveFile=" in options()
        assert "-XX:TieredStopAtLevel=1" in options()
        assert "-XX:SharedArchiveFile=" in options(conf={"spark.sql.ansi.enabled": "true"})

    def test_an_archive_of_another_class_path_is_not_used(self, options, written):
        """A JVM ignores it, and so it would never be written again."""
        assert "Archive" not in options(conf={"spark.driver.extraClassPath": "/their.jar"})
        assert "Archive" not in options(conf={"spark.conformance.firstJars": "spark-core"})

    def test_an_engine_with_settings_of_its_own_does_not_write_it(self, options):
        options()
        assert "Archive" not in options(conf={"spark.jars": "other.jar"})
        assert "Archive" not in options(variables={"A": "1"})

    def test_plain_engines_do_without(self, options, written):
        assert options(plain=True) == ""

    def test_what_arrow_needs_of_java_is_given_where_spark_does_not(self, options):
        (old,) = Targets.load().select(["3.0.3"])
        assert options(old, plain=True) == "-Dio.netty.tryReflectionSetAccessible=true"
        assert options(old, conf={self.OPTIONS: "-Xss2m"}) == "-Xss2m -Dio.netty.tryReflectionSetAccessible=true"

    def test_somebodys_java_options_stay_as_they_are(self, options, written):
        assert options(conf={self.OPTIONS: "-Xss2m"}) == "-Xss2m"

    def test_answers_are_the_same_with_and_without(self, options, environment, tmp_path):
        before = LocalRuntime(tmp_path).fingerprint(TARGET)
        self.write(environment)
        assert LocalRuntime(tmp_path).fingerprint(TARGET) == before

    @pytest.mark.parametrize("ended", [True, False])
    def test_what_an_engine_writes_is_kept_if_it_ended_by_itself(self, environment, tmp_path, monkeypatch, ended):
        """Otherwise it is killed while it writes."""
        (tmp_path / "lib").mkdir()
        (tmp_path / "lib" / "modules").write_bytes(b"modules")
        archive, said, finishing = ClassArchive.of(environment, tuning(TARGET.version)), [], []
        assert archive.record() is None

        def finish(_timeout):
            (archive.directory / f"{archive.key}.partial").write_bytes(b"classes")
            return ended

        monkeypatch.setattr(program, "start", lambda *_, **__: SimpleNamespace(finish=finish))
        monkeypatch.setattr(local, "DriverEngine", lambda _, finish, **__: finishing.append(finish))
        LocalRuntime(tmp_path).start(TARGET, on_progress=said.append)
        finishing[0]()
        assert (archive.file() is not None) == ended
        assert said[-1] == "spark-3.5.9: writing a class archive, so that later engines start faster"
        assert (archive.record() is not None) or ended
