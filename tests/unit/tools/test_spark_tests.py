"""The catalogue of Spark's tests against a jar with test sources, here a small one of our own."""

import zipfile
from pathlib import Path

import pytest
import yaml

from conformance.language.catalogue import Catalogue
from conformance.suite.coverage import coverage
from tools.scala_tests import scala_tests
from tools.spark_tests import ARTIFACTS, all_tests, compare, is_listed, main

SOURCE = """
class EventTimeWatermarkSuite extends StreamTest {
  test("append mode") { run() }
  test("a new one") { run() }
}
class StreamSuite extends StreamTest {
  test("keeps a watermark") { df.withWatermark("t", "1 minute") }
  test("about something else") { run() }
  for (mode <- modes) { test(s"watermark in $mode") { run() } }
}
"""
CATALOGUE = """
T001: {suite: EventTimeWatermarkSuite, test: append mode, visible: BB}
T002.1: {suite: StreamSuite, test: watermark in Append, visible: BB}
T002.2: {suite: StreamSuite, test: watermark in Update, visible: BB}
T003: {suite: StreamSuite, test: an old one, visible: BB}
T004: {suite: Python, test: test_watermark, visible: BB, source: python}
"""


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    folder = tmp_path / "jars"
    folder.mkdir()
    with zipfile.ZipFile(folder / "spark-sql_2.13-9.9.9-test-sources.jar", "w") as jar:
        jar.writestr("org/apache/spark/sql/streaming/Suites.scala", SOURCE)
        jar.writestr("META-INF/NOTICE", 'class XSuite { test("watermark in no Scala file") { } }')
    return folder


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    file = tmp_path / "spark-tests.yaml"
    file.write_text(CATALOGUE)
    return file


def test_new_tests_are_holes_and_old_ones_are_gone(jars: Path) -> None:
    found = compare(all_tests(jars.glob("*.jar")), yaml.safe_load(CATALOGUE))
    assert [(test.suite, test.name) for test in found.new] == [
        ("EventTimeWatermarkSuite", "a new one"),
        ("StreamSuite", "keeps a watermark"),
    ]
    assert found.gone == ("T003",)


def test_a_name_that_stays_open_is_any_entry_of_its_suite_that_fits(jars: Path) -> None:
    without = {id: entry for id, entry in yaml.safe_load(CATALOGUE).items() if not id.startswith("T002")}
    assert "watermark in $mode" in [test.name for test in compare(all_tests(jars.glob("*.jar")), without).new]


STREAMING = """
package org.apache.spark.sql.execution.streaming.state

class StateSuite extends StreamTest {
  private def check(frame: DataFrame): Unit = {
    def row(n: Int) = n
    testStream(frame)(CheckAnswer(1))
  }
  def indirectly(): Unit = check(frame)
  def restore(): Unit = store.load()
  test("starts a query") { testStream(frame)(CheckAnswer(1)) }
  test("starts a query through a method") { check(frame) }
  test("starts a query through two methods") {
    testRestore("/state/1")
    indirectly()
  }
  test("starts none") { restore() /* testStream(frame) */ }
}
class FileStreamSourceSuite extends StreamTest {
  test("is about a source") { testStream(frame)(CheckAnswer(1)) }
  test("is about a source and a watermark") { testStream(frame)(CheckAnswer(1)) }
}
"""


def test_a_test_that_starts_a_query_in_a_streaming_package_is_listed() -> None:
    assert [test.name for test in scala_tests(STREAMING) if is_listed(test)] == [
        "starts a query",
        "starts a query through a method",
        "starts a query through two methods",
        "is about a source and a watermark",
    ]
    elsewhere = STREAMING.replace(".execution.streaming.state", ".errors")
    assert [test.name for test in scala_tests(elsewhere) if is_listed(test)] == ["is about a source and a watermark"]


def test_the_command_names_what_is_new(jars: Path, catalogue: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--jars", str(jars)], catalogue) == 1
    assert capsys.readouterr().out == (
        f"{jars}: 5 tests, 4 listed; 2 not in the catalogue, 1 gone\n"
        "  new   EventTimeWatermarkSuite: a new one\n"
        "  new   StreamSuite: keeps a watermark\n"
        "  gone  T003 StreamSuite: an old one\n"
    )
    assert catalogue.read_text() == CATALOGUE


def test_what_is_added_counts_as_a_hole(jars: Path, catalogue: Path) -> None:
    assert main(["--jars", str(jars), "--add"], catalogue) == 0
    assert main(["--jars", str(jars)], catalogue) == 0
    (catalogue.parent / "behaviours.yaml").write_text("one: A\n")
    suite = Catalogue.at(catalogue.parent)
    assert suite is not None
    tests = coverage([], suite)[-1]
    assert str(tests) == "Spark's own tests 0 faithful, 0 partly, 7 not, of 7"
    assert tests.untested[-2:] == ("T005", "T006")


@pytest.fixture
def central(tmp_path: Path) -> str:
    """A repository with two releases, of which one has test sources and a preview is newer."""
    root = tmp_path / "central"
    versions = "".join(f"<version>{one}</version>" for one in ("9.9.10", "9.9.9", "10.0.0-preview1"))
    for artifact in ARTIFACTS:
        folder = root / artifact / "9.9.10"
        folder.mkdir(parents=True)
        with zipfile.ZipFile(folder / f"{artifact}-9.9.10-test-sources.jar", "w") as jar:
            jar.writestr("Suites.scala", SOURCE if artifact == ARTIFACTS[0] else "")
    (root / ARTIFACTS[0] / "maven-metadata.xml").write_text(f"<metadata><versions>{versions}</versions></metadata>")
    return root.as_uri()


@pytest.mark.parametrize("release", [[], ["9.9.10"]])
def test_the_sources_of_a_release_are_downloaded(
    central: str, catalogue: Path, capsys: pytest.CaptureFixture[str], release: list[str]
) -> None:
    assert main(release, catalogue, central) == 1
    assert capsys.readouterr().out.startswith("Spark 9.9.10: 5 tests, 4 listed; 2 not in the catalogue")


def test_a_release_without_test_sources_is_named(
    central: str, catalogue: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["9.9.9"], catalogue, central) == 3
    told = capsys.readouterr().err
    assert f"cannot download {central}/spark-sql_2.13/9.9.9/spark-sql_2.13-9.9.9-test-sources.jar (" in told
    assert told.endswith("download the jars by hand and pass --jars FOLDER\n")


def test_an_unreachable_repository_is_named(catalogue: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([], catalogue, "http://127.0.0.1:9") == 3
    assert "cannot download http://127.0.0.1:9/spark-sql_2.13/maven-metadata.xml" in capsys.readouterr().err


def test_a_folder_without_jars_is_named(tmp_path: Path, catalogue: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--jars", str(tmp_path)], catalogue) == 3
    assert capsys.readouterr().err == f"{tmp_path} has no jar: pass a folder with test-sources jars\n"


def test_only_tests_of_the_catalogue_are_shown(jars: Path, catalogue: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--jars", str(jars), "--show", "T999"], catalogue)
    assert "--show: T999 is not in spark-tests.yaml" in capsys.readouterr().err
    assert main(["--jars", str(jars), "--show", "T001"], catalogue) == 0
    assert capsys.readouterr().out == 'test("append mode") { run() }\n'
