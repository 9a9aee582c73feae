"""Who may use an engine, and when it is replaced; with engines that do nothing."""

import queue
import threading
from contextlib import closing, nullcontext
from dataclasses import replace

import pytest

from conformance.core.errors import ended_by_stop
from conformance.core.observation import Identity
from conformance.core.versions import SparkVersion
from conformance.runner import resources
from conformance.runner.resources import EngineUse, RunInterrupted
from harness.engine.engine import NOTHING_ELSE, EngineDied, EngineLocation, EngineNeeds, EngineSilent
from harness.errors import HarnessError
from harness.scheduling import cell_run, kept_engines
from harness.scheduling.cell_run import EngineSlot, SlotClosed, with_retries
from harness.scheduling.kept_engines import KeptEngines
from tests.support.miniature.target import SPARK_359


class Idle:
    identity = Identity(protocol=1, spark="3.5.9", scala="2.12", java="17", python="3.11", os="Linux", apis=())
    place = EngineLocation("idle")
    code = None
    kafka = None

    def __init__(self, memory, slots):
        self.ended = self.killed = False
        self.memory = memory
        self.slots = slots

    def close(self):
        self.ended = True

    def kill(self):
        # Nor does it write an archive of its classes then.
        self.killed = not self.ended


class IdleRuntime:
    name = "idle"

    def __init__(self, memory=None, slots=None):
        self.engines = []
        self.memory = memory
        self.slots = slots

    def start(self, target, *, on_progress, needs=NOTHING_ELSE):
        self.engines.append(Idle(self.memory, self.slots))
        return self.engines[-1]


class NoRuntime:
    name = "none"
    asked = 0

    def start(self, target, *, on_progress, needs=NOTHING_ELSE):
        self.asked += 1
        raise HarnessError("there is no Java here")


class Nobody:
    def engine_says(self, target, line): ...
    def engine_ready(self, target, identity, place): ...


class Announcing(threading.Condition):
    """A condition that says which thread is about to wait: its predicate is false, and nobody changes that meanwhile."""

    def __init__(self):
        super().__init__()
        self.events = {}

    def wait(self, timeout=None):
        self.events[threading.current_thread()].put("waits")
        return super().wait(timeout)


def slot(runtime, **options):
    made = EngineSlot(runtime, SPARK_359, Nobody(), **options)
    made._changed = Announcing()
    return made


class Elsewhere:
    """Uses a slot in another thread until told to leave, and says whether it waits or is inside."""

    def __init__(self, slot, *, alone=False):
        self._leave, self._events = threading.Event(), queue.SimpleQueue()
        self.refused = None
        self._slot, self._alone = slot, alone
        self.slot_use = None
        self._thread = threading.Thread(target=self._stay, daemon=True)
        slot._changed.events[self._thread] = self._events
        self._thread.start()

    def _stay(self):
        try:
            with self._slot.use(alone=self._alone) as self.slot_use:
                self._slot.engine()
                self._events.put("inside")
                self._leave.wait(600)
        except SlotClosed as error:
            self.refused = error
            self._events.put("refused")

    def next(self):
        """What happens to it next: each change of the slot lets it in or has it wait again."""
        return self._events.get(timeout=60)

    def comes_inside(self):
        """However often it has to wait until then."""
        while (event := self.next()) == "waits":
            pass
        return event == "inside"

    def leave(self):
        self._leave.set()
        self._thread.join(60)


def comes(slot, event, **options):
    """Somebody who comes to a slot, and what happens to it first."""
    somebody = Elsewhere(slot, **options)
    assert somebody.next() == event
    return somebody


def test_the_width_of_a_slot_limits_how_many_share_its_engine():
    runtime = IdleRuntime()
    shared = slot(runtime, width=2)
    first = comes(shared, "inside")
    second = comes(shared, "inside")
    third = comes(shared, "waits")
    first.leave()
    assert third.next() == "inside"
    assert len(runtime.engines) == 1
    second.leave()
    third.leave()


def test_those_who_come_before_the_engine_has_started_wait_for_its_first_user():
    shared = slot(IdleRuntime(), width=2)
    with shared.use():
        second = comes(shared, "waits")
        shared.engine()
        assert second.next() == "inside"
        second.leave()


def test_the_slots_of_a_cluster_limit_how_many_share_it():
    shared = slot(IdleRuntime(slots=2), width=64)
    inside = [comes(shared, "inside") for _ in range(2)]
    waiting = [comes(shared, "waits") for _ in range(3)]
    for somebody in inside + waiting:
        somebody._leave.set()
    assert all(somebody.comes_inside() for somebody in waiting)


def test_both_users_of_an_engine_know_that_it_is_shared():
    shared = slot(IdleRuntime(), width=2)
    first = comes(shared, "inside")
    assert not first.slot_use.shared
    second = comes(shared, "inside")
    assert first.slot_use.shared
    assert second.slot_use.shared
    first.leave()
    second.leave()
    with shared.use() as alone:
        assert not alone.shared


def test_a_user_who_must_be_alone_waits_for_the_others_and_goes_before_later_ones():
    shared = slot(IdleRuntime(), width=3)
    first = comes(shared, "inside")
    alone = comes(shared, "waits", alone=True)
    late = comes(shared, "waits")
    first.leave()
    assert alone.next() == "inside"
    assert late.next() == "waits"
    assert not alone.slot_use.shared
    alone.leave()
    assert late.next() == "inside"
    late.leave()


def test_a_lost_engine_is_replaced_at_the_next_use():
    runtime = IdleRuntime()
    shared = slot(runtime)
    with shared.use():
        shared.engine().ended = True
        assert shared.engine() is runtime.engines[1]
        assert shared.engine() is runtime.engines[1]


def test_an_engine_that_has_grown_too_big_is_replaced_once_it_has_no_users():
    runtime = IdleRuntime(memory=100)
    shared = slot(runtime, width=2, memory_limit=100)
    first = comes(shared, "inside")
    runtime.engines[0].memory = 101
    second = comes(shared, "waits")
    first.leave()
    assert second.next() == "inside"
    assert [engine.ended for engine in runtime.engines] == [True, False]
    second.leave()


@pytest.mark.parametrize("memory", [None, 1 << 40])
def test_an_engine_with_unknown_or_unlimited_memory_stays(memory):
    runtime = IdleRuntime(memory=memory)
    shared = slot(runtime, memory_limit=100 if memory is None else None)
    for _ in range(2):
        with shared.use():
            shared.engine()
    assert len(runtime.engines) == 1


def test_an_engine_that_cannot_start_is_tried_once():
    runtime = NoRuntime()
    shared = slot(runtime)
    for _ in range(2):
        with shared.use(), pytest.raises(HarnessError, match="there is no Java here"):
            shared.engine()
    assert runtime.asked == 1


class Noting(Nobody):
    def __init__(self):
        self.lines = []

    def engine_says(self, target, line):
        self.lines.append(line)


def test_why_an_engine_cannot_start_is_said_at_once_and_once_unless_the_run_is_stopped():
    listener = Noting()
    shared = EngineSlot(NoRuntime(), SPARK_359, listener)
    for _ in range(2):
        with shared.use(), pytest.raises(HarnessError, match="there is no Java here"):
            shared.engine()
    assert listener.lines == ["there is no Java here"]

    class Stopped(NoRuntime):
        def start(self, target, *, on_progress, needs=NOTHING_ELSE):
            stopped.close()
            return super().start(target, on_progress=on_progress, needs=needs)

    stopped = EngineSlot(Stopped(), SPARK_359, listener)
    with stopped.use(), pytest.raises(HarnessError):
        stopped.engine()
    assert len(listener.lines) == 1


def test_why_an_engine_is_lost_is_said_once_however_many_used_it():
    listener, runtime = Noting(), IdleRuntime()
    shared = EngineSlot(runtime, SPARK_359, listener)

    def lost(at):
        def run():
            shared.engine().ended = True
            raise EngineDied(f"spark://a:1 gives no executor, at step {at}\nof many lines")

        return run

    for at in (1, 2):
        with pytest.raises(EngineDied):
            with_retries(shared, (), lost(at))
    with shared.use():
        shared.say_lost(EngineDied("the same engine, of another case"))
    # A case that was not the first in an engine gets another.
    assert listener.lines == [f"spark://a:1 gives no executor, at step {at}" for at in (1, 2, 2)]
    assert len(runtime.engines) == 3


@pytest.mark.parametrize(
    ("busy", "silent", "starts"), [(True, 0, 1), (True, 2, 3), (True, 3, 3), (False, 1, 1)], ids=str
)
def test_an_engine_that_is_silent_on_a_busy_machine_is_tried_again(busy, silent, starts, monkeypatch):
    class Slow(IdleRuntime):
        asked = 0

        def start(self, target, *, on_progress, needs=NOTHING_ELSE):
            self.asked += 1
            if self.asked <= silent:
                raise EngineSilent("no answer within 180 s at startup")
            return super().start(target, on_progress=on_progress, needs=needs)

    monkeypatch.setattr(cell_run, "is_busy", lambda: busy)
    runtime = Slow()
    shared = slot(runtime)
    with shared.use():
        if silent < starts:
            assert shared.engine() is runtime.engines[0]
        else:
            with pytest.raises(EngineSilent):
                shared.engine()
    assert runtime.asked == starts


def test_closing_a_slot_stops_those_who_wait_for_it():
    runtime = IdleRuntime()
    shared = slot(runtime)
    first = comes(shared, "inside")
    second = comes(shared, "waits")
    shared.close()
    assert second.next() == "refused"
    assert "spark-3.5.9 was stopped" in str(second.refused)
    assert runtime.engines[0].ended
    with pytest.raises(SlotClosed):
        shared.engine()
    first.leave()


def test_an_engine_that_starts_while_the_slot_is_closed_is_ended_although_nobody_can_be_told():
    class ClosedMeanwhile(IdleRuntime):
        def start(self, target, *, on_progress, needs=NOTHING_ELSE):
            shared.close()
            return super().start(target, on_progress=on_progress, needs=needs)

    class FullDisk(Nobody):
        def engine_ready(self, target, identity, place):
            raise OSError("no space left on device")

    runtime = ClosedMeanwhile()
    shared = EngineSlot(runtime, SPARK_359, FullDisk())
    with shared.use(), pytest.raises(SlotClosed):
        shared.engine()
    assert [engine.ended for engine in runtime.engines] == [True]


def test_an_engine_that_one_run_leaves_is_used_by_the_next() -> None:
    runtime = IdleRuntime()
    kept = KeptEngines(runtime)
    first, second = slot(runtime, kept=kept), slot(runtime, kept=kept)
    with first.use() as use:
        assert not use.after_others
        engine = first.engine()
    first.release()
    with second.use():
        assert second.engine() is engine
    with second.use() as use:
        # What happens to the engine now may be due to what the run before did in it.
        assert use.after_others
    second.close()
    assert (len(runtime.engines), engine.ended) == (1, True)


def test_an_engine_that_starts_in_the_background_is_started_once_and_gives_its_error_to_who_takes_it() -> None:
    runtime = IdleRuntime()
    with closing(KeptEngines(runtime)) as kept:
        for _ in range(2):
            kept.begin(SPARK_359, NOTHING_ELSE, print)
        engine = kept.take(SPARK_359, NOTHING_ELSE)
        assert (runtime.engines, kept.take(SPARK_359, NOTHING_ELSE)) == ([engine], None)
        kept.begin(SPARK_359, NOTHING_ELSE, print)
    assert [engine.ended for engine in runtime.engines] == [False, True], "it belongs to who took it"
    with closing(KeptEngines(NoRuntime())) as kept:
        kept.begin(SPARK_359, NOTHING_ELSE, print)
        with pytest.raises(HarnessError, match="there is no Java here"):
            kept.take(SPARK_359, NOTHING_ELSE)
        kept.begin(SPARK_359, NOTHING_ELSE, print)
        kept.kill()


def test_engines_that_start_in_the_background_are_not_waited_for_when_all_are_killed() -> None:
    class NeverReady(IdleRuntime):
        def start(self, target, *, on_progress, needs=NOTHING_ELSE):
            ended = threading.Event()
            with ended_by_stop(ended.set):
                ended.wait()
            raise HarnessError("the engine was ended while it started")

    with closing(KeptEngines(NeverReady())) as kept:
        kept.begin(SPARK_359, NOTHING_ELSE, print)
        kept.kill()
        with pytest.raises(HarnessError, match="ended while it started"):
            kept.take(SPARK_359, NOTHING_ELSE)


def test_an_engine_is_not_left_to_cases_that_need_more_of_it_nor_once_it_has_ended() -> None:
    runtime = IdleRuntime()
    kept = KeptEngines(runtime)
    engine = runtime.start(SPARK_359, on_progress=print)
    kept.leave(SPARK_359, NOTHING_ELSE, engine)
    assert kept.take(SPARK_359, EngineNeeds(topics=True)) is None
    assert engine.ended
    kept.leave(SPARK_359, NOTHING_ELSE, engine)
    assert kept.take(SPARK_359, NOTHING_ELSE) is None


@pytest.mark.parametrize("stopped", [False, True])
def test_only_a_stopped_run_kills_its_engines(stopped, tmp_path, monkeypatch):
    runtime = IdleRuntime()
    shared = slot(runtime)
    with shared.use():
        shared.engine()
    shared.close(at_once=stopped)
    runtime.close = print
    monkeypatch.setattr(resources, "runtime_for", lambda *_, **__: runtime)
    with pytest.raises(RunInterrupted) if stopped else nullcontext(), EngineUse().keeping_engines() as kept:
        kept.leave(SPARK_359, NOTHING_ELSE, runtime.start(SPARK_359, on_progress=print))
        if stopped:
            raise KeyboardInterrupt
    assert [(engine.killed, engine.ended) for engine in runtime.engines] == [(stopped, True)] * 2


def test_engines_that_nobody_took_end_at_last() -> None:
    runtime = IdleRuntime()
    kept = KeptEngines(runtime)
    engines = [runtime.start(SPARK_359, on_progress=print) for _ in range(2)]
    for engine in engines:
        kept.leave(SPARK_359, NOTHING_ELSE, engine)
    assert [engine.ended for engine in engines] == [True, False]
    kept.close()
    assert engines[1].ended


def test_engines_end_at_the_same_time_and_at_once_if_the_command_is_stopped_meanwhile(monkeypatch) -> None:
    both = threading.Barrier(2)

    class WritesAnArchive(Idle):
        def close(self):
            both.wait()
            super().close()

    class NeverDone(Idle):
        def __init__(self, memory, slots):
            super().__init__(memory, slots)
            self.stopped = threading.Event()

        def close(self):
            self.stopped.wait()

        def kill(self):
            self.stopped.set()

    newer = replace(SPARK_359, version=SparkVersion(4, 3, 0))

    def left(engine_class):
        kept = KeptEngines(IdleRuntime())
        engines = [engine_class(None, None) for _ in range(2)]
        for target, engine in zip((SPARK_359, newer), engines, strict=True):
            kept.leave(target, NOTHING_ELSE, engine)
        return kept, engines

    kept, engines = left(WritesAnArchive)
    kept.close()
    assert [engine.ended for engine in engines] == [True, True]

    def stopped(*_):
        raise KeyboardInterrupt

    kept, engines = left(NeverDone)
    monkeypatch.setattr(kept_engines, "wait", stopped)
    with pytest.raises(KeyboardInterrupt):
        kept.close()
    assert all(engine.stopped.is_set() for engine in engines)
