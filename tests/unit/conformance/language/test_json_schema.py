"""The published JSON Schema: in step with the readers, and with the models."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel

from conformance.core import case as models
from conformance.language.case_file import CASE
from conformance.language.json_schema import ADDRESS, json_schema, rendered
from conformance.language.source import Node, ProblemReport, read_yaml
from conformance.policies.case import PolicyCase, PolicyExpectation
from conformance.suite.discovery import shipped
from tests.support.effort import sample

HERE = Path(__file__).parent
ROOT = HERE.parents[3]
VALIDATOR = jsonschema.Draft7Validator(json_schema())


def as_an_editor_sees_it(path: Path) -> Any:
    """The content with keys as text, as the YAML language server has it; None if it is not YAML."""
    node: Node | None = read_yaml(path, ProblemReport(path))
    return None if node is None else text_keys(node.plain())


def text_keys(content: Any) -> Any:
    if isinstance(content, dict):
        return {str(key): text_keys(value) for key, value in content.items()}
    return [text_keys(item) for item in content] if isinstance(content, list) else content


def errors(path: Path) -> list[str]:
    return [f"{list(error.path)}: {error.message}" for error in VALIDATOR.iter_errors(as_an_editor_sees_it(path))]


def test_the_published_schema_is_up_to_date() -> None:
    assert (shipped() / "schema.json").read_text(encoding="utf-8") == rendered(), "run: python -m tools.regenerate"


def test_it_is_draft_07() -> None:
    jsonschema.Draft7Validator.check_schema(json_schema())
    assert json_schema()["$schema"] == "http://json-schema.org/draft-07/schema#"
    newer = ("$defs", "prefixItems", "unevaluatedProperties", "dependentRequired")
    assert not [word for word in newer if f'"{word}"' in rendered()]


@pytest.mark.parametrize("path", sorted((HERE / "valid").glob("*.yaml")), ids=lambda path: path.stem)
def test_it_accepts_every_notation(path: Path) -> None:
    assert errors(path) == []


def test_it_accepts_the_cases_that_ship() -> None:
    paths = sample(sorted(shipped().glob("*/**/*.yaml")), 200)
    wrong = {path: found for path in paths if (found := errors(path))}
    assert wrong == {}


NOT_SEEN = """
    after-an-error alias-bomb backlog-with-once beside-an-error broken-sql columns-no-file-brings columns-of-views
    differs-that-repeats duplicate-keys durations expected-values kinds-of-batches matrix-inside-text
    matrix-nothing-left matrix-placeholder-in-a-value matrix-placeholders matrix-problems-of-cases
    memory-in-micro-batches names no-release not-reached nothing-to-replay older-than-any-release overlaps
    policy-parts-that-disagree policy-shorter-than-its-samples policy-that-cannot-be policy-throttle-of-another
    query-of-a-restart row-widths rows-against-batches rows-in-memory sink-in-real-time sinks sorting start-too-late
    state-of-a-processor state-of-operators streaming-confs streams-that-disagree topics-and-tables unknown-columns
    values views-of-sql
"""
BEYOND_A_SCHEMA = {*NOT_SEEN.split()}
"""What only `conformance case validate` knows: how parts of a case fit each other, and what cannot be seen in plain values."""

INVALID = {path.stem: path for path in sorted((HERE / "invalid").glob("*.yaml"))}


@pytest.mark.parametrize("name", sorted(INVALID.keys() - BEYOND_A_SCHEMA))
def test_it_rejects(name: str) -> None:
    content = as_an_editor_sees_it(INVALID[name])
    assert content is None or not VALIDATOR.is_valid(content)


@pytest.mark.parametrize("name", sorted(BEYOND_A_SCHEMA))
def test_the_list_of_what_it_cannot_know_is_exact(name: str) -> None:
    content = as_an_editor_sees_it(INVALID[name])
    assert content is None or VALIDATOR.is_valid(content)


def test_every_key_is_described() -> None:
    found: list[str] = []

    def look(schema: Any, path: str) -> None:
        if isinstance(schema, dict):
            for name, key in schema.get("properties", {}).items():
                if not key.get("description"):
                    found.append(f"{path}.{name}")
            for name, below in schema.items():
                look(below, f"{path}/{name}")
        elif isinstance(schema, list):
            for number, below in enumerate(schema):
                look(below, f"{path}/{number}")

    look(json_schema(), "")
    assert found == []


def aliases(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def defined(*path: str) -> dict[str, Any]:
    found: Any = json_schema()
    for step in path:
        found = found[step]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("model", "properties"),
    [
        (models.Expectation, ("definitions", "expectation", "properties")),
        (models.ExpectationChange, ("definitions", "expectationChange", "properties")),
        (models.ExpectedBatch, ("definitions", "batch", "properties")),
        (models.ExpectedError, ("definitions", "expectation", "properties", "error", "properties")),
        (models.ExpectedEventTime, ("definitions", "expectation", "properties", "eventTime", "properties")),
        (models.Differs, ("else", "else", "properties", "differs", "items", "properties")),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_it_has_the_keys_of_the_model(model: type[BaseModel], properties: tuple[str, ...]) -> None:
    in_the_key_bug = {"introducedBy"}
    assert set(defined(*properties)) == aliases(model) - in_the_key_bug


def test_a_case_has_the_keys_of_the_model() -> None:
    of_the_file = {"id", "path", "rowFiles", "digest", "lines", "expansion", "needsCode", "intervalMs", "notChecked"}
    in_the_streams = {"files", "topics", "tables", "tableOptions", "inMemory"}
    assert set(CASE.keys) == aliases(models.Case) - of_the_file - in_the_streams


def test_a_case_on_a_policy_has_the_keys_of_its_model() -> None:
    of_the_file = {"id", "path", "rowFiles", "digest", "lines"}
    in_the_trace = {"inputs", "clockUnit", "window"}
    assert set(defined("then", "properties")) == aliases(PolicyCase) - of_the_file - {"given", "steps"} | in_the_trace
    entry = defined("definitions", "entry")["oneOf"][0]["properties"]["expect"]["properties"]
    assert set(entry) == aliases(PolicyExpectation)


def test_a_restart_changes_what_the_model_can_hold() -> None:
    steps = defined("definitions", "step")["oneOf"]
    restart = next(step for step in steps if "restart" in step["properties"])["properties"]["restart"]
    change = restart["anyOf"][1]["properties"]["change"]
    assert set(change["properties"]) == aliases(models.RestartChange)


def test_operations_and_actions_are_alternatives_with_a_description() -> None:
    for name in ("operation", "step"):
        alternatives = defined("definitions", name)["oneOf"]
        assert len(alternatives) >= 5
        assert all(one["description"] and one["additionalProperties"] is False for one in alternatives)


def test_the_entry_for_schemastore_is_ready() -> None:
    """What https://www.schemastore.org/schema-catalog.json asks of an entry, and that it names this schema."""
    entry = json.loads((ROOT / "tools" / "schemastore" / "entry.json").read_text(encoding="utf-8"))
    assert entry.keys() == {"name", "description", "fileMatch", "url"}
    assert entry["url"] == json_schema()["$id"] == ADDRESS
    assert not entry["description"].endswith(".")
    assert all(pattern.startswith("*.watermark.") for pattern in entry["fileMatch"])
    assert ADDRESS.endswith("/main/cases/schema.json")
    assert (ROOT / "cases" / "schema.json").is_file()
