"""Who writes a class archive, when it is used, and when it is not."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness.environments.class_archive import ClassArchive, option
from harness.environments.environment import Environment

NO_OPTIONS: dict[str, str] = {}


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    modules = tmp_path / "jdk" / "lib" / "modules"
    modules.parent.mkdir(parents=True)
    modules.write_bytes(b"modules")
    root = tmp_path / "3.5.9-0123"
    (root / "class-archives").mkdir(parents=True)
    python, spark_home, java_home = root / "bin" / "python", root / "pyspark", tmp_path / "jdk"
    return Environment("spark-3.5.9", python, "3.11.7", "3.5.9", spark_home, java_home, "17.0.15", root=root)


@pytest.fixture
def unused(environment: Environment) -> Environment:
    """No engine has run in it yet."""
    assert environment.root is not None
    (environment.root / "class-archives").rmdir()
    return environment


def archive_of(environment: Environment, environ: dict[str, str] = NO_OPTIONS) -> ClassArchive:
    archive = ClassArchive.of(environment, {}, environ)
    assert archive is not None
    return archive


def written(archive: ClassArchive, content: bytes = b"classes") -> Path:
    recording = archive.record()
    assert recording is not None
    recording.partial.write_bytes(content)
    recording.keep()
    file = archive.file()
    assert file is not None
    return file


def test_what_one_engine_has_written_others_use(environment: Environment) -> None:
    assert archive_of(environment).file() is None
    file = written(archive_of(environment))
    assert archive_of(environment).file() == file
    assert file.read_bytes() == b"classes"
    assert environment.root is not None
    assert file.is_relative_to(environment.root)


@pytest.mark.parametrize("content", [b"class", b"cl_sses", b""], ids=["truncated", "altered", "empty"])
def test_a_damaged_one_is_not_used_and_made_again(environment: Environment, content: bytes) -> None:
    """A JVM of Java 17 that maps a truncated archive ends with SIGBUS."""
    written(archive_of(environment)).write_bytes(content)
    assert archive_of(environment).file() is None
    assert written(archive_of(environment)).read_bytes() == b"classes"


def test_one_engine_at_a_time_writes_it(environment: Environment) -> None:
    first = archive_of(environment).record()
    assert first is not None
    assert archive_of(environment).record() is None
    first.discard()
    assert archive_of(environment).record() is not None


def test_none_is_written_where_everyone_may_write(environment: Environment) -> None:
    """It would not be used, and writing it takes as long as starting an engine."""
    archive = archive_of(environment)
    archive.directory.chmod(0o777)
    assert archive.record() is None
    archive.directory.chmod(0o755)
    assert archive.record() is not None


def test_its_directory_is_no_one_elses_whatever_the_umask(environment: Environment) -> None:
    archive = archive_of(environment)
    archive.directory.rmdir()
    before = os.umask(0)
    try:
        assert archive.record() is None
    finally:
        os.umask(before)
    assert archive.record() is not None


def test_what_a_killed_engine_has_left_behind_is_removed(environment: Environment) -> None:
    archive = archive_of(environment)
    leftover = archive.directory / "0123.partial"
    leftover.write_bytes(b"half")
    assert archive.record() is not None
    assert not leftover.exists()


def test_an_engine_that_wrote_nothing_leaves_no_archive_and_lets_others_try(environment: Environment) -> None:
    recording = archive_of(environment).record()
    assert recording is not None
    recording.keep()
    assert archive_of(environment).file() is None
    assert archive_of(environment).record() is not None


def test_another_java_has_another_and_only_the_newest_is_kept(environment: Environment, tmp_path: Path) -> None:
    old = written(archive_of(environment))
    os.utime(tmp_path / "jdk" / "lib" / "modules", (1, 1))  # built again, with the same version
    assert archive_of(environment).file() is None
    new = written(archive_of(environment))
    assert new.exists()
    assert not old.exists()


def test_options_of_every_java_count(environment: Environment) -> None:
    written(archive_of(environment))
    assert archive_of(environment, {"JAVA_TOOL_OPTIONS": "-XX:-UseCompressedOops"}).file() is None


def test_none_for_a_java_that_writes_none_nor_for_an_installed_spark(environment: Environment, tmp_path: Path) -> None:
    assert ClassArchive.of(replace(environment, java_version="11.0.13"), {}, {}) is None
    assert ClassArchive.of(replace(environment, java_version="1.8.0_392"), {}, {}) is None
    assert ClassArchive.of(replace(environment, root=None), {}, {}) is None
    assert ClassArchive.of(replace(environment, java_home=tmp_path / "gone"), {}, {}) is None


def test_the_first_engine_of_an_environment_writes_none(unused: Environment) -> None:
    assert archive_of(unused).record() is None
    assert archive_of(unused).record() is not None


def test_an_environment_that_cannot_be_written_has_none(unused: Environment) -> None:
    archive = archive_of(unused)
    archive.directory.write_text("not a directory")
    assert archive.record() is None
    assert archive.file() is None


def test_a_path_with_spaces_and_quotes_is_one_option() -> None:
    """As `CommandBuilderUtils.parseOptionString` of Spark's launcher reads it."""
    assert option("SharedArchiveFile", Path('/a b/"c"/x.jsa')) == '"-XX:SharedArchiveFile=/a b/\\"c\\"/x.jsa"'


@pytest.mark.parametrize("what", ["directory", "file"])
def test_an_archive_that_every_user_may_write_is_not_used(what: str, environment: Environment) -> None:
    """A JVM runs the code in an archive."""
    archive = archive_of(environment)
    file = written(archive)
    planted = file if what == "file" else archive.directory
    planted.chmod(planted.stat().st_mode | 0o002)
    assert archive.file() is None
