"""What a case says of the tests of Spark that it re-expresses."""

from pathlib import Path

import pytest

from conformance.core.case import Case, Mirror
from conformance.language import InvalidCase, read_case
from conformance.language.catalogue import Catalogue
from tests.unit.conformance.suite.test_discovery import CASE

TESTS = {"T001": {"test": "a"}, "T002.1": {"test": "b"}, "T002.2": {"test": "c"}}


def case_with(folder: Path, mirrors: str) -> Case:
    file = folder / "a.yaml"
    file.write_text(f"{CASE}behaviour: [one]\nstrength: observed\nmirrors: {mirrors}\n")
    catalogue = Catalogue(folder, behaviours={"one": {}}, statements={"S21": {}}, spark_tests=TESTS)
    return read_case(file, "a", catalogue)


def test_a_mirror_is_an_id_or_says_what_is_lost(tmp_path: Path) -> None:
    found = case_with(tmp_path, "[S21, {test: T001, partly: the metrics}, T002.2]")
    assert found.mirrors == (Mirror(id="S21"), Mirror(id="T001", partly="the metrics"), Mirror(id="T002.2"))
    assert list(map(str, found.mirrors)) == ["S21", "T001 (partly)", "T002.2"]


def test_the_id_of_a_group_still_loads(tmp_path: Path) -> None:
    assert case_with(tmp_path, "[T002]").mirrors == (Mirror(id="T002"),)


@pytest.mark.parametrize(
    ("mirrors", "message"),
    [
        ("[T001, {test: T001, partly: the metrics}]", "duplicate 'T001': a case mirrors a test once"),
        ("[{test: T001}]", "a mirror needs the key `partly`: which of its assertions no case carries, and why"),
        ("[{test: T001, partly: ''}]", "must not be empty: expected what is lost"),
        ("[{test: S21, partly: x}]", '"S21" is not a Spark test (T044)'),
        ("[{test: T009, partly: x}]", "unknown mirror 'T009': not in spark-tests.yaml"),
        ("[T002.3]", "unknown mirror 'T002.3': not in spark-tests.yaml"),
        ("[T1]", '"T1" is not a statement (S21) or a Spark test (T044)'),
    ],
)
def test_invalid_mirrors(tmp_path: Path, mirrors: str, message: str) -> None:
    with pytest.raises(InvalidCase) as caught:
        case_with(tmp_path, mirrors)
    assert [problem.message for problem in caught.value.problems] == [message]
