"""What people may ask for, and what they get."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

from conformance.core.versions import SparkVersion
from harness.errors import HarnessError
from harness.targets import targets as all_targets
from harness.targets.installed import InstalledSpark
from harness.targets.targets import JavaRequirement, Target, Targets, UnknownTarget


def _target(version: str, java: int, **more: Any) -> Target:
    return Target(SparkVersion.parse(version), SpecifierSet(">=3.8"), JavaRequirement(majors=(java,)), **more)


JAVA = {"3.4.0": 11, "3.4.4": 11, "3.5.0": 17, "3.5.9": 17, "4.0.5": 21}
TARGETS = Targets(tuple(_target(version, java, image=f"spark:{version}") for version, java in JAVA.items()))
BY_NAME = Targets((*(_target(version, 8, by_name=True) for version in ("2.4.0", "2.4.8")), *TARGETS.entries))


def _runs(*, up_to: str) -> Callable[[Target], str | None]:
    return lambda target: None if target.version <= SparkVersion.parse(up_to) else f"{target} needs Java 21"


def _chosen(*specs: str) -> list[str]:
    return [str(target.version) for target in TARGETS.select(specs, obstacle=_runs(up_to="4.0.5"))]


@pytest.mark.parametrize(
    ("specs", "versions"),
    [
        (["3.5.0"], ["3.5.0"]),
        (["spark-3.5.0"], ["3.5.0"]),
        (["3.5"], ["3.5.9"]),
        (["3.5.4"], ["3.5.4"]),
        (["newest"], ["4.0.5"]),
        (["lines"], ["3.4.4", "3.5.9", "4.0.5"]),
        (["all"], ["3.4.0", "3.4.4", "3.5.0", "3.5.9", "4.0.5"]),
        ([">=3.5"], ["3.5.0", "3.5.9", "4.0.5"]),
        ([">=3.4.1,<4"], ["3.4.4", "3.5.0", "3.5.9"]),
        (["==3.4.*"], ["3.4.0", "3.4.4"]),
        (["3.4,4.0"], ["3.4.4", "4.0.5"]),
        (["4.0", "3.4", "3.4.4", "newest"], ["3.4.4", "4.0.5"]),
        ([], []),
    ],
)
def test_select(specs: list[str], versions: list[str]) -> None:
    assert _chosen(*specs) == versions


@pytest.mark.parametrize("spec", ["lines", "all", "newest"])
def test_words_leave_out_what_is_chosen_by_name(spec: str) -> None:
    assert BY_NAME.select([spec]) == TARGETS.select([spec])


@pytest.mark.parametrize(
    ("spec", "versions"),
    [
        ("2.4", ["2.4.8"]),
        ("2.4.0", ["2.4.0"]),
        ("spark-2.4.8", ["2.4.8"]),
        ("2.4.5", ["2.4.5"]),
        ("<3.4.4", ["2.4.0", "2.4.8", "3.4.0"]),
    ],
)
def test_a_version_a_line_and_a_range_choose_by_name(spec: str, versions: list[str]) -> None:
    found = BY_NAME.select([spec])
    assert [str(target.version) for target in found] == versions
    assert found[0].by_name


def test_a_machine_that_runs_nothing_else_gets_no_newest_that_is_chosen_by_name() -> None:
    with pytest.raises(HarnessError, match="This machine cannot run any target"):
        BY_NAME.select(["newest"], obstacle=_runs(up_to="2.4.8"))


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("3.6", "Did you mean 3.5"),
        ("3.5.90", "Did you mean 3.5.0 or 3.5.9?"),
        ("newst", "Did you mean newest?"),
        ("instaled", "Did you mean installed?"),
        (">=5", "contains no target"),
        (">=three", "is not a version range"),
        ("", "is not a target"),
    ],
)
def test_what_means_nothing_is_refused_with_what_may_have_been_meant(spec: str, says: str) -> None:
    with pytest.raises(UnknownTarget) as caught:
        _chosen(spec)
    assert caught.value.exit_code == 2
    assert repr(spec) in str(caught.value)
    assert says in str(caught.value)
    assert "Targets: 3.4.0, 3.4.4, 3.5.0, 3.5.9, 4.0.5" in str(caught.value)


def test_newest_is_the_newest_that_runs_here_and_says_why_it_is_not_the_newest_there_is() -> None:
    choice = TARGETS.choose(["newest"], obstacle=_runs(up_to="3.5.9"))
    assert [target.name for target in choice.targets] == ["spark-3.5.9"]
    (note,) = choice.notes
    assert note == "newest means spark-3.5.9 here: this machine cannot run spark-4.0.5.\nspark-4.0.5 needs Java 21"
    assert TARGETS.choose(["newest"], obstacle=_runs(up_to="4.0.5")).notes == ()


def test_newest_where_nothing_runs_is_a_failure_of_the_surroundings() -> None:
    with pytest.raises(HarnessError, match="needs Java 21") as caught:
        TARGETS.select(["newest"], obstacle=_runs(up_to="3.0.0"))
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("version", "name", "java"),
    [
        ("3.5.0-amzn-1", "installed-3.5.0-amzn-1", 17),
        ("3.4.1", "installed-3.4.1", 11),
        ("4.7.0.dev1", "installed-4.7.0.dev1", 21),
        ("3.1.2", "installed-3.1.2", 11),
    ],
)
def test_the_installed_target_needs_what_its_line_or_the_nearest_needs(
    version: str, name: str, java: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = InstalledSpark(version, Path("/site/pyspark"), Path("/site/pyspark"))
    monkeypatch.setattr(all_targets.installed, "find", lambda: found)
    (target,) = TARGETS.select(["installed"])
    assert target.name == name
    assert target.java.majors == (java,)
    assert target.installed == found
    assert target.image is None


def test_the_installed_target_stands_beside_the_release_of_the_same_version(monkeypatch: pytest.MonkeyPatch) -> None:
    found = InstalledSpark("3.5.9", Path("/site/pyspark"), Path("/site/pyspark"))
    monkeypatch.setattr(all_targets.installed, "find", lambda: found)
    assert [target.name for target in TARGETS.select(["installed", "3.5.9"])] == ["spark-3.5.9", "installed-3.5.9"]
