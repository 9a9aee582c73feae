"""Whatever a results file holds, reading and showing it ends in an answer or in an error that says which line is wrong and why."""

import copy
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from conformance.core.errors import WrongUsage
from conformance.suite.discovery import Suite
from reports.analysis.change import changes
from reports.analysis.equivalence import compare
from reports.analysis.matrix import Matrix
from reports.analysis.report import Report
from reports.exports.ci_reports import badge, junit, step_summary, workflow_commands
from reports.exports.everything import everything
from reports.html.writer import write_one_file
from reports.results.compression import open_results
from reports.results.errors import UnusableResults
from reports.results.published import upgrade_files
from reports.results.reading import Results
from reports.terminal import matrix
from reports.terminal import upgrades as of_checkpoints
from tests.support import cells as a
from tests.support.effort import sample
from tests.support.gates import gate

Path_ = tuple[str | int, ...]
SCRAPS: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    10**18,
    -(10**18),
    10**30,
    1e308,
    "",
    "x",
    "NaN",
    "\x1b]0;x\x07\u202e",
    "\ud800",
    "a\n::error::b",
    "2026-01-01T00:00:00",
    "9999-12-31T23:59:59.999999-14:00",
    "0001-01-01T00:00:00+14:00",
    "1970-01-01T12:00:00.000000Z",
    "99999-01-01T00:00:00.000000Z",
    [],
    {},
    [[]],
    [{}],
    [1, "a"],
    {"x": []},
    "model",
    "spark-3.5.9",
    "conforms",
    "differs",
    "flaky",
    "../../x",
    "3.5.9",
    "struct<start:timestamp",
    "a" * 5_000,
]
ANSWERS = {
    "f/a": {"3.5.9": a.LOST, "4.3.0": a.CALM},
    "f/b": {"3.5.9": a.REFUSED, "4.3.0": a.FAILED},
    "c": {"3.5.9": a.NOT_RUN, "4.3.0": a.HELD},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("any")
    a.results(folder / "right", ANSWERS)
    return folder


def places(value: Any, here: Path_ = ()) -> Iterator[Path_]:
    """Every place in a JSON value below the top."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield (*here, key)
        yield from places(below, (*here, key))


def put(record: Any, place: Path_, scrap: Any) -> None:
    for key in place[:-1]:
        record = record[key]
    record[place[-1]] = copy.deepcopy(scrap)


CHANGES = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.sampled_from(SCRAPS)), min_size=1, max_size=3)
"""Where in the file, as a share of its places, and what to put there."""


def changed(folder: Path, scraps: list[tuple[float, Any]]) -> Path:
    lines = [json.loads(line) for line in (folder / "right").read_text().splitlines()]
    return write_changed(folder / "changed", lines, scraps)


def write_changed(path: Path, lines: list[dict[str, Any]], scraps: list[tuple[float, Any]]) -> Path:
    for share, scrap in scraps:
        every = [(line, place) for line in lines for place in places(line)]
        line, place = every[int(share * len(every))]
        put(line, place, scrap)
    path.write_bytes("".join(f"{json.dumps(line)}\n" for line in lines).encode())
    return path


def uses(folder: Path) -> Iterator[Callable[[Results], object]]:
    """Everything that is made from results."""
    yield lambda found: matrix.lines(found, 100)
    yield lambda found: gate(found, "3.5.9", "4.3.0").verdict()
    yield lambda found: compare(found, Results.read(folder / "right"))
    yield lambda found: step_summary(found, (changes(Matrix.of(found), *found.header.targets[:2]),))
    yield from (junit, badge, workflow_commands)
    yield lambda found: everything(Report.of(found, Suite(())))
    yield lambda found: write_one_file(Report.of(found, Suite(())), folder / "site")


def read(path: Path, *, condensed: bool = False) -> Results | UnusableResults:
    try:
        return Results.read(path, condensed=condensed)
    except UnusableResults as error:
        return error


def check(folder: Path, path: Path) -> bool:
    """Whether the file is used; every error is one of ours."""
    found = read(path)
    if isinstance(found, UnusableResults):
        assert found.exit_code in (2, 3)
        assert (str(path) in str(found), "\n" in str(found)) == (True, False)
        return False
    for use in uses(folder):
        with suppress(WrongUsage):
            use(found)
    return True


QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@QUICK
@given(scraps=CHANGES)
def test_a_changed_value(folder: Path, scraps: list[tuple[float, Any]]) -> None:
    check(folder, changed(folder, scraps))


@pytest.fixture(scope="module")
def upgrades() -> list[dict[str, Any]]:
    """A published results file of upgrades: from 3.5.9 to 4.3.0, a checkpoint of each status."""
    lines = [json.loads(line) for line in open_results(upgrade_files()["3.5"])]
    ends = {"origin": "spark-3.5.9", "target": "spark-4.3.0"}
    of_pair = [one for one in lines if one["record"] == "cell" and ends.items() <= one.items()]
    cells = list({(one["status"], one["outcome"]): one for one in of_pair}.values())
    assert len(cells) >= 4
    targets = [one for one in lines[0]["targets"] if one["name"] in ends.values()]
    cuts = {one["case"]: [one["cut"]] for one in cells}
    header = {**lines[0], "targets": targets, "pairs": [list(ends.values())], "cuts": cuts}
    return [header, *cells, {**lines[-1], "counts": Counter(each["status"] for each in cells), "digest": None}]


@QUICK
@given(scraps=CHANGES)
@example(scraps=[])
def test_a_changed_value_of_an_upgrade(
    folder: Path, upgrades: list[dict[str, Any]], scraps: list[tuple[float, Any]]
) -> None:
    path = write_changed(folder / "upgraded", copy.deepcopy(upgrades), scraps)
    found = read(path, condensed=True)
    if isinstance(found, UnusableResults):
        assert (bool(scraps), str(path) in str(found), "\n" in str(found)) == (True, True, False)
        return
    with suppress(WrongUsage):
        [*of_checkpoints.lines(found, 100)]
    both = replace(Results.read(folder / "right"), upgrades=found.upgrades)
    with suppress(WrongUsage):
        gate(both, "3.5.9", "4.3.0").verdict()
    with suppress(WrongUsage):
        write_one_file(Report.of(both, Suite(())), folder / "site")


@QUICK
@given(content=st.binary(max_size=200))
@example(content=b"")
@example(content=b"[]\n")
@example(content=b"{}\n")
@example(content=b'{"record": "header"}\n')
def test_any_bytes(folder: Path, content: bytes) -> None:
    (folder / "bytes").write_bytes(content)
    assert not check(folder, folder / "bytes")


@QUICK
@given(at=st.floats(0, 1, exclude_max=True))
def test_a_file_that_ends_early(folder: Path, at: float) -> None:
    content = (folder / "right").read_bytes()
    (folder / "short").write_bytes(content[: int(at * (len(content) - 1))])
    assert not check(folder, folder / "short")


def test_every_value_that_can_be_of_the_wrong_kind_or_size(folder: Path) -> None:
    """Each place of the first cell with values beyond what they can mean: instants, numbers, texts; some of them in a short run."""
    lines = [json.loads(line) for line in (folder / "right").read_text().splitlines()]
    number = next(number for number, line in enumerate(lines) if line.get("status") == "violates")
    beyond = (10**18, -(10**30), "99999-01-01T00:00:00.000000Z", "\x00\u202e", None)
    trials, used = [*product(places(lines[number]), beyond)], 0
    assert len(trials) > 300
    for place, scrap in sample(trials, 150):
        some = copy.deepcopy(lines)
        put(some[number], place, scrap)
        path = folder / "placed"
        path.write_text("".join(f"{json.dumps(line)}\n" for line in some))
        used += check(folder, path)
    assert used > 25, "values that the format allows are shown, not refused"
