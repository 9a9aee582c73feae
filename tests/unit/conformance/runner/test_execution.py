"""No engine runs the same cell twice: answers are cached by everything they depend on, and by nothing else."""

import contextlib
import multiprocessing
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

import pytest

from conformance.runner.cases import JudgeCases, cells_of
from conformance.runner.execution import CellPlan, DuplicateCell, run_cells
from harness.runtimes.options import RuntimeOptions
from harness.scheduling import answer_cache
from harness.scheduling.answer_cache import AnswerCache, answer_key, question_digest
from harness.scheduling.cell_run import Limits
from tests.support.miniature.runtime import MiniatureRuntime
from tests.support.miniature.target import SPARK_359
from tests.support.whole_suite import whole_suite
from tests.unit.conformance.runner.test_cases import CASES, WINDOWS, Recorder, cases_at, recorded

TEXT = WINDOWS.read_text()


@pytest.fixture
def cache(tmp_path):
    with AnswerCache(tmp_path / "answers.sqlite") as cache:
        yield cache


def case_of(tmp_path, text):
    (tmp_path / "mine.yaml").write_text(text)
    (case,) = cases_at(tmp_path / "mine.yaml")
    return case


def run(tmp_path, cache, *cases, mode="right", fingerprint="an engine", allow_code=False):
    runtime = MiniatureRuntime(tmp_path, mode, fingerprint=fingerprint)
    return recorded(runtime, cases or cases_at(CASES), cache=cache, allow_code=allow_code), runtime.started


def outcome(*given, **more):
    """The statuses, and how many engines have started."""
    seen, started = run(*given, **more)
    return [verdict.status for verdict in seen.verdicts.values()], started


RAN, REUSED = (["conforms"], 1), (["conforms"], 0)


def test_a_second_run_starts_no_engine_and_gives_the_same(tmp_path, cache):
    first, started = run(tmp_path, cache)
    assert started == 1
    second, started = run(tmp_path, cache)
    assert started == 0
    assert second.verdicts == first.verdicts
    assert second.identities == first.identities
    assert [one.reused for one in (*first.runs.values(), *second.runs.values())] == [False, True]
    (before,), (after,) = ([run.seconds for run in seen.runs.values()] for seen in (first, second))
    assert after == before


def test_a_second_cell_of_a_key_is_an_error(tmp_path):
    """Also if its case is another: only one of the two would be kept."""
    case, other = case_of(tmp_path, TEXT), case_of(tmp_path, TEXT.replace("dropped: 1", "dropped: 0"))
    cells = cells_of([case, other], [SPARK_359])
    limits = Limits(jobs=1, step_timeout=60.0)
    with pytest.raises(DuplicateCell, match=r"^mine on spark-3\.5\.9 is planned twice$"):
        CellPlan(cells, RuntimeOptions(), limits)
    runtime, seen = MiniatureRuntime(tmp_path, "right"), Recorder()
    with pytest.raises(DuplicateCell):
        run_cells(CellPlan((), RuntimeOptions(), limits, later=Later(cells)), JudgeCases(), runtime, seen, seen)
    assert not seen.verdicts


class Later:
    def __init__(self, cells):
        self.cells = cells
        self.cases = [cell.case for cell in cells]

    def ready(self):
        cells, self.cells = self.cells, ()
        return cells


def test_a_changed_expectation_is_judged_without_an_engine(tmp_path, cache):
    run(tmp_path, cache, case_of(tmp_path, TEXT))
    changed = case_of(tmp_path, TEXT.replace("dropped: 1", "dropped: 0"))
    assert outcome(tmp_path, cache, changed) == (["violates"], 0)


@pytest.mark.parametrize(
    ("was", "becomes", "changes"),
    [
        ("10 minutes", "20 minutes", True),
        ("25 minutes", "26 minutes", True),
        ("12:35", "12:36", True),
        ("title:", "outputMode: update\ntitle:", True),
        ("dropped: 1", "dropped: 1, progress: {numInputRows: 1}", True),
        ("dropped: 1", "dropped: [1]", True),
        ("dropped: 1", "dropped: 0", False),
        ("title: ", "title: Now ", False),
        ("title:", "why: Somebody asked.\ntitle:", False),
    ],
)
def test_every_part_of_a_request_changes_the_key_and_titles_sources_and_expectations_do_not(
    tmp_path, was, becomes, changes
):
    assert was in TEXT
    before = question_digest(case_of(tmp_path, TEXT))
    assert (question_digest(case_of(tmp_path, TEXT.replace(was, becomes))) != before) == changes


def test_engine_driver_settings_and_cut_change_the_key(tmp_path, monkeypatch):
    case = case_of(tmp_path, TEXT)
    keys = {
        answer_key(question_digest(case), ["an engine"]),
        answer_key(question_digest(case), ["another"]),
        answer_key(question_digest(case), ["an engine", "another"]),
        answer_key(question_digest(case, {"spark.sql.shuffle.partitions": "4"}), ["an engine"]),
        answer_key(question_digest(case, cut=2), ["an engine"]),
    }
    monkeypatch.setattr(answer_cache, "driver_digest", lambda state_functions: "another driver")
    keys.add(answer_key(question_digest(case), ["an engine"]))
    assert len(keys) == 6


def test_state_functions_are_part_of_the_key_only_if_they_run(monkeypatch):
    assert answer_cache.driver_digest(True) != answer_cache.driver_digest(False)
    asked = []
    monkeypatch.setattr(answer_cache, "driver_digest", lambda state_functions: asked.append(state_functions) or "")
    for case in whole_suite().cases:
        question_digest(case)
    running = {case.id for case, state_functions in zip(whole_suite().cases, asked, strict=True) if state_functions}
    assert "arbitrary-state/null-key-comes-out" in running
    assert len(running) < len(whole_suite().cases) / 4


def test_a_renamed_case_has_the_same_key(tmp_path, cache):
    case = case_of(tmp_path, TEXT)
    run(tmp_path, cache, case)
    twins = [case.model_copy(update={"id": name}) for name in ("late-drops/renamed", "late-drops/twin")]
    seen, started = run(tmp_path, cache, *twins)
    assert started == 0
    assert {id: verdict.status for id, verdict in seen.verdicts.items()} == {twin.id: "conforms" for twin in twins}
    assert {run.observations[0].case for run in seen.runs.values()} == {twin.id for twin in twins}


def test_an_engine_without_a_fingerprint_always_runs(tmp_path, cache):
    assert [outcome(tmp_path, cache, fingerprint=None) for _ in range(2)] == [RAN, RAN]


def test_failures_are_not_cached(tmp_path, cache):
    assert outcome(tmp_path, cache, mode="driver-fails")[0] == ["broken"]
    assert outcome(tmp_path, cache) == RAN


def test_fresh_runs_again_and_caches_the_new_answer(tmp_path, cache):
    run(tmp_path, cache, mode="keeps-late-rows")
    with AnswerCache(tmp_path / "answers.sqlite", fresh=True) as forgetful:
        assert outcome(tmp_path, forgetful) == RAN
    assert outcome(tmp_path, cache) == REUSED


def test_a_case_that_needs_permission_always_runs(tmp_path, cache):
    """What it calls or reads may have changed without a trace."""
    case = case_of(
        tmp_path, TEXT.replace("agg: [sum(count) AS total]", "agg: [\"sum(count + reflect('a', 'b')) AS total\"]")
    )
    for _ in range(2):
        assert outcome(tmp_path, cache, case, allow_code=True)[1] == 1
    assert outcome(tmp_path, cache, case) == (["not-run"], 0)


@pytest.fixture
def path(tmp_path):
    """A cache with an answer."""
    with AnswerCache(tmp_path / "answers.sqlite") as cache:
        run(tmp_path, cache)
    return tmp_path / "answers.sqlite"


def corrupt(path, *, begin=100):
    content = path.read_bytes()
    path.write_bytes(content[:begin] + b"\xff" * (len(content) - begin))


def test_a_corrupt_file_of_ours_is_replaced(path, tmp_path):
    corrupt(path)
    with AnswerCache(path) as cache:
        assert [outcome(tmp_path, cache) for _ in range(2)] == [RAN, REUSED]
        assert cache.problem is None


def test_an_answer_that_stands_under_another_key_is_none(path, tmp_path):
    """The index of a file that lost pages leads to the row of another question, for example to that of an upgrade."""
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE answers SET key = 'of another question'")
    with AnswerCache(path) as cache:
        assert list(cache.lookup(["of another question"])) == []
        assert outcome(tmp_path, cache) == RAN


def unused(path, tmp_path, why):
    """The run goes on without the cache, says why, and leaves the file as it is."""
    before = path.read_bytes()
    with AnswerCache(path) as cache:
        assert [outcome(tmp_path, cache) for _ in range(2)] == [RAN, RAN]
        assert cache.problem.startswith(f"{path} is not used as a cache of answers: ")
        assert why in cache.problem
    assert path.read_bytes() == before


def test_a_file_of_another_program_is_left_alone(tmp_path):
    path = tmp_path / "thesis.txt"
    path.write_text("not a database, however long it is " * 100)
    unused(path, tmp_path, "it belongs to another program and stays as it is; CONFORMANCE_ANSWERS names another file")


@pytest.mark.parametrize(("corrupted", "why"), [(False, "it belongs to another program"), (True, "malformed")])
def test_a_database_of_another_program_is_left_alone(tmp_path, corrupted, why):
    path = tmp_path / "history.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as theirs, theirs:
        theirs.execute("CREATE TABLE visits (url TEXT)")
    if corrupted:
        corrupt(path)
    unused(path, tmp_path, why)


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root is another user, too")
def test_the_file_of_another_user_is_not_used_and_keeps_its_answers(path):
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)  # its folder is not writable for others, as that of a cache
        theirs = Path(shutil.copy(path, place))
        os.seteuid(65534)
        try:
            with AnswerCache(theirs) as cache:
                assert "attempt to write a readonly database" in cache.problem
        finally:
            os.seteuid(0)
        assert theirs.read_bytes() == path.read_bytes()


def test_a_locked_file_is_not_used_and_keeps_its_answers(path, tmp_path, monkeypatch):
    monkeypatch.setattr("harness.scheduling.answer_cache._LOCK_TIMEOUT_S", 0.1)
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with AnswerCache(path) as cache:
            assert outcome(tmp_path, cache) == RAN
            assert "database is locked" in cache.problem
        other.rollback()
    with AnswerCache(path) as cache:
        assert outcome(tmp_path, cache) == REUSED


def test_a_file_that_cannot_be_written_is_not_used(path, tmp_path, monkeypatch):
    opened = sqlite3.connect

    def read_only(path, **keys):
        return opened(f"file:{path}?mode=ro", uri=True, **keys)

    monkeypatch.setattr("harness.scheduling.answer_cache.sqlite3.connect", read_only)
    unused(path, tmp_path, "readonly")


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with AnswerCache(tmp_path / "file" / "answers.sqlite") as cache:
        assert "is not used as a cache of answers" in cache.problem
        assert outcome(tmp_path, cache) == RAN


@pytest.mark.parametrize(
    "error", [sqlite3.OperationalError("database or disk is full"), sqlite3.DatabaseError("a page")]
)
def test_an_error_in_the_middle_of_a_run_ends_only_the_cache(path, tmp_path, error):
    class Failing:
        """A connection that works no more."""

        def execute(self, *_):
            raise error

        executemany = execute

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def close(self):
            raise error

    with AnswerCache(path) as cache:
        cache._file.close()
        cache._file = Failing()
        assert outcome(tmp_path, cache) == RAN
        assert str(error) in cache.problem


def test_unused_answers_expire(path, tmp_path, monkeypatch):
    now = time.time()
    monkeypatch.setattr("harness.scheduling.answer_cache.time.time", lambda: now + 61 * 24 * 3600)
    with AnswerCache(path) as cache:
        assert outcome(tmp_path, cache) == RAN


class Telling(Recorder):
    """Tells another process of each answer."""

    def __init__(self, told):
        super().__init__()
        self._told = told

    def judged(self, task, verdict, seconds):
        self._told.send("judged")


def run_of_ours(folder, told):
    """A run in a process of its own."""
    runtime = MiniatureRuntime(folder, "takes-its-time", fingerprint="an engine")
    with AnswerCache(folder / "answers.sqlite") as cache:
        told.send("begins")
        seen, limits = Telling(told), Limits(jobs=1, step_timeout=60.0, side_by_side=3)
        run_cells(
            CellPlan(cells_of(many(60), [SPARK_359]), RuntimeOptions(), limits),
            JudgeCases(),
            runtime,
            seen,
            seen,
            cache,
        )


def many(number):
    (case,) = cases_at(CASES)
    return [
        case.model_copy(update={"id": f"late-drops/case-{n}", "conf": {"spark.sql.shuffle.partitions": str(n + 1)}})
        for n in range(number)
    ]


def test_a_run_that_is_killed_ten_times_loses_no_answer(tmp_path, cache):
    """At random moments after some of its answers, all but the last; the seed is printed."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    answered, before = [], 0
    processes = multiprocessing.get_context("forkserver")  # which imports once what all of them need
    processes.set_forkserver_preload([__name__])
    while len(answered) < 10 or (not before and len(answered) < 60):  # more, if a busy machine kept none of the first
        told, telling = processes.Pipe(duplex=False)
        process = processes.Process(target=run_of_ours, args=(tmp_path, telling))
        process.start()
        telling.close()
        for _ in range(1 + before + chance.randint(1, 5)):  # its first line, cached answers, new ones
            told.recv()
        time.sleep(chance.uniform(0.0, 0.02))
        process.kill()
        process.join()
        before = len(list(cache.lookup([key_of(case) for case in many(60)])))
        answered.append(before)
    assert answered == sorted(answered)
    assert answered[-1] > 0
    seen, _ = run(tmp_path, cache, *many(60))
    undisturbed, _ = run(tmp_path, None, *many(60))
    assert sum(one.reused for one in seen.runs.values()) == answered[-1]
    assert seen.verdicts == undisturbed.verdicts


def key_of(case):
    return answer_key(question_digest(case), ["an engine"])
