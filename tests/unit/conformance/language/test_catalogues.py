"""The catalogues that cases refer to: complete, well formed, and read alike by YAML 1.1 and YAML 1.2."""

import re
from collections import Counter
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.core.versions import VersionRange, falling_into, releases

ROOT = Path(__file__).parents[4]
CATALOGUES = [
    "cases/behaviours.yaml",
    "cases/statements.yaml",
    "cases/spark-tests.yaml",
    "cases/tags.yaml",
    "conformance/core/metrics.yaml",
]

SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser of libyaml, where it is there, takes a tenth of the time."""
LAST_SPARK_TEST = 869
CATEGORIES = """
    arbitrary-state chained-aggregation config dedup eviction join-delay late-drops metadata-propagation metrics-progress
    multi-watermark-policy no-data-batch other output-modes recovery session-window timestamp-types unsupported-op-error
"""
"""Of Spark's tests."""


class OneKeyOnce(SafeLoader):
    """A loader that refuses a key that is there twice; PyYAML takes the last one silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = Counter(key.value for key, _ in node.value)
        twice = [key for key, times in keys.items() if times > 1]
        assert not twice, f"twice in one mapping: {twice}"
        return super().construct_mapping(node, deep)


@cache
def read(path: str) -> dict[str, Any]:
    found = yaml.load((ROOT / path).read_text(encoding="utf-8"), OneKeyOnce)
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def behaviours() -> dict[str, Any]:
    return read("cases/behaviours.yaml")


@pytest.mark.parametrize("path", CATALOGUES)
def test_begins_with_a_comment_that_says_what_it_is(path: str) -> None:
    assert re.match(r"# \w.{20}", (ROOT / path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", CATALOGUES)
def test_reads_alike_in_yaml_1_1_and_1_2(path: str) -> None:
    """Unquoted scalars are text in both, or the true and false of both: no 12:00, no 3.1, no `on`."""

    def scalars(value: Any) -> list[Any]:
        if isinstance(value, dict):
            return [s for pair in value.items() for part in pair for s in scalars(part)]
        return [s for item in value for s in scalars(item)] if isinstance(value, list) else [value]

    assert [s for s in scalars(read(path)) if not isinstance(s, str | bool)] == []
    tokens = yaml.scan((ROOT / path).read_text(encoding="utf-8"), SafeLoader)
    plain = [token.value for token in tokens if isinstance(token, yaml.ScalarToken) and token.plain]
    assert plain
    assert [p for p in plain if re.fullmatch(r"(?i)y|n|yes|no|on|off|null|~|[-+.]?\d.*", p)] == []


def test_the_behaviours_of_a_section_stand_together_in_a_chapter(behaviours: dict[str, Any]) -> None:
    chapters = [(int(entry["number"].partition(".")[0]), entry["section"]) for entry in behaviours.values()]
    found = [chapter for chapter, _ in groupby(chapters)]
    assert [number for number, _ in found] == [*range(1, 13)]
    assert len({section for _, section in found}) == 12


def test_behaviours_have_no_other_keys(behaviours: dict[str, Any]) -> None:
    needed = {"number", "section", "sentence", "versions", "sources"}
    optional = {"clauses", "confs", "reachable", "reason", "rules", "why"}
    assert {slug for slug, entry in behaviours.items() if not needed <= set(entry) <= needed | optional} == set()


def test_every_behaviour_is_one_sentence(behaviours: dict[str, Any]) -> None:
    one = re.compile(r"[A-Za-z].*\w\.")
    new = re.compile(r"[.!?]\s")
    texts = {slug: entry[key] for slug, entry in behaviours.items() for key in ("sentence", "why") if key in entry}
    assert [slug for slug, text in texts.items() if not one.fullmatch(text) or new.search(text)] == []


def test_behaviours_hold_on_versions_that_exist(behaviours: dict[str, Any]) -> None:
    ranges = {slug: entry["versions"] for slug, entry in behaviours.items() if entry["versions"] != "all"}
    assert [slug for slug, text in ranges.items() if not list(falling_into(VersionRange.parse(text)))] == []


def test_every_behaviour_has_sources(behaviours: dict[str, Any]) -> None:
    good = re.compile(r"SPARK-\d{4,5}|https://\S+|[A-Z]\w+|pyspark(\.\w+)+")
    for slug, entry in behaviours.items():
        assert entry["sources"], slug
        assert all(good.fullmatch(source) for source in entry["sources"]), slug
        assert len(set(entry["sources"])) == len(entry["sources"]), slug
        assert all(re.fullmatch(r"spark\.sql\.\w[\w.]+", conf) for conf in entry.get("confs", ())), slug


def test_only_what_is_out_of_reach_says_so_and_why(behaviours: dict[str, Any]) -> None:
    assert {slug for slug, entry in behaviours.items() if ("reachable" in entry) != ("why" in entry)} == set()
    assert {entry.get("reachable", False) for entry in behaviours.values()} == {False}


def test_fifty_three_statements() -> None:
    statements = read("cases/statements.yaml")
    assert list(statements) == [f"S{n:02}" for n in range(1, 54)]
    assert all(
        set(entry) - {"reason"} == {"source", "concerns", "statement"} and entry["statement"]
        for entry in statements.values()
    )
    assert Counter(entry["source"] for entry in statements.values()) == {"A": 20, "B": 6, "C": 7, "D": 8, "E": 12}
    concerned = {key: entry["concerns"] for key, entry in statements.items()}
    assert [key for key, what in concerned.items() if what == "kafka"] == ["S26"]
    assert [key for key, what in concerned.items() if what == "policies"] == ["S20", *(f"S{n}" for n in range(34, 42))]
    assert set(concerned.values()) == {"spark", "kafka", "policies"}


def test_the_tests_of_spark() -> None:
    tests = read("cases/spark-tests.yaml")
    assert sorted({id.partition(".")[0] for id in tests}) == [f"T{n:03}" for n in range(1, LAST_SPARK_TEST + 1)]
    assert all(re.fullmatch(r"T\d{3}(\.\d+)?", id) for id in tests)
    assert {frozenset(set(entry) - {"reason", "source", "api", "apart", "case"}) for entry in tests.values()} == {
        frozenset({"suite", "category", "visible", "test", "states"})
    }
    assert all(text for entry in tests.values() for text in entry.values())
    assert {entry["category"] for entry in tests.values()} == {*CATEGORIES.split()}
    assert {entry["visible"] for entry in tests.values()} == {"BB", "BB*", "INT", "OTHER"}


def test_an_entry_is_one_test_of_spark() -> None:
    """Tests of one text, such as the same one in two output modes, are numbered; no entry is there twice."""
    tests = read("cases/spark-tests.yaml")
    groups = Counter(id.partition(".")[0] for id in tests if "." in id)
    assert {group for group, size in groups.items() if group in tests or size < 2} == set()
    named = Counter((entry["suite"], entry["test"]) for entry in tests.values())
    assert {name for name, times in named.items() if times > 1} == set()
    assert {entry["source"] for entry in tests.values() if "source" in entry} == {"python", "4.3"}


def test_tags_have_a_meaning() -> None:
    tags = read("cases/tags.yaml")
    assert list(tags) == sorted(tags)
    assert all(re.fullmatch(r"[a-z][a-z-]*", tag) and meaning.endswith(".") for tag, meaning in tags.items())


def test_metrics_arrived_in_a_release() -> None:
    metrics = read("conformance/core/metrics.yaml")
    for name, entry in metrics.items():
        assert re.fullmatch(r"[a-z]\w+(\.\w+)*", name)
        assert set(entry) == {"since", "link"}, name
        assert entry["since"] in {release.line for release in releases()}, name
        assert re.fullmatch(r"SPARK-\d{5}", entry["link"]), name
    assert metrics["numRowsDroppedByWatermark"]["since"] == "3.1"
