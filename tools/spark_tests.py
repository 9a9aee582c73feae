"""Lists the tests of a Spark release that are about watermarks, state or recovery, and compares them with cases/spark-tests.yaml.

Listed is a test that speaks of watermarks; each test of the suites about them; and each test in a package `streaming` that starts a
query, unless its suite is about something else: a source, a sink, continuous processing, the methods of the query object.

    python -m tools.spark_tests                     the newest release on Maven Central that has its test sources there
    python -m tools.spark_tests 4.2.0               this release
    python -m tools.spark_tests 4.2.0 --add         write new tests to the catalogue, where they count as not mirrored
    python -m tools.spark_tests 4.2.0 --show T041   the source of this test, to read beside its case
    python -m tools.spark_tests --jars FOLDER       test-sources jars that are already here

Exits with 1 if the catalogue lacks a test, with 3 if the sources cannot be had. Python tests are in no jar: the catalogue lists them
by hand, as it does tests of releases whose jars are not published (`source`).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import urllib.request
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import yaml
from packaging.version import Version

from tools.scala_tests import ScalaTest, scala_tests

CENTRAL = "https://repo1.maven.org/maven2/org/apache/spark"
ARTIFACTS = ("spark-sql_2.13", "spark-catalyst_2.13", "spark-connect_2.13", "spark-connect-client-jvm_2.13")
CATALOGUE = Path(__file__).parents[1] / "cases" / "spark-tests.yaml"
WHOLE_SUITES = re.compile(
    r"(EventTimeWatermark\w*|MultiStatefulOperators|Streaming\w*Join(V4)?|StreamingSessionWindow|"
    r"StreamingDeduplication(WithinWatermark)?|ResolveEventTimeWatermark|StreamingJoinHelper|WatermarkTracker|"
    r"TransformWithStateChaining|Timer)(Base|Suite)"
)
"""Suites of which every test is listed, whether or not it starts a query."""
OTHER_SUITES = re.compile(
    r"(AcceptsLatestSeenOffset|FileStreamSource|PythonStreamingDataSource\w*|Rate\w+|StreamingDataSourceV2|TextSocketStream|"  # sources
    r"ConsoleWriteSupport|FileStreamS(ink|tress)|Foreach(BatchSink|Writer)|MemorySink|ReportSinkMetrics|StreamingSinkEvolution|"  # sinks
    r"Continuous\w*|"  # another engine, without watermarks and state
    r"(Client|Memory)?StreamingQuery(Listeners?\w*|Manager)?|DataStream\w+|HDFSMetadataLog|ProcessingTimeExecutor|"  # the API
    r"TwsTester\w*)Suite"  # no query
)
"""Suites of the packages `streaming` of which only tests that speak of watermarks are listed."""

TestEntries = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class CatalogueComparison:
    """The tests of a release against the catalogue."""

    new: tuple[ScalaTest, ...]
    """Listed, and in no entry."""
    gone: tuple[str, ...]
    """Ids of entries whose test the release does not have."""


def is_listed(test: ScalaTest) -> bool:
    if WHOLE_SUITES.fullmatch(test.suite) or re.search("watermark", test.name + test.text, re.IGNORECASE):
        return True
    return test.starts_query and "streaming" in test.package.split(".") and not OTHER_SUITES.fullmatch(test.suite)


def all_tests(jars: Iterable[Path]) -> Iterator[ScalaTest]:
    for jar in jars:
        with zipfile.ZipFile(jar) as opened:
            for name in sorted(opened.namelist()):
                if name.endswith(".scala"):
                    yield from scala_tests(opened.read(name).decode())


def is_of(test: ScalaTest, entry: Mapping[str, str]) -> bool:
    """Whether the entry is this test; what a name leaves open (``$timeout``) matches any text."""
    if test.suite != entry["suite"]:
        return False
    parts = re.split(r"\$(?:\{[^}]*\}|\w+)", test.name)
    return bool(re.fullmatch(".+".join(map(re.escape, parts)), entry["test"]))


def compare(tests: Iterable[ScalaTest], catalogue: TestEntries) -> CatalogueComparison:
    found = tuple(tests)
    by_suite: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    for entry in catalogue.values():
        by_suite[entry["suite"]].append(entry)
    listed = filter(is_listed, found)
    new = [test for test in listed if not any(is_of(test, entry) for entry in by_suite[test.suite])]
    tests_by_suite: dict[str, list[ScalaTest]] = defaultdict(list)
    for test in found:
        tests_by_suite[test.suite].append(test)
    ours = ((id, entry) for id, entry in catalogue.items() if "source" not in entry)
    gone = [id for id, entry in ours if not any(is_of(test, entry) for test in tests_by_suite[entry["suite"]])]
    return CatalogueComparison(tuple(dict.fromkeys(new)), tuple(gone))


def entries_for(new: Iterable[ScalaTest], catalogue: TestEntries) -> str:
    """YAML for the end of the catalogue: without a mirror, each of them counts as not carried."""
    last = max((int(id[1:4]) for id in catalogue), default=0)
    text = ""
    for number, test in enumerate(new, last + 1):
        text += f"\nT{number:03}:\n  suite: {test.suite}\n  category: other\n  visible: BB\n"
        text += f'  test: {json.dumps(test.name, ensure_ascii=False)}\n  states: "not read yet"\n'
    return text


class NoSources(Exception):
    """The test sources of a release cannot be had."""


def newest_release(central: str = CENTRAL) -> str:
    """The newest release on Maven Central; previews do not count. Raises ``NoSources`` if Maven Central does not answer."""
    metadata = ElementTree.fromstring(_get(f"{central}/{ARTIFACTS[0]}/maven-metadata.xml"))
    versions = [version.text or "" for version in metadata.iter("version")]
    return max((version for version in versions if re.fullmatch(r"\d+\.\d+\.\d+", version)), key=Version)


def download(version: str, folder: Path, central: str = CENTRAL) -> list[Path]:
    """Download the jars with the test sources of a release into this folder; raises ``NoSources``."""
    jars = []
    for artifact in ARTIFACTS:
        jar = folder / f"{artifact}-{version}-test-sources.jar"
        jar.write_bytes(_get(f"{central}/{artifact}/{version}/{jar.name}"))
        jars.append(jar)
    return jars


def _get(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=300) as answer:
            return bytes(answer.read())
    except OSError as error:  # and its kinds: no such file, no network, a timeout
        raise NoSources(
            f"cannot download {address} ({error}); download the jars by hand and pass --jars FOLDER"
        ) from None


def _tests(version: str | None, folder: Path | None, central: str) -> tuple[str, tuple[ScalaTest, ...]]:
    """What was read, and its tests."""
    if folder is not None:
        jars = sorted(folder.glob("*.jar"))
        if not jars:
            raise NoSources(f"{folder} has no jar: pass a folder with test-sources jars")
        return str(folder), tuple(all_tests(jars))
    with tempfile.TemporaryDirectory() as downloaded:
        release = version or newest_release(central)
        return f"Spark {release}", tuple(all_tests(download(release, Path(downloaded), central)))


def main(arguments: list[str] | None = None, catalogue_file: Path = CATALOGUE, central: str = CENTRAL) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", nargs="?", help="a release of Spark; the newest if absent")
    parser.add_argument("--jars", type=Path, help="a folder with test-sources jars; nothing is downloaded")
    parser.add_argument("--add", action="store_true", help="write the new tests to the catalogue")
    parser.add_argument("--show", metavar="ID", help="print the source of one test")
    given = parser.parse_args(arguments)
    catalogue = yaml.safe_load(catalogue_file.read_text(encoding="utf-8"))
    if given.show and given.show not in catalogue:
        parser.error(f"--show: {given.show} is not in {catalogue_file.name}")
    try:
        release, tests = _tests(given.version, given.jars, central)
    except NoSources as error:
        print(error, file=sys.stderr)
        return 3
    if given.show:
        print(*(test.text for test in tests if is_of(test, catalogue[given.show])), sep="\n\n")
        return 0
    found = compare(tests, catalogue)
    listed = sum(map(is_listed, tests))
    print(
        f"{release}: {len(tests)} tests, {listed} listed; {len(found.new)} not in the catalogue, {len(found.gone)} gone"
    )
    for test in found.new:
        print(f"  new   {test.suite}: {test.name}")
    for id in found.gone:
        print(f"  gone  {id} {catalogue[id]['suite']}: {catalogue[id]['test']}")
    if given.add and found.new:
        with catalogue_file.open("a", encoding="utf-8") as file:
            file.write(entries_for(found.new, catalogue))
        return 0
    return 1 if found.new else 0


if __name__ == "__main__":
    sys.exit(main())
