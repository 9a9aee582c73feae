"""The catalogues that cases refer to: complete, well formed, and read alike by YAML 1.1 and YAML 1.2."""

from __future__ import annotations

import re
from collections import Counter
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

BEHAVIOURS = {
    "watermark computation": """
        wm-formula wm-ms-truncation wm-one-batch-lag wm-initial-zero epoch-zero-late wm-monotonic
        wm-advances-on-any-batch-with-rows future-outlier null-event-time-stats null-event-time-not-late
        multi-node-stats delay-months-31 delay-parsing delay-zero delay-negative delay-empty-pyspark
    """,
    "column rules and metadata": """
        bad-column wrong-type ntz-rejected wm-on-window-struct nested-column metadata-alias window-inherits window-time
        window-of-window wm-after-agg-ignored wm-other-column redefine-wm two-event-time-columns batch-noop
        stateless-no-drop sql-watermark-clause
    """,
    "late filtering": """
        late-predicate late-wm-current late-wm-previous late-after-restart late-per-operator late-at-agg late-at-dedup
        late-at-join late-at-session late-complete-mode late-update-mode late-fmgws late-tws late-limit limit-reads-no-further late-none
        dedup-projection-bug
    """,
    "eviction and aggregation output": """
        evict-predicate append-emit-once append-needs-wm only-first-aggregate-checked update-emit-changed
        update-reappear complete-all group-by-window-plus-key group-by-raw-ts agg-empty-output negative-time-windows
        numRowsRemoved allUpdatesTimeMs limit-modes sort-modes expressions-of-batch-only
    """,
    "no-data batches and triggers": """
        no-data-batch no-data-needs-plan no-data-not-if-data no-data-once trigger-once available-now
        processing-time-trigger idle-progress foreachBatch continuous real-time-watermark real-time-refusals
    """,
    "multiple inputs": """
        min-policy max-policy policy-invalid-value idle-stream-blocks restart-loses-node-values union-of-watermarked
        self-union pruned-node stream-static stream-in-a-subquery
    """,
    "chained stateful operators": """
        chain-3.0 chain-3.1–3.3 chain-3.4 chain-3.5+ semi-below-aggregation chain-redundant chain-check-exempt
        chain-update-join-4.2 prop-rules chain-timing chain-window-time-boundary allowMultiple=false
    """,
    "stream-stream joins": """
        join-late join-state-key join-state-value join-one-sided join-conditions-supported inner-emit join-pre-filter
        outer-null-timing outer-needs-wm outer-one-side-wm-incorrect outer-matched-flag same-batch-evict-match semi-once
        join-inferred-filter self-join join-3way join-no-equality join-null-keys skipNulls join-format join-modes
        left-anti-join
    """,
    "deduplication": """
        dedup-ts-in-key dedup-ts-not-in-key dedup-no-wm distinct-api-vs-sql dedup-window-key dedup-within
        dedup-within-needs-wm dedup-within-pruned-ts dedup-order dedup-key-order dedup-incremental-cleanup
        except-of-a-stream
    """,
    "session windows": """
        session-extent session-late session-evict session-append session-complete session-dynamic-gap
        session-local-merge session-complete-metrics
    """,
    "arbitrary state": """
        fmgws-timeout-strict fmgws-data-cancels-timeout fmgws-set-timeout-past fmgws-getCurrentWatermarkMs
        fmgws-needs-wm fmgws-modes aipws tws-timer-inclusive tws-late-none tws-event-time-col tws-ttl tws-rocksdb-only
        tws-over-rows tws-processing-time-timer processing-time-timeout
    """,
    "recovery": """
        wm-in-offset-and-commit-log replay-uncommitted policy-pinned state-format-pinned delay-change-on-restart
        upgrade-3.3→3.4 old-checkpoints state-dir-missing crash-at-any-file-operation named-sources
        stateless-shuffle-partitions named-sinks offline-repartition damaged-snapshot changelog-on-and-off
        checkpoint-moves tws-state-schema state-handed-over starting-offsets exactly-once-sinks changed-table
    """,
}

# category: visible as BB, BB*, INT, OTHER
LAST_SPARK_TEST = 869
SPARK_TESTS = {
    "arbitrary-state": (7, 17, 73, 116),
    "chained-aggregation": (12, 3, 0, 0),
    "config": (3, 1, 2, 0),
    "dedup": (14, 4, 3, 23),
    "eviction": (3, 4, 0, 0),
    "join-delay": (38, 1, 7, 6),
    "late-drops": (1, 3, 0, 0),
    "metadata-propagation": (14, 1, 23, 0),
    "metrics-progress": (11, 0, 25, 6),
    "multi-watermark-policy": (3, 0, 1, 0),
    "no-data-batch": (5, 1, 0, 0),
    "other": (2, 0, 64, 49),
    "output-modes": (17, 1, 0, 23),
    "recovery": (5, 8, 150, 97),
    "session-window": (13, 0, 1, 0),
    "timestamp-types": (7, 0, 0, 0),
    "unsupported-op-error": (135, 16, 4, 30),
}


class OneKeyOnce(yaml.SafeLoader):
    """A loader that refuses a key that is there twice; PyYAML takes the last one silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = Counter(key.value for key, _ in node.value)
        twice = [key for key, times in keys.items() if times > 1]
        assert not twice, f"twice in one mapping: {twice}"
        return super().construct_mapping(node, deep)


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
    node = yaml.compose((ROOT / path).read_text(encoding="utf-8"))
    plain = [
        t.value
        for t in yaml.scan((ROOT / path).read_text(encoding="utf-8"))
        if isinstance(t, yaml.ScalarToken) and t.plain
    ]
    assert node is not None
    assert [p for p in plain if re.fullmatch(r"(?i)y|n|yes|no|on|off|null|~|[-+.]?\d.*", p)] == []


@pytest.mark.parametrize("section", BEHAVIOURS)
def test_every_behaviour_is_there_in_its_section(section: str, behaviours: dict[str, Any]) -> None:
    assert [slug for slug, entry in behaviours.items() if entry["section"] == section] == BEHAVIOURS[section].split()


def test_no_other_section(behaviours: dict[str, Any]) -> None:
    assert {entry["section"] for entry in behaviours.values()} == set(BEHAVIOURS)


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
    counts = Counter((entry["category"], entry["visible"]) for entry in tests.values())
    assert {c for c, _ in counts} == set(SPARK_TESTS)
    visible = ("BB", "BB*", "INT", "OTHER")
    assert {c: tuple(counts[c, how] for how in visible) for c in SPARK_TESTS} == SPARK_TESTS


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
