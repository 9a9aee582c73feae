"""Jars from Maven, with a Java that does what Ivy would."""

import hashlib
from pathlib import Path

import pytest

from harness.environments import jars
from harness.environments.environment import Environment
from harness.environments.jars import Coordinate, JarsNotFetched, fetch_with_dependencies
from harness.environments.java import NotAJava
from tests.support import environments as fakes

INTO = 'for last; do :; done; jars=$(dirname "$last"); mkdir -p "$jars"'
WANTED = Coordinate("org.apache.kafka", "kafka_2.13", "3.9.1")


@pytest.fixture(autouse=True)
def no_java_of_this_machine(monkeypatch):
    monkeypatch.setattr(jars, "candidates", lambda _: iter(()))


@pytest.fixture
def said():
    return []


@pytest.fixture
def run(tmp_path, said):
    """Fetches with a Java that is this shell script; ``$jars`` is where Ivy puts them."""

    environment = fakes.with_jars(tmp_path, "ivy-2.5.3.jar")

    def run(script: str, known: dict[str, str] | None = None) -> tuple[Path, ...]:
        fakes.script(environment.java_home / "bin" / "java", f"{INTO}\n{script}")
        environ = {"CONFORMANCE_CACHE": str(tmp_path / "cache")}
        return fetch_with_dependencies(
            WANTED, "kafka", environment, known=known or {}, on_progress=said.append, environ=environ
        )

    return run


def test_jars_are_fetched_once(run):
    assert [jar.name for jar in run('touch "$jars/kafka.jar" "$jars/other.jar"')] == ["kafka.jar", "other.jar"]
    assert [jar.name for jar in run("exit 1")] == ["kafka.jar", "other.jar"]


def test_what_the_repository_lacks_is_named(run, tmp_path):
    with pytest.raises(JarsNotFetched, match=r"there is no org.apache.kafka#kafka_2.13;3.9.1") as error:
        run("echo '  module not found: org.apache.kafka#kafka_2.13;3.9.1'; echo UNRESOLVED DEPENDENCIES")
    assert not error.value.unreachable
    assert not (tmp_path / "cache" / "jars" / "kafka").exists()


def test_a_repository_that_does_not_answer_is_told_from_one_that_lacks_the_module(run):
    with pytest.raises(JarsNotFetched, match="UnknownHostException") as error:
        run(
            "echo 'module not found: org.apache.kafka#kafka_2.13;3.9.1'\n"
            "echo 'Server access error at url https://example.org (java.net.UnknownHostException: example.org)'; exit 1"
        )
    assert error.value.unreachable


def test_no_jars_are_no_success(run):
    with pytest.raises(JarsNotFetched, match="it has no jars"):
        run("exit 0")


def test_a_spark_without_ivy_is_told(tmp_path):
    environment = Environment("x", Path("p"), "3.11", "3.5.9", tmp_path, tmp_path, "17")
    environ = {"CONFORMANCE_CACHE": str(tmp_path / "cache")}
    with pytest.raises(JarsNotFetched, match="has no Ivy among its jars"):
        fetch_with_dependencies(WANTED, "kafka", environment, on_progress=lambda _: None, environ=environ)


def test_a_java_of_this_machine_comes_first(run, tmp_path, monkeypatch):
    own = fakes.script(tmp_path / "own-java", f'{INTO}; touch "$jars/by-own.jar"')
    monkeypatch.setattr(jars, "candidates", lambda _: iter([("PATH", tmp_path / "none"), ("JAVA_HOME", own)]))
    monkeypatch.setattr(jars, "inspect", lambda binary: binary if binary == own else _not_a_java())
    assert [jar.name for jar in run("exit 1")] == ["by-own.jar"]


def _not_a_java():
    raise NotAJava("does not exist")


def test_a_folder_that_was_filled_in_part_is_fetched_again(run, tmp_path):
    folder = tmp_path / "cache" / "jars" / "kafka"
    folder.mkdir(parents=True)
    (folder / "kafka.jar").touch()
    assert [jar.name for jar in run('touch "$jars/kafka.jar" "$jars/other.jar"')] == ["kafka.jar", "other.jar"]


@pytest.mark.parametrize(
    "damage", [Path.unlink, lambda jar: jar.write_text("cut"), lambda jar: jar.write_text("c0ntent\n")]
)
def test_a_folder_that_lost_part_of_a_jar_is_fetched_again(run, said, damage):
    script = 'echo content > "$jars/kafka.jar"; touch "$jars/other.jar"'
    damage(run(script)[0])
    assert [jar.read_text() for jar in run(script)] == ["content\n", ""]
    assert any(line.endswith("are not those that were fetched") for line in said)


def test_a_jar_that_is_not_the_known_one_is_refused_also_in_the_cache(run, tmp_path):
    """A repository, or who writes the cache, may change the list of what was fetched as well."""
    name = "kafka_2.13-3.9.1.jar"
    known = {name: hashlib.sha256(b"content").hexdigest()}
    with pytest.raises(JarsNotFetched, match=r"others than Maven Central had, which were not kept: kafka_2") as error:
        run(f'printf other > "$jars/{name}"', known)
    assert error.value.unreachable
    (jar,) = run(f'printf content > "$jars/{name}"', known)
    jar.write_text("another")
    (jar.parent / "complete.txt").write_text(f"{hashlib.sha256(b'another').hexdigest()}  {name}\n")
    assert [jar.read_text() for jar in run(f'printf content > "$jars/{name}"', known)] == ["content"]


def test_a_known_module_brings_no_jar_that_is_not_known(run):
    known = {"kafka_2.13-3.9.1.jar": hashlib.sha256(b"content").hexdigest()}
    with pytest.raises(JarsNotFetched, match=r"which were not kept: evil\.jar"):
        run('printf content > "$jars/kafka_2.13-3.9.1.jar"; printf evil > "$jars/evil.jar"', known)


def test_a_module_newer_than_the_suite_is_taken_with_the_known_jars_of_others(run):
    known = {"lz4.jar": hashlib.sha256(b"content").hexdigest()}
    script = 'printf new > "$jars/kafka_2.13-4.9.9.jar"; printf {} > "$jars/lz4.jar"'
    with pytest.raises(JarsNotFetched, match=r"which were not kept: lz4\.jar"):
        run(script.format("other"), known)
    assert [jar.name for jar in run(script.format("content"), known)] == ["kafka_2.13-4.9.9.jar", "lz4.jar"]


def test_a_file_that_differs_from_the_checksum_beside_it_is_not_taken_for_a_missing_one(run):
    """Otherwise the connector of an earlier release would take its place."""
    with pytest.raises(JarsNotFetched, match="invalid sha1: expected=0 computed=1") as error:
        run(
            "echo '[FAILED     ] org.apache.kafka#kafka_2.13;3.9.1!kafka.jar: invalid sha1: expected=0 computed=1 (8ms)'\n"
            "echo ':: FAILED DOWNLOADS ::'; echo ':: org.apache.kafka#kafka_2.13;3.9.1!kafka.jar'; exit 1"
        )
    assert error.value.unreachable
