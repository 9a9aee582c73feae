"""Observations stay in the results file until they are asked for."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.core.observation import Observation
from conformance.judging.verdict import combine, judge
from reports.results.errors import UnusableResults
from reports.results.reading import Results
from reports.results.records import Cell
from reports.results.writing import ResultsWriter
from tests.support.observations import NEWEST, batch, observed, step, window
from tests.support.runs import case_named, cell, header, written

MANY = tuple(f"f/{number}" for number in range(200))


def flaky(id: str) -> Cell:
    seen = [
        observed(step(1, batch(0, window("12:00", "12:10", total)))).model_copy(update={"case": id}) for total in (1, 2)
    ]
    return Cell.of(case_named(id), "spark-4.3.0", combine([judge(case_named(id), NEWEST, one) for one in seen]), seen)


def in_memory() -> int:
    gc.collect()
    return sum(type(one) is Observation for one in gc.get_objects())


def test_cells_that_were_read_hold_no_observations(tmp_path: Path) -> None:
    path = written(tmp_path / "r", MANY, ("spark-3.5.9",))
    gc.freeze()  # what other tests have left in memory is not searched three times
    before = in_memory()
    results = Results.read(path)
    assert in_memory() == before
    assert [one.observation for one in results.cells] == [cell(id, "spark-3.5.9").observation for id in MANY]
    assert in_memory() - before < len(MANY) / 2


def test_a_cell_that_was_read_is_the_one_that_was_written(tmp_path: Path) -> None:
    one, other = flaky("late/a"), cell("late/b", "spark-4.3.0")
    with ResultsWriter(tmp_path / "r", header(("late/a", "late/b"), ("spark-4.3.0",))) as writer:
        writer.write(one)
        writer.write(other)
    read = Results.read(tmp_path / "r").cells
    assert read == (one, other)
    assert (one, other) == read
    assert read[0] != other
    assert read[0].runs == one.runs
    assert [each.model_dump_json() for each in read] == [one.model_dump_json(), other.model_dump_json()]
    assert read[0].model_copy(update={"observation": None}).observation is None
    assert read[0].model_copy(update={"target": "x"}).observation == one.observation
    with pytest.raises(AttributeError, match="observations"):
        read[0].observations  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("name", ["r", "r.xz"])
def test_results_are_written_whole_also_in_place_of_their_own_file(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name, statuses={("late/a", "spark-3.5.9"): "violates"})
    content = path.read_bytes()
    for to in (tmp_path / f"again-{name}", path):
        Results.read(path).write(to)
        assert to.read_bytes() == content


@pytest.mark.parametrize("name", ["r", "r.xz"])
def test_a_file_that_changed_since_is_named(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name)
    before, after = Results.read(path).cells[0], Results.read(path).cells[1]
    assert after.observation is not None
    written(path, statuses={("late/a", "spark-3.5.9"): "violates"})
    with pytest.raises(UnusableResults, match="the file changed while it was read; try again when no run writes it"):
        before.observation  # noqa: B018


COMBINED_WITH_LITTLE_ROOM = """
import resource, sys
from conformance.cli.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
main(["maintain", "combine", sys.argv[1], "-o", "/dev/null"])
"""


def test_a_disk_with_too_little_room_for_the_plain_copy_is_named(tmp_path: Path) -> None:
    """The system then writes a part and says how much, and refuses only what comes next."""
    path = written(tmp_path / "r.xz")
    # Without -B, a module that no run has compiled yet would be cut off, too.
    command = [sys.executable, "-B", "-c", COMBINED_WITH_LITTLE_ROOM, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        3,
        f"conformance: {path}: its plain content cannot be copied to the folder of temporary files (File too large); "
        "make room there, or set TMPDIR to another folder\n",
    )


def test_combine_shows_the_runs_of_flaky_cells_of_a_file_that_it_replaces(tmp_path: Path) -> None:
    path = tmp_path / "r"
    with ResultsWriter(path, header(("late/a",), ("spark-4.3.0",))) as writer:
        writer.write(flaky("late/a"))
    found: Result = CliRunner().invoke(app, ["maintain", "combine", str(path), "-o", str(path)])
    assert "run 2: violates" in found.output
    assert Results.read(path).cells == (flaky("late/a"),)
