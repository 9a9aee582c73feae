"""A query that needs more memory than the JVM of its engine has: that is named, and judges nothing."""

import pytest

from reports.results.reading import Results
from tests.engine.typed import conformance
from tests.support.effort import full_run_only

SIZED = """
title: A row becomes an array, of which only the size is emitted
streams: {{events: "event_time TIMESTAMP, count INT"}}
query:
  - from: events
  - select: ["size(array_repeat(count, {size} + count)) AS size"]
steps:
  - add: {{events: [["12:00", 0]]}}
    expect: {{rows: [[{size}]]}}
"""


@full_run_only
@pytest.mark.parametrize("line", ["3.5", "newest"])
def test_memory_that_a_query_lacks_is_named_and_the_command_goes_on_with_more(tmp_path, line):
    """The other cases of that engine have their answers."""
    sizes = {"small-1": 4, "large": 250_000_000, "small-2": 5}
    for name, size in sizes.items():
        (tmp_path / f"{name}.yaml").write_text(SIZED.format(size=size))
    words = ["run", *(f"{name}.yaml" for name in sizes), "--spark", line, "-o", "r.jsonl"]
    done = conformance(tmp_path, *words, "--conf", "spark.driver.memory=600m")
    assert done.returncode == 3, done.stdout + done.stderr
    cells = {cell.case: cell for cell in Results.read(tmp_path / "r.jsonl").cells}
    assert {name: cell.status for name, cell in cells.items()} == {
        "small-1": "conforms",
        "large": "broken",
        "small-2": "conforms",
    }
    cause = "the engine's JVM has too little memory (java.lang.OutOfMemoryError: Java heap space)"
    assert f"{cause}; give it more, as by --conf spark.driver.memory=" in str(cells["large"].notes)
    assert cause in done.stderr
    assert conformance(tmp_path, *words, "--conf", "spark.driver.memory=4g").returncode == 0
