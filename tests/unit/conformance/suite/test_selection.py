"""Parts of a suite: the smoke cases, shards for several machines, and the cases that a change affects."""

import shutil
import subprocess

import pytest

from conformance.core.errors import WrongUsage
from conformance.suite import discovery, selection
from conformance.suite.selection import (
    SMOKE,
    Shard,
    affected_since,
    estimated_batches,
    only_tagged,
)
from tests.support.whole_suite import whole_suite

SUITE = whole_suite()
CASES = SUITE.cases


def test_the_smoke_cases_are_of_every_family_and_of_every_founding_document():
    smoke = [*only_tagged(CASES, [SMOKE]), *only_tagged(SUITE.policy_cases, [SMOKE])]
    folders = {path.name for path in discovery.shipped().iterdir() if path.is_dir()}
    assert {case.family for case in smoke} == folders
    (catalogue,) = SUITE.catalogues.values()
    statements = {id: entry["source"] for id, entry in catalogue.statements.items()}
    mirrored = {statements[mirror.id] for case in smoke for mirror in case.mirrors if mirror.id in statements}
    assert mirrored == set(statements.values())


def test_the_smoke_cases_are_few():
    """They are what a newcomer waits for: a micro-batch takes about a tenth of a second."""
    smoke = only_tagged(CASES, [SMOKE])
    assert sum(map(estimated_batches, smoke)) < 300
    assert len(smoke) < 0.1 * len(CASES)


@pytest.mark.parametrize("of", [1, 2, 3, 5, 7])
def test_each_case_is_in_one_shard_and_shards_take_about_as_long(of):
    shards = [Shard(number, of).among(CASES) for number in range(1, of + 1)]
    assert sorted(case.id for shard in shards for case in shard) == sorted(case.id for case in CASES)
    sizes = [sum(map(estimated_batches, shard)) for shard in shards]
    assert max(sizes) - min(sizes) < 0.1 * min(sizes)


def test_more_shards_than_cases_leave_some_empty():
    assert Shard(3, 5).among(CASES[:2]) == ()


@pytest.mark.parametrize("text", ["0/5", "6/5", "2", "2/", "/5", "a/b", "-1/5", "2/5/6", "1/0", ""])
def test_not_a_shard(text):
    with pytest.raises(WrongUsage, match="write 2/5 for the second of five parts"):
        Shard.parse(text)


def test_a_shard_prints_as_written():
    assert str(Shard.parse(" 2/5 ")) == "2/5"


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "mine" / "cases"
    folder.mkdir(parents=True)
    # Of files with one case each.
    for case in [case for case in CASES if not case.expansion][:3]:
        (folder / case.path.name).write_text(case.path.read_text())
    git(tmp_path / "mine", "init", "-q")
    commit(tmp_path / "mine")
    return tmp_path / "mine"


def git(folder, *arguments):
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    done = subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)
    return done.stdout.decode().strip()


def commit(folder):
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "a state")


def cases_of(repository):
    loaded = discovery.load([repository / "cases"])
    loaded.raise_for_problems()
    return loaded.cases


def names(cases):
    return [case.path.name for case in cases]


def test_new_and_changed_cases_are_affected_committed_or_not(repository):
    assert affected_since("HEAD", cases_of(repository)) == ()
    first, second, third = (case.path for case in cases_of(repository))
    first.write_text(first.read_text() + "# committed\n")
    commit(repository)
    second.write_text(second.read_text() + "# not committed\n")
    (repository / "cases" / "zz-new.yaml").write_text(third.read_text())
    assert names(affected_since("HEAD~1", cases_of(repository))) == [first.name, second.name, "zz-new.yaml"]
    assert names(affected_since("HEAD", cases_of(repository))) == [second.name, "zz-new.yaml"]


def test_a_change_of_the_driver_affects_all_cases(repository, monkeypatch):
    driver = repository / "harness" / "driver"
    driver.mkdir(parents=True)
    monkeypatch.setattr(selection, "_AFFECTS_ALL", (driver,))
    assert affected_since("HEAD", cases_of(repository)) == ()
    (driver / "execution.py").write_text("")
    assert len(affected_since("HEAD", cases_of(repository))) == 3


def test_the_paths_that_affect_all_cases_exist():
    assert all(path.exists() for path in selection._AFFECTS_ALL)


WITH_ROWS = """\
title: Rows in a file
strength: observed
behaviour: [late-predicate]
streams: {s: "event_time TIMESTAMP"}
query: [from: s]
steps:
  - {add: {s: {file: rows/a.jsonl}}, expect: {watermark: "12:00"}}
"""
WITH_CODE = """\
title: A function of one's own
strength: observed
behaviour: [late-predicate]
streams: {s: "event_time TIMESTAMP"}
query: {call: "jobs:mine", with: [s]}
steps:
  - {add: {s: [["12:00:00"]]}, expect: {watermark: "12:00"}}
"""


@pytest.fixture
def reading(repository):
    """A repository whose cases read a file of rows and a module."""
    folder = repository / "cases"
    (folder / "rows").mkdir()
    (folder / "rows" / "a.jsonl").write_text('{"event_time": "12:00:00"}\n')
    (folder / "with-rows.yaml").write_text(WITH_ROWS)
    (folder / "with-code.yaml").write_text(WITH_CODE)
    (repository / "jobs.py").write_text("def mine(s): return s\n")
    commit(repository)
    return repository


def test_each_case_of_a_matrix_is_affected_by_its_own_file_of_rows(reading):
    folder = reading / "cases"
    (folder / "rows" / "b.jsonl").write_text('{"event_time": "12:00:00"}\n')
    both = WITH_ROWS.replace("rows/a.jsonl", "rows/$(day).jsonl")
    (folder / "with-rows.yaml").write_text(f"matrix:\n  day: [a, b]\n{both}")
    commit(reading)
    for day in ("a", "b"):
        file = folder / "rows" / f"{day}.jsonl"
        before = file.read_text()
        file.write_text('{"event_time": "12:01:00"}\n')
        assert f"with-rows.{day}" in [case.id for case in affected_since("HEAD", cases_of(reading))]
        file.write_text(before)


@pytest.mark.parametrize("file", ["jobs.py", "helpers.py", "data.csv"])
def test_a_change_of_anything_but_a_case_affects_a_case_that_runs_code(reading, file):
    (reading / file).write_text("changed = 1\n")
    assert names(affected_since("HEAD", cases_of(reading))) == ["with-code.yaml"]


def test_a_change_of_another_case_does_not_affect_a_case_that_runs_code(reading):
    first = cases_of(reading)[0].path
    first.write_text(first.read_text() + "# changed\n")
    assert names(affected_since("HEAD", cases_of(reading))) == [first.name]


@pytest.mark.parametrize("ignored", ["zz-new.yaml", "rows"])
def test_a_file_that_git_ignores_is_never_unchanged(reading, ignored):
    git(reading, "rm", "-q", "-r", "--cached", "cases/rows")
    (reading / ".gitignore").write_text("zz-new.yaml\nrows\n")
    (reading / "cases" / "with-code.yaml").unlink()
    commit(reading)
    (reading / "cases" / "zz-new.yaml").write_text((reading / "cases" / "with-rows.yaml").read_text())
    assert names(affected_since("HEAD", cases_of(reading))) == ["with-rows.yaml", "zz-new.yaml"]


def test_a_renamed_case_is_affected(reading):
    (reading / "cases" / "with-rows.yaml").rename(reading / "cases" / "renamed.yaml")
    git(reading, "add", "-A")
    assert "renamed.yaml" in names(affected_since("HEAD", cases_of(reading)))


def test_settings_of_the_project_and_of_git_affect_all_cases(repository, monkeypatch):
    """How git writes files, such as ``working-tree-encoding``, is a change of each of them that no comparison shows."""
    monkeypatch.chdir(repository)
    for name in ("pyproject.toml", "cases/.gitattributes"):
        (repository / name).write_text("")
        assert len(affected_since("HEAD", cases_of(repository))) == 3
        commit(repository)
        assert affected_since("HEAD", cases_of(repository)) == ()


@pytest.mark.parametrize(
    "revision", ["no-such-branch", "--output=x", "", "^HEAD", "HEAD^@", "HEAD..HEAD", "HEAD~0..", "@{u}"]
)
def test_a_revision_that_names_no_single_commit(repository, revision):
    with pytest.raises(WrongUsage, match="git cannot list the changes"):
        affected_since(revision, cases_of(repository))


@pytest.fixture
def base(repository):
    """The first commit; the second has another text of a case, which is the only one that is affected."""
    case = cases_of(repository)[0]
    case.path.write_text(case.path.read_text() + "# changed\n")
    commit(repository)
    return git(repository, "rev-parse", "HEAD~1")


@pytest.fixture
def other(base, repository, tmp_path):
    """A repository in which nothing has changed since that commit."""
    shutil.copytree(repository, tmp_path / "other")
    git(tmp_path / "other", "checkout", "-q", base)
    return tmp_path / "other"


@pytest.mark.parametrize("variables", ["GIT_DIR GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"])
def test_variables_of_the_caller_do_not_choose_what_git_compares(base, repository, other, monkeypatch, variables):
    places = {"GIT_WORK_TREE": other, "GIT_DIR": other / ".git", "GIT_INDEX_FILE": other / ".git" / "index"}
    for name in variables.split():
        monkeypatch.setenv(name, str(places.get(name, repository.parent)))
    assert len(affected_since(base, cases_of(repository))) == 1


def test_settings_and_replacements_of_the_repository_do_not_choose_what_git_compares(base, repository, other):
    git(repository, "config", "core.worktree", str(other))
    assert len(affected_since(base, cases_of(repository))) == 1
    git(repository, "replace", base, "HEAD")
    assert len(affected_since(base, cases_of(repository))) == 1


def test_a_folder_in_place_of_the_repository_does_not_let_git_ask_an_outer_one(repository):
    shutil.move(repository / ".git", repository.parent)
    (repository / ".git").mkdir()
    with pytest.raises(WrongUsage, match="git cannot list the changes"):
        affected_since("HEAD", cases_of(repository))


def test_no_repository(tmp_path):
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "a.yaml").write_text(CASES[0].path.read_text())
    with pytest.raises(WrongUsage, match="it is not in a git repository"):
        affected_since("HEAD", cases_of(tmp_path))


@pytest.mark.parametrize("place", ["cases/evil", "cases"])
def test_a_checkout_runs_no_program_through_git(repository, tmp_path, place):
    """A folder shaped like a bare repository can be committed; git obeys its ``config`` if it is asked from inside."""
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    evil = repository / place
    for folder in ("objects", "refs/heads"):
        (evil / folder).mkdir(parents=True, exist_ok=True)
    (evil / "HEAD").write_text("ref: refs/heads/main\n")
    (evil / "config").write_text(
        f"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = {program}\n"
        f"\thooksPath = {tmp_path}\n[diff]\n\texternal = {program}\n"
    )
    (evil / "zz-evil.yaml").write_text(CASES[0].path.read_text())
    assert "zz-evil.yaml" in names(affected_since("HEAD", cases_of(repository)))
    assert not ran.exists()
    subprocess.run(["git", "-C", str(evil), "status"], capture_output=True, check=False)
    assert ran.exists(), "git from inside would have run it"
