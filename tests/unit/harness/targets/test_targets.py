"""What `harness/targets/targets.yaml` says."""

from importlib.resources import files
from itertools import pairwise

import pytest
import yaml
from packaging.version import Version

from conformance.core.versions import released_on, releases
from harness.targets.targets import Targets

CATALOGUE = Targets.load().entries


def test_each_target_is_a_release_in_order_and_none_is_there_twice() -> None:
    versions = [target.version for target in CATALOGUE]
    assert versions == sorted(set(versions))
    assert {*versions} <= {*releases()}


def test_the_newest_patch_of_every_line_is_a_target() -> None:
    newest = {release.line: release for release in releases()}
    assert [target.version for target in Targets.load().every_line()] == list(newest.values())


def test_the_image_is_named_by_a_tag_that_does_not_move() -> None:
    for target in CATALOGUE:
        if target.image is not None:
            repository, tag = target.image.split(":")
            assert repository.startswith("apache/spark"), target
            assert str(target.version) in tag
            assert "java" in tag or repository == "apache/spark-py", target


def test_the_range_of_pythons_is_closed_on_both_sides() -> None:
    """An open range would accept the next Python release untested."""
    for target in CATALOGUE:
        assert Version("3.6.15") not in target.python, target
        assert Version("3.30.0") not in target.python, target
        assert any(Version(f"3.{minor}.5") in target.python for minor in range(7, 20)), target


def test_a_machine_without_java_can_run_every_target() -> None:
    chosen = Targets.load().select(["lines", "all"])
    for target in CATALOGUE:
        need = target.java
        if target.by_name:  # the others are what `--spark lines` and `--spark all` mean, on any machine
            assert target not in chosen
        else:
            assert need.embedded is not None, target
            assert int(need.embedded.split("==")[1].split(".")[0]) in need.majors, target
            assert set(need.embedded_missing) <= set(need.modules), target


def test_every_key_of_an_entry_is_read() -> None:
    catalogue = yaml.safe_load((files("harness.targets") / "targets.yaml").read_text(encoding="utf-8"))
    assert catalogue.keys() == {"lines", "targets"}
    for entry in (*catalogue["lines"].values(), *catalogue["targets"]):
        known = "spark python java image build packages connect connect_unsupported pipelines chosen"
        assert entry.keys() <= {*known.split()}
        assert entry.get("chosen", "by name") == "by name"
        assert entry.get("java", {}).keys() <= {"majors", "modules", "embedded", "embedded_missing", "options"}


def test_a_release_outside_the_catalogue_has_the_needs_of_its_line() -> None:
    targets = Targets.load()
    (target,) = targets.select(["3.5.8"])
    (neighbour,) = targets.select(["3.5"])
    assert (str(target.version), target.python, target.java) == ("3.5.8", neighbour.python, neighbour.java)


def test_releases_come_in_the_order_of_time_within_a_line() -> None:
    days = {release: released_on(release) or pytest.fail(f"{release} has no date") for release in releases()}
    for before, after in pairwise(releases()):
        assert before.line != after.line or days[before] < days[after]
