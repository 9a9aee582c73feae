"""The parts of a divided run make one matrix, and only all of them do."""

import pytest

from reports.results.errors import UnusableResults
from reports.results.reading import Results
from reports.results.records import Cell
from reports.results.writing import ResultsWriter
from tests.support.runs import FINISHED, cell, header

TARGETS = ("spark-3.5.9", "spark-4.3.0")


def part(folder, number, of, *cases, targets=TARGETS):
    path = folder / f"{number}-{'-'.join(targets)}.jsonl"
    head = header(cases, targets).model_copy(update={"shard": (number, of)})
    with ResultsWriter(path, head) as writer:
        for case in cases:
            for target in targets:
                found = cell(case, target)
                assert isinstance(found, Cell)
                writer.write(found)
        writer.finish(FINISHED)
    return path


def test_all_parts_make_one_matrix(tmp_path):
    paths = [part(tmp_path, 1, 3, "late/a", "late/c"), part(tmp_path, 2, 3, "late/b"), part(tmp_path, 3, 3)]
    together = Results.read_all(paths)
    assert len(together.cells) == 6
    together.write(tmp_path / "all.jsonl")
    assert Results.read_all([tmp_path / "all.jsonl"]).header.shard is None


@pytest.mark.parametrize(("given", "absent"), [((1,), "2/3, 3/3"), ((1, 3), "2/3"), ((2, 3), "1/3")])
def test_a_missing_part_is_named(tmp_path, given, absent):
    cases = {1: ("late/a",), 2: ("late/b",), 3: ()}
    paths = [part(tmp_path, number, 3, *cases[number]) for number in given]
    with pytest.raises(UnusableResults, match=rf"of the 3 shards of spark-3\.5\.9, these are missing: {absent}; pass"):
        Results.read_all(paths)


def test_each_version_needs_all_of_its_parts(tmp_path):
    old, new = TARGETS
    paths = [
        part(tmp_path, 1, 2, "late/a", targets=(old,)),
        part(tmp_path, 2, 2, "late/b", targets=(old,)),
        part(tmp_path, 1, 2, "late/a", targets=(new,)),
    ]
    with pytest.raises(UnusableResults, match=r"spark-4\.3\.0, these are missing: 2/2"):
        Results.read_all(paths)
    paths.append(part(tmp_path, 2, 2, "late/b", targets=(new,)))
    assert len(Results.read_all(paths).cells) == 4
