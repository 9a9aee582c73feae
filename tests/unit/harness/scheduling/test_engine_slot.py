"""Who may use an engine, and when it is replaced; with engines that do nothing."""

import threading
import time

import pytest

from conformance.core.observation import Identity
from harness.engine.engine import EngineLocation
from harness.errors import HarnessError
from harness.scheduling.engine_slot import EngineSlot, SlotClosed
from tests.support.miniature.target import SPARK_359

MOMENT = 0.05


class Idle:
    identity = Identity(protocol=1, spark="3.5.9", scala="2.12", java="17", python="3.11", os="Linux", apis=())
    place = EngineLocation("idle")
    code_path = None

    def __init__(self, memory, slots):
        self.ended = False
        self.memory = memory
        self.slots = slots

    def close(self):
        self.ended = True


class IdleRuntime:
    name = "idle"

    def __init__(self, memory=None, slots=None):
        self.engines = []
        self.memory = memory
        self.slots = slots

    def start(self, target, *, on_progress):
        self.engines.append(Idle(self.memory, self.slots))
        return self.engines[-1]


class NoRuntime:
    name = "none"
    asked = 0

    def start(self, target, *, on_progress):
        self.asked += 1
        raise HarnessError("there is no Java here")


class Nobody:
    def engine_says(self, target, line): ...
    def engine_ready(self, target, identity, place): ...


def slot(runtime, **options):
    return EngineSlot(runtime, SPARK_359, Nobody(), **options)


class Elsewhere:
    """Uses a slot in another thread until told to leave."""

    def __init__(self, slot, *, alone=False):
        self.inside, self.leave = threading.Event(), threading.Event()
        self.refused = None
        self._slot, self._alone = slot, alone
        self.slot_use = None
        self._thread = threading.Thread(target=self._stay, daemon=True)
        self._thread.start()

    def _stay(self):
        try:
            with self._slot.use(alone=self._alone) as self.slot_use:
                self._slot.engine()
                self.inside.set()
                self.leave.wait(60)
        except SlotClosed as error:
            self.refused = error

    def is_inside(self):
        return self.inside.wait(MOMENT)

    def go(self):
        self.leave.set()
        self._thread.join(60)


def test_the_width_of_a_slot_limits_how_many_share_its_engine():
    runtime = IdleRuntime()
    shared = slot(runtime, width=2)
    first, second, third = (Elsewhere(shared) for _ in range(3))
    inside = [one for one in (first, second, third) if one.is_inside()]
    assert len(inside) == 2
    inside[0].go()
    assert all(one.inside.wait(60) for one in (first, second, third))
    assert len(runtime.engines) == 1
    for one in (first, second, third):
        one.go()


def test_the_slots_of_a_cluster_limit_how_many_share_it():
    shared = slot(IdleRuntime(slots=2), width=64)
    guests = [Elsewhere(shared) for _ in range(5)]
    inside = [one for one in guests if one.is_inside()]
    assert len(inside) == 2
    for one in guests:
        one.leave.set()
    assert all(one.inside.wait(60) for one in guests)


def test_both_users_of_an_engine_know_that_it_is_shared():
    shared = slot(IdleRuntime(), width=2)
    first = Elsewhere(shared)
    assert first.inside.wait(60)
    assert not first.slot_use.shared
    second = Elsewhere(shared)
    assert second.inside.wait(60)
    assert first.slot_use.shared
    assert second.slot_use.shared
    first.go()
    second.go()
    with shared.use() as alone:
        assert not alone.shared


def test_a_user_who_must_be_alone_waits_for_the_others_and_goes_before_later_ones():
    shared = slot(IdleRuntime(), width=3)
    first = Elsewhere(shared)
    assert first.inside.wait(60)
    alone = Elsewhere(shared, alone=True)
    while not shared._waiting_to_be_alone:
        time.sleep(0.001)
    late = Elsewhere(shared)
    assert not alone.is_inside()
    assert not late.is_inside()
    first.go()
    assert alone.inside.wait(60)
    assert not late.is_inside()
    assert not alone.slot_use.shared
    alone.go()
    assert late.inside.wait(60)
    late.go()


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
    first = Elsewhere(shared)
    assert first.inside.wait(60)
    runtime.engines[0].memory = 101
    second = Elsewhere(shared)
    assert not second.is_inside()
    first.go()
    assert second.inside.wait(60)
    assert [engine.ended for engine in runtime.engines] == [True, False]
    second.go()


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


def test_closing_a_slot_stops_those_who_wait_for_it():
    runtime = IdleRuntime()
    shared = slot(runtime)
    first = Elsewhere(shared)
    assert first.inside.wait(60)
    second = Elsewhere(shared)
    assert not second.is_inside()
    shared.close()
    second.go()
    assert "spark-3.5.9 was stopped" in str(second.refused)
    assert runtime.engines[0].ended
    with pytest.raises(SlotClosed):
        shared.engine()
    first.go()
