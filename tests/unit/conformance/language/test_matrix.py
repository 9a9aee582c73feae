"""Files that a ``matrix`` makes several cases of. What is wrong in one is in ``invalid/matrix-*``."""

from pathlib import Path
from typing import Any

import pytest

from conformance.core.case import Case
from conformance.language import InvalidCase, read_any
from conformance.suite import discovery

FILE = Path(__file__).parent / "valid" / "matrix.yaml"


@pytest.fixture
def cases() -> dict[str, Case]:
    found = read_any(FILE, "joins/matrix")
    assert all(isinstance(case, Case) for case in found)
    return {case.id: case for case in found if isinstance(case, Case)}


def test_a_case_for_each_combination_that_is_not_left_out(cases: dict[str, Case]) -> None:
    assert list(cases) == [
        "joins/matrix.left-outer.timestamp",
        "joins/matrix.left-outer.timestamp-ntz",
        "joins/matrix.right-outer.timestamp",
        "joins/matrix.right-outer.timestamp-ntz",
        "joins/matrix.both.timestamp",
    ]


def test_each_is_of_the_file_and_of_its_family(cases: dict[str, Case]) -> None:
    case = cases["joins/matrix.right-outer.timestamp-ntz"]
    assert (case.file, case.family, case.path) == ("joins/matrix.yaml", "joins", FILE)
    assert case.expansion == "right-outer.timestamp-ntz"
    assert len({case.digest for case in cases.values()}) == len(cases)


def test_a_placeholder_alone_is_the_value_and_inside_a_text_it_is_text(cases: dict[str, Case]) -> None:
    left = cases["joins/matrix.left-outer.timestamp-ntz"]
    right = cases["joins/matrix.right-outer.timestamp"]
    assert left.title == "An unmatched row of the left side comes out of a left-outer join"
    assert left.steps[0].expect.rows == (("a", None),)
    assert left.steps[0].expect.state == 1
    assert right.streams["first"].ddl == "id STRING, at TIMESTAMP"
    assert left.streams["first"].ddl == "id STRING, at TIMESTAMP_NTZ"


def test_a_key_goes_away_where_the_value_has_none(cases: dict[str, Case]) -> None:
    left, both = cases["joins/matrix.left-outer.timestamp"], cases["joins/matrix.both.timestamp"]
    assert (left.conf, both.conf) == ({}, {"spark.sql.shuffle.partitions": "1"})
    assert "state" not in both.steps[0].expect.model_fields_set


def test_two_dollars_are_one(cases: dict[str, Case]) -> None:
    join: Any = cases["joins/matrix.both.timestamp"].query.operations[1]
    assert "'$(none)' = 'x'" in join.model_dump_json() if hasattr(join, "model_dump_json") else str(join)


def test_lines_are_those_of_the_file(cases: dict[str, Case]) -> None:
    lines = FILE.read_text().splitlines()
    case = cases["joins/matrix.both.timestamp"]
    assert lines[case.lines["steps.1"] - 1].startswith("  - name:")
    assert lines[case.lines["steps.1.expect"] - 1].startswith("    expect:")


def test_a_value_that_is_wrong_is_told_where_it_stands_and_for_which_cases(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(FILE.read_text().replace("how: rightOuter", "how: rightouter"))
    with pytest.raises(InvalidCase) as caught:
        read_any(path, "x")
    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == (5, 24)
    assert problem.message.endswith("(in right-outer.timestamp, right-outer.timestamp-ntz)")


class TestFound:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        root = tmp_path / "cases"
        (root / "joins").mkdir(parents=True)
        (root / "joins" / "x.yaml").write_text(FILE.read_text())
        return root

    def test_one_or_two_by_their_ids_and_all_of_a_file(self, folder: Path) -> None:
        names = ("x.both.timestamp", "x.left-outer.timestamp", "x")
        paths = [folder / "joins" / f"{name}.yaml" for name in names]
        one, two, both, alone = (discovery.load(some) for some in (paths[:1], paths[:2], paths, paths[2:]))
        assert [case.id for case in one.cases] == ["joins/x.both.timestamp"]
        assert [len(found.cases) for found in (two, both, alone)] == [2, 5, 5]
        assert alone.problems == ()

    def test_one_that_is_not_there(self, folder: Path) -> None:
        (problem,) = discovery.load([folder / "joins" / "x.booth.timestamp.yaml"]).problems
        assert problem.message == "unknown case of the matrix 'booth.timestamp': did you mean 'both.timestamp'?"

    def test_an_id_that_another_file_has(self, folder: Path) -> None:
        text = (Path(__file__).parent / "valid" / "example.yaml").read_text()
        (folder / "joins" / "x.both.timestamp.yaml").write_text(text)
        (problem,) = discovery.load([folder]).problems
        assert problem.message == "duplicate id 'joins/x.both.timestamp', already used by x.both.timestamp.yaml"


@pytest.mark.parametrize("value", ["0", "1", "2", "true", "false", "null"])
def test_a_value_inside_a_text_is_written_as_it_was(tmp_path: Path, value: str) -> None:
    file = tmp_path / "a.yaml"
    matrix = f"matrix: {{case: {{only: {{of: {value}}}}}}}\ntitle: the value $(case.of)\n"
    file.write_text(matrix + "streams: {a: t TIMESTAMP}\nquery: [from: a]\nsteps: [idle: {}]\n")
    assert [case.title for case in read_any(file, "a")] == [f"the value {value}"]
