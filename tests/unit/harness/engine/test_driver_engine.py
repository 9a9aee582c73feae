"""The pipe to an engine's process, with miniature engines: real processes, no JVM."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.driver.errors import FailureReason
from harness.engine.driver_engine import BATCHES_BEFORE_FINISH, DriverEngine, _killed_for_memory
from harness.engine.engine import DriverFailed, EngineDied, EngineFailed, EngineKilled, EngineNotStarted, TooBusy
from harness.engine.protocol import CaseRequest
from harness.engine.transport import bounded_lines
from harness.progress import ignore_progress
from tests.support.miniature.runtime import MiniatureRuntime
from tests.support.miniature.target import SPARK_359


def request(directory):
    def add(*rows):
        return {
            "action": "add",
            "batches": [{"events": [[{"event_time": f"1970-01-01T{t}:00.000000Z", "count": c} for t, c in rows]]}],
        }

    return CaseRequest.model_validate(
        {
            "case": "late-drops/windows",
            "directory": str(directory),
            "streams": {"events": {"ddl": "event_time TIMESTAMP, count INT", "files": 1}},
            "query": [{"from": "events"}],
            "outputMode": "append",
            "trigger": "default",
            "conf": {},
            "steps": [add(("12:00", 1), ("12:01", 2)), add(("12:35", 1))],
        }
    )


@pytest.fixture
def start(tmp_path):
    engines = []

    def start(mode):
        engines.append(MiniatureRuntime(tmp_path, mode).start(SPARK_359, on_progress=ignore_progress))
        return engines[-1]

    yield start
    for engine in engines:
        engine.close()


def observe(engine):
    directory = engine.new_directory("late-drops/windows")
    return engine.observe(request(directory), step_timeout=60.0)


def observe_one_step(engine, timeout):
    """A limit that must be reached may be short where no step before must keep within it."""
    asked = request(engine.new_directory("late-drops/windows"))
    return engine.observe(asked.model_copy(update={"steps": asked.steps[:1]}), step_timeout=timeout)


def test_a_right_engine_gives_an_observation(start):
    engine = start("right")
    seen = observe(engine)
    assert [len(step.batches) for step in seen.steps] == [2, 2]
    assert seen.steps[1].batches[1].rows == (("1970-01-01T12:00:00.000000Z", "1970-01-01T12:10:00.000000Z", 3),)
    assert engine.identity.spark == "3.5.9"


def test_an_engine_runs_a_case_several_times_at_once(start):
    """Each checkpoint of a case is resumed by a run of its own."""
    alone = observe(start("right")).behaviour_digest
    engine = start("takes-three-and-answers-the-last-first")
    with ThreadPoolExecutor(3) as threads:
        runs = [threads.submit(observe, engine) for _ in range(3)]
        assert [run.result().behaviour_digest for run in runs] == [alone] * 3


class HoldsItsLock(DriverEngine):
    """Notes at each change of its number of micro-batches whether it holds the lock for them."""

    @property
    def _batches(self):
        return self.__dict__["_batches"]

    @_batches.setter
    def _batches(self, number):
        self.held.append(self._counting.locked())
        self.__dict__["_batches"] = number


def test_micro_batches_are_counted_inside_the_lock(start):
    """Threads observe side by side; the count decides whether the engine's classes are kept."""
    engine = start("right")
    engine.held, engine.__class__ = [], HoldsItsLock
    ran = sum(len(step.batches) for _ in range(2) for step in observe(engine).steps)
    assert engine.held == [True, True]
    assert engine._batches == ran > 2


def test_an_engine_that_dies_says_at_which_step_how_and_its_last_words(start):
    with pytest.raises(EngineDied) as caught:
        observe(start("dies"))
    assert caught.value.message == "the engine's process ended with exit code 137 at step 2 of late-drops/windows"
    assert "OutOfMemoryError: there was no more room" in caught.value.log
    assert [step.number for step in caught.value.steps] == [1]


def is_gone(engine):
    try:
        os.kill(engine._connection.transport.pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("mode", ["hangs", "emits-for-ever"])
def test_messages_without_an_end_do_not_extend_the_time_limit_of_a_step(start, mode):
    engine = start(mode)
    with pytest.raises(EngineFailed, match=r"no answer within 0\.5 s at step 1 of late-drops/windows"):
        observe_one_step(engine, 0.5)
    assert is_gone(engine)


def test_a_line_without_an_end_is_cut_and_no_message(start, monkeypatch):
    monkeypatch.setattr(bounded_lines, "__defaults__", (1 << 22,))
    engine = start("ends-no-line")
    with pytest.raises(EngineFailed, match="a line at step 2 of late-drops/windows that is not a message: 'xxx"):
        observe(engine)
    assert is_gone(engine)


def test_a_driver_that_closes_its_output_and_lives_on_is_ended(start, monkeypatch):
    monkeypatch.setattr("harness.engine.transport._ENDING_SECONDS", 0.5)
    engine = start("closes-its-output")
    with pytest.raises(EngineDied, match="its output closed although it still runs at step 2 of late-drops/windows"):
        observe(engine)
    assert is_gone(engine)


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("repeats-its-steps", "an unexpected 'step' at the end of late-drops/windows"),
        ("babbles", "this is no message"),
        ("speaks-another-protocol", "speaks version 99 of the protocol, this harness speaks 1"),
    ],
)
def test_what_an_engine_may_not_say_is_quoted(start, mode, why):
    with pytest.raises(EngineFailed, match=why):
        observe(start(mode))


def test_a_driver_that_fails_leaves_its_engine_alive(start):
    engine = start("driver-fails")
    for _ in range(2):
        with pytest.raises(DriverFailed, match="KeyError"):
            observe(engine)


def test_rows_of_a_micro_batch_that_failed_before_its_commit_are_kept(start):
    step = observe(start("fails-after-emitting")).steps[-1]
    assert step.error.name == "STATE_NOT_COMPATIBLE"
    assert (step.interrupted.id, step.interrupted.rows) == (7, (("lost", "lost", 0),))


def test_why_an_engine_did_not_start_is_a_code(start):
    with pytest.raises(EngineNotStarted) as caught:
        start("has-no-pyspark")
    assert (caught.value.reason, caught.value.detail) == (FailureReason.PYSPARK_MISSING, "no pyspark")
    with pytest.raises(EngineNotStarted, match="no JAVA_HOME") as caught:
        start("does-not-start")
    assert caught.value.reason is FailureReason.DRIVER_ERROR


def test_an_engine_that_loses_its_jvm_is_ended(start):
    engine = start("loses-its-jvm")
    with pytest.raises(
        EngineDied, match="the engine's JVM stopped answering at step 1 of late-drops/windows"
    ) as caught:
        observe(engine)
    assert "Py4JNetworkError: refused" in str(caught.value)
    assert engine.ended


def test_an_engine_that_loses_its_broker_is_ended_and_the_broker_named(start):
    engine = start("loses-its-broker")
    with pytest.raises(EngineDied) as caught:
        observe(engine)
    why = "the Kafka broker a:1 takes no connection: Connection refused, at step 1 of late-drops/windows"
    assert (caught.value.message, engine.ended) == (why, True)


@pytest.mark.parametrize("mode", ["has-no-heap", "logs-no-heap"])
def test_a_jvm_that_lacks_memory_says_so_with_the_setting_that_gives_more(start, mode):
    """It is not called an engine that died, whose message names `os._exit` in the code as a cause."""
    with pytest.raises(
        EngineKilled, match="at step 1 of late-drops/windows: the engine's JVM has too little memory"
    ) as caught:
        observe(start(mode))
    assert "(java.lang.OutOfMemoryError: Java heap space); give it more, as by --conf spark.driver.memory=" in str(
        caught.value
    )


@pytest.mark.parametrize("mode", ["dies", "loses-its-jvm", "does-not-start"])
def test_an_engine_that_the_kernel_killed_for_memory_is_no_engine_that_died(start, mode, tmp_path, monkeypatch):
    """Nobody is to look for `os._exit` in the code, or for a reason in Spark."""
    counts = iter([1, 2])
    monkeypatch.setattr("harness.engine.driver_engine._killed_for_memory", lambda: next(counts))
    with pytest.raises(EngineKilled, match="the kernel killed a process of this machine for lack of memory") as caught:
        observe(start(mode))
    assert not isinstance(caught.value, EngineDied)
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize(("text", "killed"), [("pgfault 7\noom_kill 3\n", 3), ("pgfault 7\n", 0), (None, 0)])
def test_the_kernel_counts_what_it_kills_for_memory(text, killed, tmp_path, monkeypatch):
    monkeypatch.setattr("harness.engine.driver_engine._VMSTAT", tmp_path / "vmstat")
    if text is not None:
        (tmp_path / "vmstat").write_text(text)
    assert _killed_for_memory() == killed


def test_an_overloaded_machine_leaves_the_engine_alive(start):
    engine = start("is-busy-at-first")
    for _ in range(2):
        with pytest.raises(TooBusy, match="no time"):
            observe(engine)
    assert not engine.ended
    assert observe(engine).steps


class TestFinish:
    """An engine is let to end by itself only if nobody waits for it and it has seen enough."""

    @pytest.fixture
    def engine(self, start):
        engine = start("right")
        engine.finished = []
        engine._finish = lambda: engine.finished.append(engine.ended)
        return engine

    @pytest.mark.parametrize(
        ("cases", "end", "finished"),
        [
            (BATCHES_BEFORE_FINISH, DriverEngine.close, [False]),
            (1, DriverEngine.close, []),
            (BATCHES_BEFORE_FINISH, DriverEngine.kill, []),
        ],
        ids=["after some cases", "not after a few", "not once it was killed"],
    )
    def test_it_finishes(self, engine, cases, end, finished):
        for _ in range(cases):
            observe(engine)
        end(engine)
        engine.close()
        assert engine.finished == finished

    def test_an_interrupted_finish_leaves_no_engine_behind(self, start):
        def interrupted():
            raise KeyboardInterrupt

        engine = start("right")
        engine._finish, engine._batches = interrupted, BATCHES_BEFORE_FINISH
        with pytest.raises(KeyboardInterrupt):
            engine.close()
        assert engine.ended
        assert is_gone(engine)

    def test_not_while_a_case_runs(self, start):
        engine, finished, ends = start("hangs"), [], []
        engine._finish, engine._batches = lambda: finished.append(engine), BATCHES_BEFORE_FINISH

        def run():
            with pytest.raises(EngineDied) as end:
                observe(engine)
            ends.append(end)

        case = threading.Thread(target=run)
        case.start()
        while not engine._running:
            time.sleep(0.001)
        engine.close()
        case.join()
        assert ends
        assert finished == []


TRACEBACK = 'Traceback (most recent call last):\n  File "serve.py", line 57, in serve\nPySparkRuntimeError: [JAVA_GATEWAY_EXITED] Java …\n'


NO_JVM = "Traceback (most recent call last):\npy4j.protocol.Py4JNetworkError: Error while sending or receiving\n"
PORT_CLOSED = (
    'Traceback (most recent call last):\n  File "site-packages/py4j/clientserver.py", line 438, in connect_to_java_server\n'
    "ConnectionRefusedError: [Errno 111] Connection refused\n"
)


@pytest.mark.parametrize(
    ("detail", "log", "said"),
    [
        (PORT_CLOSED, "", ": its JVM ended, perhaps killed; ConnectionRefusedError: [Errno 111]"),
        (PORT_CLOSED.replace("py4j", "urllib"), "", "exit code 3: ConnectionRefusedError: [Errno 111]"),
        (TRACEBACK, "Caused by: java.io.IOException: x.jar (Too many open files)\nbye", "x.jar (Too many open files)"),
        (TRACEBACK, "hello\njava.lang.AssertionError: no file\nbye", "JAVA_GATEWAY_EXITED] Java …; java.lang.Assert"),
        (NO_JVM, "", ": its JVM ended, perhaps killed; py4j.protocol.Py4JNetworkError: Error while sending"),
        ("FileNotFoundError: No usable temporary directory found in ['/tmp']", "", "No usable temporary directory"),
    ],
)
def test_an_engine_that_does_not_start_says_the_cause_in_one_line(detail, log, said, caplog):
    caplog.set_level("DEBUG", "harness")
    told = str(EngineNotStarted(FailureReason.DRIVER_ERROR, detail, "exit code 3", log=log))
    assert told.startswith("the engine did not start and ended with exit code 3: ")
    assert said in told
    assert "\n" not in told
    assert detail in caplog.text
