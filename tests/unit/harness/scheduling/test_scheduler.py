"""How the scheduler shares engines: how many run at once, when each ends, and what is left of a run that is stopped."""

import os
import signal
import sys
import threading
from dataclasses import replace

import pytest
from filelock import FileLock

from conformance.core.case import KafkaSource, NeedsCode
from conformance.core.child_process import run, run_streaming
from conformance.core.errors import on_stop
from conformance.core.operations import read_pipeline
from conformance.core.versions import SparkVersion
from harness.engine.driver_engine import DriverEngine
from harness.engine.engine import NOTHING_ELSE, EngineDied, EngineLocation, EngineNeeds
from harness.engine.transport import SubprocessTransport
from harness.environments.cache_directory import make_once
from harness.errors import HarnessError
from harness.scheduling.cell_run import CellTask, EngineSlot, Limits, completed, run_cell
from harness.scheduling.scheduler import Listener, Scheduler, queues
from tests.support.miniature.runtime import MiniatureRuntime
from tests.support.miniature.target import SPARK_359, cases_named
from tests.support.observations import differs

TARGETS = [replace(SPARK_359, version=SparkVersion(3, 5, patch)) for patch in range(3)]


class Recorder(Listener):
    def __init__(self):
        self.runs = []
        self.started = threading.Event()

    def cell_started(self, task):
        self.started.set()

    def cell_done(self, run):
        self.runs.append(run)


class Counting(MiniatureRuntime):
    """Records how many engines are alive whenever one starts; the first ``together`` engines start at the same time."""

    def __init__(self, root, mode="right", together=1):
        super().__init__(root, mode)
        self.engines = []
        self.alive = []
        self.needs = []
        self.asked = []
        self.code = None
        self._together = together
        self._enough = threading.Event()

    def start(self, target, *, on_progress, needs=NOTHING_ELSE):
        engine = super().start(target, on_progress=on_progress, needs=needs)
        engine.code = self.code
        observe = engine.observe

        def asked(request, **options):
            self.asked.append((needs.code, request))
            return observe(request, **options)

        engine.observe = asked
        self.engines.append(engine)
        self.needs.append(needs)
        if len(self.engines) >= self._together:
            self._enough.set()
        assert self._enough.wait(60)
        self.alive.append(sum(not one.ended for one in self.engines))
        return engine


def cases(number):
    return cases_named(range(number))


def cells_of(number):
    """So many cases on each of the targets."""
    return [CellTask(case, (target,)) for target in TARGETS for case in cases(number)]


def test_a_path_that_is_no_text_does_not_end_a_run():
    """Linux allows any bytes in a path; a results file is UTF-8."""

    def fails():
        raise HarnessError("no space left below /caché\udce9")

    run = completed(CellTask(cases(1)[0], (SPARK_359,)), [fails], allow_code=True)
    assert run.failure == "no space left below /caché\\udce9"


@pytest.mark.parametrize("jobs", [1, 2])
def test_no_more_engines_than_jobs_and_one_per_target(tmp_path, jobs):
    runtime, seen = Counting(tmp_path, together=jobs), Recorder()
    cells = cells_of(3)
    Scheduler(runtime, Limits(jobs=jobs, step_timeout=60.0, side_by_side=2), seen).run(cells)
    assert sorted(run.task.key for run in seen.runs) == sorted(cell.key for cell in cells)
    assert [run.failure for run in seen.runs] == [None] * 9
    assert len(runtime.engines) == 3
    assert max(runtime.alive) == jobs
    assert all(engine.ended for engine in runtime.engines)


def test_an_engine_gets_the_places_that_others_leave(tmp_path):
    """The engine answers only once it has three cases; with two at a time it would wait for ever."""
    runtime, seen = Counting(tmp_path, "takes-three-and-answers-the-last-first"), Recorder()
    limits = Limits(jobs=2, step_timeout=60.0, side_by_side=2, most_side_by_side=4)
    Scheduler(runtime, limits, seen).run([CellTask(case, (SPARK_359,)) for case in cases(3)])
    assert [run.failure for run in seen.runs] == [None] * 3
    assert len(runtime.engines) == 1


def test_a_whole_case_with_a_setting_runs_beside_the_case_without_it():
    (case,) = cases(1)
    plain = CellTask(case, (SPARK_359,))
    (batches,) = queues([plain, replace(plain, workaround={"spark.sql.ansi.enabled": "false"})]).values()
    assert [len(batch.cells) for batch in batches] == [1, 1]


@pytest.mark.parametrize("lacking", [False, True])
def test_real_time_queries_have_an_engine_of_their_own_where_there_are_any(tmp_path, lacking):
    """Their tasks run all at once, which one slot for tasks would not do."""
    runtime, seen = Counting(tmp_path), Recorder()
    first, *others = cases(3)
    lacks = differs("<4.2", unsupported="real-time mode arrived in 4.2", link="SPARK-54660")
    given = [first.model_copy(update={"trigger": "realTime", "differs": (lacks,) * lacking}), *others]
    Scheduler(runtime, Limits(jobs=1, step_timeout=60.0), seen).run([CellTask(case, (SPARK_359,)) for case in given])
    assert len(seen.runs) == 3
    assert sorted(needs.real_time for needs in runtime.needs) == [False] + [True] * (not lacking)


@pytest.mark.parametrize("cut", [None, 2])
def test_cases_with_code_share_an_engine_with_no_other_case_and_only_their_requests_allow_code(tmp_path, cut):
    """What code changes in its process, such as the time zone, would change what is read there of other cases."""
    runtime, seen = Counting(tmp_path), Recorder()
    runtime.code = ("/code",)
    with_code, *others = cases(3)
    given = [
        with_code.model_copy(update={"needs_code": (NeedsCode(line=1, column=1, reason="it calls code"),)}),
        *others,
    ]
    targets = (SPARK_359,) if cut is None else (SPARK_359, TARGETS[0])
    limits = Limits(jobs=1, step_timeout=60.0)
    Scheduler(runtime, limits, seen, allow_code=True).run([CellTask(one, targets, cut) for one in given])
    assert [run.failure for run in seen.runs] == [None] * 3
    assert [needs.code for needs in runtime.needs] == [False] * len(targets) + [True] * len(targets)
    asked = {(engine_code, request.case, request.code) for engine_code, request in runtime.asked}
    plain = {(False, one.id, None) for one in others}
    assert asked == {*plain, (True, with_code.id, ("/code",))}
    assert not EngineNeeds(code=True).cover(NOTHING_ELSE)
    assert not NOTHING_ELSE.cover(EngineNeeds(code=True))


def test_an_engine_that_runs_a_main_method_runs_the_other_cases_of_its_jars_too(tmp_path):
    runtime, seen = Counting(tmp_path), Recorder()
    first, second, *others = cases(4)
    method, main = ({"call": {name: "acme.Jobs", "jar": "jobs.jar"}, "with": ["events"]} for name in ("jvm", "main"))
    given = [one.model_copy(update={"query": read_pipeline([call])}) for one, call in ((first, method), (second, main))]
    Scheduler(runtime, Limits(jobs=1, step_timeout=60.0), seen).run(
        [CellTask(one, (SPARK_359,)) for one in (*given, *others)]
    )
    assert sorted((needs.jars, needs.main) for needs in runtime.needs) == [((), False), (("jobs.jar",), True)]


@pytest.mark.parametrize("most", [0, 2])
def test_an_engine_gets_no_more_than_were_asked_for(tmp_path, most):
    class AtOnce(Recorder):
        running = highest = 0
        lock = threading.Lock()

        def cell_started(self, task):
            with self.lock:
                self.running += 1
                self.highest = max(self.highest, self.running)

        def cell_done(self, run):
            super().cell_done(run)
            with self.lock:
                self.running -= 1

    seen = AtOnce()
    limits = Limits(jobs=2, step_timeout=60.0, side_by_side=2, most_side_by_side=most)
    Scheduler(Counting(tmp_path), limits, seen).run([CellTask(case, (SPARK_359,)) for case in cases(8)])
    assert len(seen.runs) == 8
    assert seen.highest <= 2


def test_an_engine_that_every_resuming_target_has_used_ends_first(tmp_path):
    runtime, seen = Counting(tmp_path), Recorder()
    old, middle, new = TARGETS
    cells = [CellTask(cases(1)[0], pair, 2) for pair in ((old, middle), (old, new))]
    Scheduler(runtime, Limits(jobs=1, step_timeout=60.0), seen).run(cells)
    assert [run.failure for run in seen.runs] == [None, None]
    assert runtime.alive == [1, 1, 1]


def test_a_run_that_is_stopped_ends_every_engine_and_reports_nothing_more(tmp_path):
    runtime, seen = Counting(tmp_path, "hangs"), Recorder()
    scheduler = Scheduler(runtime, Limits(jobs=2, step_timeout=60.0, side_by_side=2), seen)
    cells = cells_of(3)
    running = threading.Thread(target=scheduler.run, args=(cells,))
    running.start()
    assert seen.started.wait(60)
    scheduler.stop()
    running.join(60)
    assert not running.is_alive()
    assert seen.runs == []
    assert all(engine.ended for engine in runtime.engines)


WAITS = [sys.executable, "-c", "import sys, threading; threading.Event().wait()"]


def introduces_itself(folder):
    DriverEngine(SubprocessTransport(WAITS), work=str(folder), place=EngineLocation("here"), start_timeout=3600)


def writes_its_archive(folder):
    transport = SubprocessTransport(WAITS)
    threading.Thread(target=lambda: [*transport.log()], daemon=True).start()
    if not transport.finish(3600):
        raise HarnessError("there is no archive to keep")


def is_installed(folder):
    if run_streaming(WAITS, os.environ, str, keep=1) is not None:
        raise HarnessError("uv failed")


def is_inspected(folder):
    run(WAITS, cwd=folder, environ=os.environ)
    raise HarnessError("its Python does not answer")


def is_made_by_another_process(folder):
    with FileLock(f"{folder / 'environment'}.lock"):
        make_once(folder / "environment", lambda: None, lambda: pytest.fail("it is made twice"), print)


@pytest.mark.parametrize(
    "waiting",
    [introduces_itself, writes_its_archive, is_installed, is_inspected, is_made_by_another_process],
    ids=lambda waiting: waiting.__name__,
)
def test_a_signal_ends_what_the_start_of_an_engine_waits_for(tmp_path, waiting):
    class Starting(MiniatureRuntime):
        def start(self, target, *, on_progress, needs=NOTHING_ELSE):
            os.kill(os.getpid(), signal.SIGINT)
            waiting(tmp_path)

    seen = Recorder()
    # A job in the background of a shell starts with this signal ignored, and then `on_stop` leaves it so.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with on_stop(), pytest.raises(KeyboardInterrupt):
            Scheduler(Starting(tmp_path), Limits(jobs=1, step_timeout=60.0), seen).run(cells_of(1))
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen.runs == []


@pytest.mark.parametrize("allow_code", [False, True])
def test_a_case_that_needs_permission_starts_no_engine_without_it(tmp_path, allow_code):
    """Every command that runs cases comes through here or through ``run_cell``."""
    reason = NeedsCode(line=7, column=3, reason="the function reflect calls any static method of Java")
    case = cases(1)[0].model_copy(update={"needs_code": (reason,)})
    runtime, seen = Counting(tmp_path), Recorder()
    Scheduler(runtime, Limits(1, 60.0), seen, allow_code=allow_code).run([CellTask(case, (SPARK_359,))])
    (run,) = seen.runs
    assert run.not_run is not allow_code
    assert len(runtime.engines) == (1 if allow_code else 0)
    if not allow_code:
        assert run.failure == (
            "not run: late-drops/0.yaml:7:3: the function reflect calls any static method of Java; --allow-code runs it"
        )
    slot = EngineSlot(runtime, SPARK_359, seen)
    assert run_cell(case, slot, Limits(1, 60.0), allow_code).not_run is not allow_code
    slot.close()


def test_an_engine_that_ends_while_code_of_the_author_runs_is_said_to(tmp_path):
    """``os._exit``, or a crash of a library that the code calls."""

    def ends():
        raise EngineDied("the engine's process ended with exit code 4")

    (case,) = cases(1)
    query = read_pipeline([*case.query.wire(), {"call": "job:build"}])
    for one, told in ((case, False), (case.model_copy(update={"query": query}), True)):
        run = completed(CellTask(one, (SPARK_359,)), [ends], allow_code=True)
        said = "the engine ended while your code ran: does it call os._exit, or crash?"
        assert run.failure.startswith(said) is told
        assert run.failure.endswith("ended with exit code 4")


class OneByOne:
    """Later cells, of which one is ready after each answer."""

    def __init__(self, *cells):
        self.waiting = list(cells)
        self.cases = [cell.case for cell in cells]

    def ready(self):
        some, self.waiting = self.waiting[:1], self.waiting[1:]
        return some


@pytest.mark.parametrize("side_by_side", [1, 3])
def test_cells_that_come_after_an_answer_run_in_the_same_engine(tmp_path, side_by_side):
    runtime, seen = Counting(tmp_path), Recorder()
    first, *others = (CellTask(case, (SPARK_359,)) for case in cases(5))
    limits = Limits(jobs=2, step_timeout=60.0, side_by_side=side_by_side)
    Scheduler(runtime, limits, seen).run([first], OneByOne(*others))
    assert [(run.task.key, run.failure) for run in seen.runs] == [(cell.key, None) for cell in (first, *others)]
    assert len(runtime.engines) == 1
    assert runtime.engines[0].ended


def test_an_engine_starts_with_what_later_cells_need(tmp_path):
    runtime, (first, later) = Counting(tmp_path), cases(2)
    later = later.model_copy(update={"topics": {"events": KafkaSource()}})
    cells = [CellTask(case, (SPARK_359,)) for case in (first, later)]
    Scheduler(runtime, Limits(jobs=1, step_timeout=60.0), Recorder()).run(cells[:1], OneByOne(*cells[1:]))
    assert [needs.topics for needs in runtime.needs] == [True]


@pytest.mark.parametrize("fails", [(Recorder, "cell_done"), (OneByOne, "ready")], ids=["listener", "later cells"])
def test_an_error_of_the_listener_or_of_what_gives_later_cells_ends_the_run(tmp_path, monkeypatch, fails):
    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(*fails, full)
    runtime = Counting(tmp_path)
    cells = cells_of(3)
    with pytest.raises(OSError, match="no space left"):
        Scheduler(runtime, Limits(jobs=2, step_timeout=60.0, side_by_side=2), Recorder()).run(cells, OneByOne())
    assert all(engine.ended for engine in runtime.engines)
