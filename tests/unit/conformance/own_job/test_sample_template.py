"""A template is a sample that can be read, whatever the types of its columns."""

from itertools import pairwise
from pathlib import Path

from conformance.core.spark_types import TYPE_NAMES, parse_schema
from conformance.own_job.program import as_records
from conformance.own_job.sample import read_sample
from conformance.own_job.sample_template import template

NESTED = {
    "array": "ARRAY<STRUCT<a: INT>>",
    "map": "MAP<STRING, DATE>",
    "struct": "STRUCT<t: TIMESTAMP, m: MAP<INT, INT>>",
}


def test_a_template_of_columns_of_every_type_is_read(tmp_path: Path) -> None:
    ddl = ", ".join(f"c{number} {NESTED.get(name, name)}" for number, name in enumerate(TYPE_NAMES))
    file = tmp_path / "a.jsonl"
    file.write_text(template(parse_schema(ddl)))
    sample = read_sample("a", file, ddl=ddl)
    assert len(sample.rows) == 3
    lacking = {TYPE_NAMES[number] for number, value in enumerate(sample.rows[0]) if value is None}
    assert lacking == {"binary"}
    times = sample.instants
    assert [later - earlier for earlier, later in pairwise(times)] == [600_000_000] * 2


def test_a_template_of_a_topic_has_records(tmp_path: Path) -> None:
    file = tmp_path / "clicks.jsonl"
    file.write_text(template(None))
    sample = as_records(read_sample("clicks", file))
    assert sample.rows[0][sample.schema.fields.index(next(f for f in sample.schema.fields if f.name == "value"))]
