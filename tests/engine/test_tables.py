"""Real tables: cases answer through Delta and Iceberg as they do through files, also after a kill, with a backlog and with two streams."""

import pytest

from reports.results.reading import Results
from tests.engine.typed import ROOT, conformance
from tests.support.effort import full_run_only

CASES = (
    "late-drops/guide-example-in-append-mode-without-a-pause",
    "several-watermarks/lowest-watermark-counts",
    "recovery/killed-while-it-runs-counts-no-row-twice",
)


@full_run_only
@pytest.mark.parametrize(
    ("format", "package"),
    [("delta", "delta-spark_2.12 3.3.3"), ("iceberg", "iceberg-spark-runtime-3.5_2.12 1.12.0")],
)
def test_cases_answer_through_a_table_as_through_files(tmp_path, format, package):
    paths = [str(ROOT / "cases" / f"{case}.yaml") for case in CASES]
    done = conformance(tmp_path, "run", *paths, "--source", format, "--spark", "3.5.9")
    assert done.returncode == 0, done.stdout + done.stderr
    results = Results.read(tmp_path / "results.jsonl")
    assert {cell.case for cell in results.cells} == {f"{case}@{format}" for case in CASES}
    assert {cell.status for cell in results.cells} <= {"conforms", "differs"}
    (target,) = results.header.targets
    assert target.tables == package


CHOOSING = """
title: "{format} with {options}"
strength: observed
streams:
  events: {{schema: "event_time TIMESTAMP, id STRING{more}", source: {format}, {options}}}
query:
  - from: events
  - select: [{columns}]
steps:
  - backlog:
      - {{events: [["12:00", a{kind}]]}}
      - {{events: [["12:01", b{kind}]]}}
      - {{events: [["12:02", c{kind}]]}}
    expect: {{rows: [{rows}]}}
  - restart: {{how: graceful{rewritten}}}
    expect: {{rows: [{again}]}}
  - add: {{events: [["12:03", d{kind}]]}}
    expect: {{rows: [{last}]}}
"""
KINDS = ("update_preimage", "update_postimage")


@full_run_only
def test_a_stream_of_a_table_begins_and_goes_on_as_its_options_say(tmp_path):
    """As plain Spark 3.5.9 with Delta 3.3.3 did on the same commits."""
    plain = {"more": "", "columns": "id", "kind": "", "rewritten": "", "again": "", "last": "[d]"}
    change = {**plain, "rewritten": ", rewritten: true"}
    feed = {"more": ", _change_type STRING", "columns": "id, _change_type", "kind": ", insert"}
    images = ", ".join(f"[{id}, {kind}]" for id in "abc" for kind in KINDS)
    cases = {
        "version": {**plain, "format": "delta", "options": "startingVersion: 2", "rows": "[b], [c]"},
        "latest": {**plain, "format": "delta", "options": "startingVersion: latest", "rows": ""},
        "time": {**plain, "format": "delta", "options": "startingTimestamp: 3", "rows": "[c]"},
        "skips": {**change, "format": "delta", "options": "skipChangeCommits: true", "rows": "[a], [b], [c]"},
        "ignores": {
            **change,
            "format": "delta",
            "options": "ignoreChanges: true",
            "rows": "[a], [b], [c]",
            "again": "[a], [b], [c]",
        },
        "feed": {
            **change,
            **feed,
            "format": "delta",
            "options": "readChangeFeed: true, startingVersion: 2",
            "rows": "[b, insert], [c, insert]",
            "again": images,
            "last": "[d, insert]",
        },
        "snapshot": {**plain, "format": "iceberg", "options": "startingTimestamp: 2", "rows": "[b], [c]"},
    }
    for name, given in cases.items():
        (tmp_path / f"{name}.yaml").write_text(CHOOSING.format(**given))
    done = conformance(tmp_path, "run", *(f"{name}.yaml" for name in cases), "--spark", "3.5.9")
    assert done.returncode == 0, done.stdout + done.stderr
