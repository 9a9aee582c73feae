"""The published schemas of the messages are those of the code, and what the driver gets has no expectation in it."""

import json
from pathlib import Path

import jsonschema

import harness
from conformance.core.operations import STATE_FUNCTIONS, STATEFUL_PROCESSORS
from conformance.suite import discovery
from harness.driver import state_functions as driver
from harness.engine.protocol import StepRequest, schemas
from harness.engine.request import request_for
from tests.support.effort import sample
from tests.support.whole_suite import whole_suite

PUBLISHED = Path(harness.__file__).parent / "engine" / "messages"


def test_the_published_schemas_are_those_of_the_code():
    published = {
        path.name.removesuffix(".schema.json"): json.loads(path.read_text()) for path in PUBLISHED.glob("*.json")
    }
    assert published == dict(schemas()), "run: python -m tools.regenerate"


def test_every_case_of_the_suite_makes_a_valid_request_without_what_the_engine_is_expected_to_say(tmp_path):
    cases, schema = whole_suite().cases, dict(schemas())["CaseRequest"]
    validator, validated = jsonschema.Draft202012Validator(schema), {case.id for case in sample(cases, 100)}
    known = {field.alias or name for name, field in StepRequest.model_fields.items()}
    for case in cases:
        said = json.loads(request_for(case, str(tmp_path)).model_dump_json(by_alias=True))
        if case.id in validated:  # they are values of the model from which the schema is made
            validator.validate(said)
        assert {key for step in said["steps"] for key in step} <= known
        assert not {"differs", "title", "why", "behaviour", "expect"} & set(said)
    assert not any(case.needs_code for case in cases)


def read(tmp_path, steps, streams="a: t TIMESTAMP\n  b: t TIMESTAMP"):
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "x.yaml").write_text(
        f"title: x\nstreams:\n  {streams}\nquery:\n  - from: a\n  - union:\n      - from: b\nsteps:\n{steps}"
    )
    loaded = discovery.load([folder])
    loaded.raise_for_problems()
    return loaded.cases[0]


def test_a_stream_that_an_add_does_not_name_gets_nothing(tmp_path):
    case = read(tmp_path, '  - add: {a: [["12:00"]]}\n    expect: {rows: [["12:00"]]}\n')
    (step,) = request_for(case, str(tmp_path)).steps
    assert step.batches == ({"a": (({"t": "1970-01-01T12:00:00.000000Z"},),)},)


def test_a_stream_that_a_backlog_entry_does_not_name_gets_a_batch_of_no_rows(tmp_path):
    case = read(tmp_path, "  - backlog: [{a: [[1]]}, {b: [[2]]}]\n    expect: {rows: [[1], [2]]}\n")
    (step,) = request_for(case, str(tmp_path)).steps
    assert [sorted(batch) for batch in step.batches] == [["a", "b"], ["a", "b"]]
    assert step.batches[0]["b"] == ((),)


def test_a_micro_batch_always_has_as_many_files_as_the_most_partitions(tmp_path):
    case = read(
        tmp_path,
        "  - add: {a: {partitions: [[[1]], [], [[2]]]}}\n    expect: {rows: [[1], [2]]}\n"
        "  - add: {b: [[3]]}\n    expect: {rows: [[3]]}\n",
    )
    assert {name: stream.files for name, stream in request_for(case, str(tmp_path)).streams.items()} == {"a": 3, "b": 1}


def test_the_state_functions_of_the_language_are_those_of_the_driver():
    assert set(STATE_FUNCTIONS) == set(driver.STATE_FUNCTIONS)
    assert set(STATEFUL_PROCESSORS) == set(driver.STATEFUL_PROCESSORS)
