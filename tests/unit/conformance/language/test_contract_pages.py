"""The pages of the case language name each key that the reader knows and no other; their examples are read."""

import re
from pathlib import Path
from typing import get_args

import pytest

from conformance.core.operations import STATE_FUNCTIONS, STATEFUL_PROCESSORS
from conformance.judging.verdict import Status
from conformance.language.catalogue import DESCRIPTIONS
from conformance.language.json_schema import json_schema
from conformance.language.reader import read_any
from conformance.language.source import ProblemReport, read_yaml
from conformance.language.version_differences import DIFFERS

DOCS = Path(__file__).parents[4] / "docs"
FIRST, FOLDER = DOCS / "case-language.md", DOCS / "case-language"
SCHEMA = json_schema()
DEFINITIONS = SCHEMA["definitions"]
EXPECTATION = DEFINITIONS["expectation"]["properties"]
CASE, POLICY_CASE = SCHEMA["else"]["else"]["properties"], SCHEMA["then"]["properties"]


def keys(page, heading=None):
    """The names that the first column of each table below a heading begins with, or of each table of the page."""
    text = page.read_text(encoding="utf-8")
    if heading is not None:
        text = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| ([^|]*`[^|]*) \|", text.replace("\\|", "/"), re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([\w-]+)", cell)}


def alternatives(shape):
    """The key that tells each of several mappings from the others."""
    return {one["required"][0] for one in shape["oneOf"]}


def properties_of(shape, key):
    """The keys of every mapping within ``shape`` that is the value of ``key``."""
    found = set()
    if isinstance(shape, dict):
        found |= set(shape.get("properties", {}).get(key, {}).get("properties", {}))
        shape = list(shape.values())
    return found.union(*(properties_of(part, key) for part in shape)) if isinstance(shape, list) else found


@pytest.mark.parametrize(
    ("page", "heading", "expected"),
    [
        (FIRST, "Top-level keys", {*CASE, "matrix"}),
        (FOLDER / "steps.md", None, alternatives(DEFINITIONS["step"])),
        (FOLDER / "expectations.md", None, {*EXPECTATION, "class", "message", "stage"}),
        (FOLDER / "expectations.md", "Errors", {*EXPECTATION["error"]["properties"]}),
        (FOLDER / "variants.md", None, {*DESCRIPTIONS}),
        (FOLDER / "statuses.md", None, {*get_args(Status)}),
        (FOLDER / "state-functions.md", "`applyInPandasWithState` (3.4+)", {*STATE_FUNCTIONS}),
        (FOLDER / "state-functions.md", "`transformWithState` (4.0+)", {*STATEFUL_PROCESSORS}),
    ],
)
def test_the_tables_name_exactly_what_there_is(page, heading, expected):
    assert keys(page, heading) == expected


def test_the_keys_of_a_stream():
    (declared,) = (one for one in CASE["streams"]["additionalProperties"]["anyOf"] if "properties" in one)
    assert keys(FOLDER / "streams.md", "Streams") == {*declared["properties"]}


def test_the_operations():
    parts = {key for one in DEFINITIONS["operation"]["oneOf"] for key in one["properties"]}
    named = keys(FOLDER / "queries.md")
    assert alternatives(DEFINITIONS["operation"]) <= named
    # `from` and its `name` begin a pipeline, `with` is of a call, and `sink` is a key of the case.
    assert named - {"from", "name", "with", "sink"} <= parts


def test_the_keys_of_a_restart():
    text = (FOLDER / "restarts.md").read_text(encoding="utf-8")
    (restart,) = (one["properties"] for one in DEFINITIONS["step"]["oneOf"] if "restart" in one["required"])
    (written,) = (one["properties"] for one in restart["restart"]["anyOf"] if "properties" in one)
    inner = properties_of(restart, "change") | properties_of(restart, "damage")
    assert {"how", "change", "damage"} < set(written)
    assert {"conf", "query", "truncated"} < inner
    assert {key for key in (*written, *inner) if not re.search(rf"\b{key}\b", text)} == set()


def test_the_keys_of_a_batch():
    text = (FOLDER / "expectations.md").read_text(encoding="utf-8")
    (entry,) = re.findall(r"An entry of `batches` is `\{([^}]*)\}`", text)
    assert {key.partition(":")[0] for key in entry.split(", ")} == {*DEFINITIONS["batch"]["properties"]}


def test_the_keys_of_a_policy_case():
    shared = {"title", "strength", "links", "why", "mirrors", "tags"}
    entry = DEFINITIONS["entry"]
    expected = {key for one in entry["oneOf"] for key in one["properties"]["expect"]["properties"]}
    assert keys(FOLDER / "policy-cases.md") == {*POLICY_CASE} - shared | alternatives(entry) | expected


def test_the_whole_example_is_a_case(tmp_path):
    (example,) = re.findall(r"```yaml\n(.*?)```", FIRST.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "example.yaml").write_text(example, encoding="utf-8")
    (case,) = read_any(tmp_path / "example.yaml", "example")
    assert len(case.steps) == 3


def test_the_entries_of_versions_that_differ_are_read(tmp_path):
    text = (FOLDER / "versions-that-differ.md").read_text(encoding="utf-8")
    whole, one = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    for number, entries in enumerate((whole.removeprefix("differs:\n"), one)):
        file = tmp_path / f"{number}.yaml"
        file.write_text(entries, encoding="utf-8")
        report = ProblemReport(file)
        assert DIFFERS.check(read_yaml(file, report), report), report.problems
