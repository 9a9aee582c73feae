"""Where cases are found, and what they are called."""

import os
from pathlib import Path
from typing import IO, Any

import pytest

from conformance.language import InvalidCase
from conformance.suite import discovery
from conformance.suite.coverage import Apart, Category, coverage
from conformance.suite.discovery import Suite, load, shipped, some
from tests.support.whole_suite import whole_suite

CASE = """title: A title
streams: {events: event_time TIMESTAMP}
query: [from: events]
steps: [idle: {}]
"""
IN_SUITE = CASE + "behaviour: [late-predicate]\nstrength: observed\n"


def write(path: Path, text: str = CASE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def ids(suite: Suite) -> list[str]:
    return [case.id for case in suite.cases]


def messages(suite: Suite) -> list[str]:
    return [problem.message for problem in suite.problems]


def test_the_suite_that_ships_is_valid() -> None:
    suite = whole_suite()
    assert [str(problem) for problem in suite.problems] == []
    assert suite.cases
    assert list(suite.catalogues) == [shipped()]
    suite.raise_for_problems()


def test_a_folder_given_is_the_root(tmp_path: Path) -> None:
    write(tmp_path / "mine" / "a.yaml")
    write(tmp_path / "mine" / "family" / "b.yml")
    suite = load([tmp_path / "mine"])
    assert ids(suite) == ["a", "family/b"]
    assert suite.cases[1].family == "family"
    assert suite.catalogues == {}


def test_a_case_whose_suffix_has_other_letters_is_not_left_out_silently(tmp_path: Path) -> None:
    write(tmp_path / "mine" / "a.yaml")
    write(tmp_path / "mine" / "b.YAML")
    (problem,) = load([tmp_path / "mine"]).problems
    assert "b.YAML" in str(problem)
    assert "rename this file, so that it ends in .yaml" in str(problem)


def test_a_folder_named_cases_is_the_root_of_what_is_in_it(tmp_path: Path) -> None:
    write(tmp_path / "cases" / "family" / "a.yaml")
    assert ids(load([tmp_path / "cases" / "family"])) == ["family/a"]
    assert ids(load([tmp_path])) == ["family/a"]
    assert ids(load([tmp_path / "cases" / "family" / "a.yaml"])) == ["family/a"]


def test_behaviours_make_a_folder_a_suite(tmp_path: Path) -> None:
    write(tmp_path / "cases" / "mine" / "behaviours.yaml", "late-predicate: The rule\n")
    write(tmp_path / "cases" / "mine" / "tags.yaml", "smoke: Runs first\n")
    file = write(tmp_path / "cases" / "mine" / "family" / "a.yaml", IN_SUITE)
    write(tmp_path / "cases" / "mine" / "family" / "behaviours.yml", IN_SUITE)
    suite = load([file])
    assert ids(suite) == ["family/a"]
    catalogue = suite.catalogues[tmp_path / "cases" / "mine"]
    assert catalogue.behaviours == {"late-predicate": {"sentence": "The rule"}}
    assert catalogue.tags == {"smoke": {"sentence": "Runs first"}}
    assert catalogue.statements is None
    assert ids(load([tmp_path / "cases"])) == ["family/a", "family/behaviours"]


def test_without_behaviours_nothing_is_asked_of_a_case(tmp_path: Path) -> None:
    file = write(tmp_path / "a.yaml", CASE + "behaviour: [anything]\ntags: [own]\nmirrors: [S99]\n")
    assert messages(load([file])) == []


def test_a_file_given_twice_is_read_once(tmp_path: Path) -> None:
    file = write(tmp_path / "a.yaml")
    assert ids(load([file, tmp_path, file])) == ["a"]


def test_ids_are_those_of_one_case(tmp_path: Path) -> None:
    write(tmp_path / "one" / "a.yaml")
    other = write(tmp_path / "two" / "a.yaml")
    suite = load([tmp_path / "one", tmp_path / "two"])
    assert [problem.path for problem in suite.problems] == [other]
    assert messages(suite) == [f"duplicate id 'a', already used by {tmp_path / 'one' / 'a.yaml'}"]


def test_hidden_and_other_files_are_not_cases(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml")
    write(tmp_path / ".hidden.yaml", "x")
    write(tmp_path / ".git" / "b.yaml", "x")
    write(tmp_path / "README.md", "x")
    write(tmp_path / "schema.json", "{}")
    (tmp_path / ".c.yaml").symlink_to(tmp_path / "nowhere")
    suite = load([tmp_path])
    assert (messages(suite), ids(suite)) == ([], ["a"])


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    suite = load([tmp_path / "none", write(tmp_path / "a.yaml")])
    assert [str(problem) for problem in suite.problems] == [f"{tmp_path / 'none'}: no such file or folder"]
    assert ids(suite) == ["a"]


def test_a_folder_without_cases(tmp_path: Path) -> None:
    write(tmp_path / "behaviours.yaml", "late-predicate: The rule\n")
    assert messages(load([tmp_path])) == ["no cases: a case is a file ending in .yaml"]
    assert messages(load([tmp_path / "behaviours.yaml"])) == ["no cases: a case is a file ending in .yaml"]


def test_an_invalid_case_is_none_of_the_cases(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml")
    write(tmp_path / "b.yaml", "title: A title\n")
    suite = load([tmp_path])
    assert ids(suite) == ["a"]
    assert suite.invalid == 1
    assert len(suite.problems) == 3
    with pytest.raises(InvalidCase) as caught:
        suite.raise_for_problems()
    assert caught.value.problems == suite.problems
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- late-predicate\n", "a catalogue must be a mapping from id to entry"),
        ("a: 1\na: 2\n", "duplicate key 'a', first used in line 1"),
        ("a: [\n", "invalid YAML"),
    ],
)
def test_an_invalid_catalogue(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path / "behaviours.yaml", text)
    write(tmp_path / "a.yaml", IN_SUITE)
    suite = load([tmp_path])
    assert len(suite.problems) == 1
    assert suite.problems[0].path == tmp_path / "behaviours.yaml"
    assert suite.problems[0].message.startswith(message)
    assert ids(suite) == ["a"]


CLAUSE = "says: It is late, case: late-drops/a, step: '2', shows: rows"


@pytest.mark.parametrize("name", ["behaviours.yaml", "questions.yaml"])
@pytest.mark.parametrize(
    ("clauses", "column", "message"),
    [
        (f"[{{{CLAUSE}}}]", None, ""),
        (f"[{{{CLAUSE}, versions: '<3.4', differs: ['<3.1', '>=3.2,<3.4']}}]", None, ""),
        ("[]", 12, "must not be empty: expected a list of clauses"),
        (
            "[{case: late-drops/a, step: '2', shows: rows}]",
            13,
            "a clause needs the key `says`: the part of the sentence",
        ),
        ("[{says: It is late, step: '2', shows: rows}]", 13, "a clause needs the key `case`: the case that shows it"),
        ("[{says: It is late, case: late-drops/a, shows: rows}]", 13, "a clause needs the key `step`: its step"),
        (f"[{{{CLAUSE}, differs: true}}]", 85, "true is not a quoted version range: '>=3.4,<3.4.4'"),
        (f"[{{{CLAUSE}, versions: '<2.0'}}]", 86, "no known release is below 2.0"),
        (f"[{{{CLAUSE.replace('rows', 'row')}}}]", 70, "unknown key of `expect` 'row': did you mean 'rows'?"),
        (f"[{{{CLAUSE.replace('2', '9' * 5000)}}}]", 58, "is not the number of a step"),
        (f"[{{{CLAUSE.replace('2', 'second')}}}]", 58, '"second" is not the number of a step'),
        (f"[{{{CLAUSE}, spark: '<3.4'}}]", 76, "unknown key 'spark' in a clause"),
    ],
)
def test_clauses_name_the_steps_that_prove_them(
    tmp_path: Path, name: str, clauses: str, column: int | None, message: str
) -> None:
    write(tmp_path / "behaviours.yaml", "one: A\n")
    write(tmp_path / name, f"late-predicate:\n  clauses: {clauses}\n")
    write(tmp_path / "a.yaml", CASE)
    problems = [problem for problem in load([tmp_path]).problems if problem.path.name == name]
    assert [(problem.line, problem.column) for problem in problems] == ([(2, column)] if column else [])
    assert all(message in problem.message for problem in problems)


def test_the_digest_is_over_ids_and_contents(tmp_path: Path) -> None:
    for folder, name, text in [
        ("one", "a", CASE),
        ("two", "a", "# a comment\n" + CASE),
        ("three", "b", CASE),
        ("four", "a", CASE + "outputMode: update\n"),
    ]:
        write(tmp_path / folder / f"{name}.yaml", text)
    digests = [load([tmp_path / folder]).digest for folder in ("one", "two", "three", "four")]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_coverage_counts_reachable_entries(tmp_path: Path) -> None:
    write(tmp_path / "behaviours.yaml", "one: A\ntwo: B\ninternal: {sentence: C, reachable: false}\n")
    write(tmp_path / "statements.yaml", "S01: {statement: A}\nS02: {statement: B}\n")
    tests = "T001: {suite: S, test: a, visible: BB}\nT002: {suite: S, test: b, visible: INT}\n"
    write(tmp_path / "spark-tests.yaml", tests + "T003: {suite: S, test: c, visible: BB*}\n")
    first = CASE + "strength: observed\nbehaviour: [one]\nmirrors: [S01, T003]\n"
    write(tmp_path / "a.yaml", first)
    write(tmp_path / "b.yaml", first)
    suite = load([tmp_path])
    assert messages(suite) == []
    found = coverage(suite.cases, suite.catalogues[tmp_path])
    assert list(map(str, found)) == [
        "behaviours 1 of 2",
        "founding statements 1 of 2",
        "Spark's own tests 1 faithful, 0 partly, 1 not, of 2",
    ]
    assert found[0].cases == {"one": ("a", "b")}
    assert found[0].untested == ("two",)
    assert found[2].entries == {"T001": "S: a", "T003": "S: c"}
    assert found[2].untested == ("T001",)


def spark_tests_covered(folder: Path, tests: str, *mirrors: str) -> Category:
    """The coverage of Spark's tests by cases with these mirrors."""
    write(folder / "behaviours.yaml", "one: A\n")
    write(folder / "spark-tests.yaml", tests)
    for number, mirrored in enumerate(mirrors):
        write(folder / f"{number}.yaml", CASE + f"strength: observed\nbehaviour: [one]\nmirrors: [{mirrored}]\n")
    suite = load([folder])
    assert messages(suite) == []
    return coverage(suite.cases, suite.catalogues[folder])[-1]


def test_a_test_that_some_case_carries_in_part_is_not_faithful(tmp_path: Path) -> None:
    tests = "T001: {suite: S, test: a}\nT002: {suite: S, test: b}\nT003: {suite: S, test: c, reason: R}\n"
    lost = "{test: T002, partly: the metrics}"
    found = spark_tests_covered(tmp_path, tests, f"T001, {lost}", "T002", lost)
    assert str(found) == "Spark's own tests 1 faithful, 1 partly, 1 not, of 3"
    assert found.whole == ("T001",)
    assert found.lost == {"T002": ("the metrics",)}
    assert found.cases == {"T001": ("0",), "T002": ("0", "1", "2")}
    assert (found.untested, found.reasons) == (("T003",), {"T003": "R"})


def test_a_test_that_no_streaming_query_can_show_is_listed_apart(tmp_path: Path) -> None:
    tests = "T001: {suite: S, test: a}\nT002: {suite: S, test: b, apart: W}\nT003: {suite: S, test: c, visible: INT, apart: V}\n"
    found = spark_tests_covered(tmp_path, tests, "T001", "{test: T002, partly: the rows}")
    assert str(found) == "Spark's own tests 1 faithful, 0 partly, 0 not, of 1; 1 apart"
    assert found.apart == (Apart("T002", "S: b", "W", ("1",)),)
    assert (found.whole, found.lost, found.untested) == (("T001",), {}, ())


def test_tests_of_a_scala_api_are_counted_among_the_faithful(tmp_path: Path) -> None:
    tests = "T001: {suite: S, test: a, api: scala}\nT002: {suite: S, test: b}\nT003: {suite: S, test: c, api: scala}\n"
    found = spark_tests_covered(tmp_path, tests, "T001", "T002", "{test: T003, partly: the rows}")
    assert str(found) == "Spark's own tests 2 faithful (1 of a Scala API, through PySpark's), 1 partly, 0 not, of 3"
    assert found.counterparts == ("T001",)


def test_a_case_that_names_a_group_carries_none_of_its_tests(tmp_path: Path) -> None:
    tests = "T001.1: {suite: S, test: a}\nT001.2: {suite: S, test: b}\n"
    found = spark_tests_covered(tmp_path, tests, "T001", "T001.2")
    assert found.whole == ("T001.2",)
    assert found.lost == {"T001.1": ("a case names T001, a group, and not this test",)}


class TestNothingIsSkippedSilently:
    def test_a_link_to_a_file_that_is_gone(self, tmp_path: Path) -> None:
        write(tmp_path / "a.yaml", CASE)
        (tmp_path / "gone.yaml").symlink_to(tmp_path / "nowhere.yaml")
        suite = load([tmp_path])
        assert messages(suite) == ["a link to a file that does not exist"]
        assert suite.problems[0].path == tmp_path / "gone.yaml"
        assert ids(suite) == ["a"]

    def test_a_link_to_a_folder(self, tmp_path: Path) -> None:
        write(tmp_path / "real" / "a.yaml", CASE)
        (tmp_path / "cases").mkdir()
        write(tmp_path / "cases" / "b.yaml", CASE)
        (tmp_path / "cases" / "linked").symlink_to(tmp_path / "real")
        assert messages(load([tmp_path / "cases"])) == ["a link to a folder is not followed; name the folder itself"]

    def test_a_link_out_of_the_folder_shows_nothing_of_the_file(self, tmp_path: Path) -> None:
        """Messages about a file quote it, and a log of CI is public."""
        (tmp_path / "token").write_text("secret")
        write(tmp_path / "cases" / "a.yaml", CASE)
        (tmp_path / "cases" / "b.yaml").symlink_to(tmp_path / "token")
        (tmp_path / "cases" / "c.yml").symlink_to("a.yaml")
        suite = load([tmp_path / "cases"])
        assert messages(suite) == ["a link to a file outside this folder is not followed; name the file itself"]
        assert ids(suite) == ["a", "c"]

    def test_a_folder_that_cannot_be_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Root can read every folder, so the system call is made to fail."""
        write(tmp_path / "a.yaml", CASE)
        write(tmp_path / "closed" / "b.yaml", CASE)
        listed = os.scandir

        def scandir(path: str) -> object:
            if str(path).endswith("closed"):
                raise PermissionError(13, os.strerror(13), str(path))
            return listed(path)

        monkeypatch.setattr("os.scandir", scandir)
        suite = load([tmp_path])
        assert messages(suite) == ["cannot read the folder: Permission denied"]
        assert suite.problems[0].path == tmp_path / "closed"


def test_some_cases_are_those_of_the_whole_suite(tmp_path: Path) -> None:
    names = "matrix: {word: {left: {text: one}, right: {text: two}}}\n"
    write(tmp_path / "cases" / "f" / "a.yaml", names + CASE.replace("A title", "A title with $(word.text)"))
    write(tmp_path / "cases" / "f" / "a.b.yaml")
    write(tmp_path / "cases" / "f" / "other.yaml")
    whole = {case.id: case for case in load([tmp_path]).cases}
    assert {"f/a.left", "f/a.right", "f/a.b"} <= whole.keys()
    for id in whole:
        assert some([id, "f/absent"], [tmp_path]) == (whole[id],)
    assert some(whole, [tmp_path]) == tuple(whole.values())
    assert some(["f/a", "f/absent"], [tmp_path]) == ()


def test_of_some_cases_no_other_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "cases" / "f" / "a.yaml")
    write(tmp_path / "cases" / "f" / "b.yaml")
    read: list[str] = []
    read_any = discovery.read_any
    monkeypatch.setattr(discovery, "read_any", lambda file, *rest: read.append(file.name) or read_any(file, *rest))
    assert [case.id for case in some(["f/a"], [tmp_path])] == ["f/a"]
    assert read == ["a.yaml"]


def test_some_cases_that_have_a_key(tmp_path: Path) -> None:
    upgrades = "[{from: '<4', to: '>=4', because: b, refused: {class: SomeError}}]\n"
    stateful = """title: A title
streams: {events: event_time TIMESTAMP}
query: [from: events, withWatermark: [event_time, 1 minute], dropDuplicates: [event_time]]
steps: [{add: {events: [['12:00']]}}, {add: {events: [['12:01']]}}]
"""
    write(tmp_path / "cases" / "f" / "without.yaml", stateful)
    write(tmp_path / "cases" / "f" / "with.yaml", stateful + "upgrades: " + upgrades)
    write(tmp_path / "cases" / "f" / "escaped.yaml", stateful + '"up\\x67rades": ' + upgrades)
    ids = ["f/escaped", "f/with", "f/without"]
    assert [case.id for case in load([tmp_path]).cases] == ids
    assert [case.id for case in some(ids, [tmp_path], key="upgrades")] == ids[:2]
    assert [case.id for case in some(ids, [tmp_path])] == ids


@pytest.mark.parametrize("key", [None, "upgrades"])
def test_some_cases_are_all_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str | None) -> None:
    write(tmp_path / "cases" / "f" / "a.yaml")
    write(tmp_path / "cases" / "f" / "b.yaml", "title: upgrades\n")
    assert [case.id for case in some(["f/a"], [tmp_path])] == ["f/a"]
    with pytest.raises(InvalidCase, match=r"b\.yaml"):
        some(["f/a", "f/b"], [tmp_path], key=key)
    path_open = Path.open

    def unreadable(path: Path, *mode: str, **options: str) -> IO[Any]:
        if path.name == "a.yaml":
            raise PermissionError(13, "Permission denied")
        return path_open(path, *mode, **options)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(Path, "open", unreadable)
    with pytest.raises(InvalidCase, match=r"a\.yaml.*Permission denied"):
        some(["f/a"], [tmp_path], key=key)


def test_some_cases_of_the_suite_that_have_a_key() -> None:
    whole = whole_suite().cases
    found = some([case.id for case in whole], key="upgrades")
    assert [case for case in found if case.upgrades] == [case for case in whole if case.upgrades]
    assert len(found) < len(whole) / 2


@pytest.mark.parametrize("path", ["cases/late-drops", "late-drops/window-still-open", "xyz", "../cases"])
def test_outside_of_a_checkout_the_suites_own_is_named(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (problem,) = load([Path(path)]).problems
    own = {"cases/late-drops": "late-drops", "late-drops/window-still-open": "late-drops/window-still-open.yaml"}.get(
        path
    )
    more = f"; the suite's own is {shipped() / own}" if own else ""
    assert str(problem) == f"{path}: no such file or folder{more}"


@pytest.mark.parametrize("path", ["late-drop/window-still-opne", "cases/late-drops/windows-still-open.yaml"])
def test_a_mistyped_case_of_the_suite_is_suggested(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (problem,) = load([Path(path)]).problems
    assert str(problem).startswith(f"{path}: no such file or folder. Did you mean late-drops/window-still-open")
