"""Recording, restarting and judging, with engines of a few lines in place of Spark: each that is wrong is found out."""

import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance.core.case import Backlog, Idle, KafkaSource, Restart, Step
from conformance.runner import crash, execution
from conformance.runner.crash import (
    CrashPlan,
    CrashPoint,
    CrashRequest,
    NoMicroBatch,
    NotRecordable,
    Restarts,
    as_users_run,
    plan_crashes,
    run_crashes,
)
from conformance.runner.resources import OptionsClash, RunInterrupted
from harness.engine.engine import EngineDied, TooBusy
from harness.engine.file_recorder import RecordingIncomplete
from harness.errors import HarnessError
from harness.scheduling.cell_run import EngineSlot
from reports.results.crash import CrashRecords
from tests.support import observations
from tests.support.crash_engine import CrashEngine
from tests.support.miniature.target import SPARK_359

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")

CASE = observations.case(*[None] * 4)


@pytest.fixture
def crashed(tmp_path):
    def run(mode, case=CASE, step=None):
        restarts, recorded = record(CrashEngine(mode), tmp_path, case, step)
        return recorded, list(restarts.judged(recorded))

    return run


def record(engine, folder, case=CASE, step=None, conf=None):
    restarts = Restarts(lambda: engine, folder, conf or {}, 60)
    return restarts, restarts.record(CrashPoint.of(case, step))


def statuses(judged, *faults):
    return Counter(verdict.outcome for image, verdict in judged if not faults or image.fault in faults)


def test_an_engine_that_is_right_survives_every_kill(crashed):
    recorded, judged = crashed("right")
    assert recorded.point.step == 3
    assert recorded.emitted == {2: ('["total", 3]',), 3: ('["total", 4]',)}
    assert statuses(judged, "killed").keys() == {"resumed"}
    assert statuses(judged).keys() == {"resumed", "refused"}
    assert statuses(judged, "stale").keys() == {"resumed"}
    assert len(judged) == len(recorded.images) > recorded.operations
    (lost,) = (verdict for image, verdict in judged if image.fault == "lost" and image.operation.endswith(".delta"))
    assert (lost.outcome, lost.error.name, lost.why) == ("refused", "IllegalStateException", "3.delta is damaged")


def test_the_first_step_can_crash(crashed):
    _, judged = crashed("right", step=1)
    assert statuses(judged, "killed").keys() == {"resumed"}


def test_an_engine_that_takes_missing_state_for_none_emits_other_rows(crashed):
    _, judged = crashed("forgets")
    assert statuses(judged, "killed").keys() == {"resumed"}
    assert statuses(judged, "lost", "unsynced")["other rows"] > 0


def test_a_replay_that_does_not_start_from_the_old_state_counts_rows_twice(crashed):
    _, judged = crashed("counts-twice")
    assert statuses(judged, "killed")["other rows"] > 0
    # The sink had got the first attempt's rows when the commit was begun.
    assert any("emitted other rows when it ran again" in verdict.difference for _, verdict in judged)


def test_rows_that_arrive_before_the_restart_are_read_once(crashed):
    recorded, judged = crashed("right", step=2)
    assert statuses(judged, "arrived").keys() == statuses(judged, "killed").keys() == {"resumed"}
    arrived = [image for image in recorded.images if image.fault == "arrived"]
    assert len(arrived) == sum(image.fault == "killed" for image in recorded.images)
    # They are the rows of the third step; those of the fourth arrive after the restart.
    assert {len([path for path in each.content.files if "streams/events/" in path]) for each in arrived} == {3}


def test_an_engine_that_takes_what_arrived_after_the_crash_into_the_replay_emits_other_rows(crashed):
    _, judged = crashed("replays-all", step=2)
    assert statuses(judged, "killed").keys() == {"resumed"}
    assert statuses(judged, "arrived")["other rows"] > 0


def test_both_steps_in_one_micro_batch_are_a_reference(tmp_path):
    """``FileStreamSource`` takes files that are in its log and in no offset together with the next ones."""
    engine = CrashEngine()
    restarts, recorded = record(engine, tmp_path, step=2)
    engine.requests.clear()
    next(restarts.judged(recorded))
    files = [request.streams["events"].files for request in engine.requests]
    # Stops before and after the micro-batch, with and without the next rows; then all files at once; then the first image.
    assert sorted(files[:-1]) == [1] * (len(recorded.boundaries)) + [2]
    assert files[-1] == 1


def test_without_rows_in_the_next_step_none_arrive_before_the_restart(crashed):
    _, judged = crashed("right", with_step(Idle(), 3), step=2)
    assert not statuses(judged, "arrived")
    _, judged = crashed("right", step=4)
    assert not statuses(judged, "arrived")
    assert statuses(judged, "killed").keys() == {"resumed"}


def test_what_a_stop_does_is_no_fault_of_a_query_that_starts_twice(crashed):
    recorded, judged = crashed("silent-after-a-stop", step=2)
    assert recorded.emitted[3] == ('["total", 4]',)
    assert statuses(judged, "late", "stale").keys() == {"resumed"}
    assert any("as after a stop" in verdict.why for image, verdict in judged if image.fault == "stale")


def test_an_engine_that_dies_or_cannot_say_what_is_wrong_is_unclear(crashed):
    for mode, error in (("dies", "the engine died"), ("null-pointer", "NullPointerException")):
        _, judged = crashed(mode)
        found = statuses(judged)
        assert found["unclear"] > 0
        assert not found["other rows"]
        assert {verdict.error.name for _, verdict in judged if verdict.outcome == "unclear"} == {error}


TOPIC = CASE.model_copy(update={"topics": {"events": KafkaSource(partitions=1)}})


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_a_query_that_reads_a_topic_continues_too(crashed, step):
    recorded, judged = crashed("right", TOPIC, step)
    assert recorded.emitted == {batch: (f'["total", {batch + 1}]',) for batch in range(step - 1, 4)}
    assert statuses(judged, "killed").keys() == {"resumed"}
    assert statuses(judged).keys() <= {"resumed", "refused"}
    assert not any(path.startswith("streams/events/") for image in recorded.images for path in image.content.files)


@pytest.mark.parametrize(("mode", "case"), [("commits-first", CASE), ("counts-twice", TOPIC)])
def test_an_engine_that_commits_before_its_state_or_counts_records_twice_is_found_out(crashed, mode, case):
    _, judged = crashed(mode, case)
    assert statuses(judged, "killed")["other rows"] > 0


def test_a_topic_has_what_arrived_before_the_crash_at_every_restart(tmp_path):
    engine = CrashEngine()
    restarts, recorded = record(engine, tmp_path, TOPIC, 2)
    assert [request.arrived and len(request.arrived) for request in engine.requests] == [(), None]
    engine.requests.clear()
    list(restarts.judged(recorded))
    assert {len(request.arrived) for request in engine.requests} == {2}
    assert {request.kafka for request in engine.requests} == {"localhost:9092"}


def test_without_a_broker_no_topic_is_read(tmp_path):
    engine = CrashEngine()
    engine.kafka = HarnessError("the Kafka broker did not start")
    with pytest.raises(HarnessError, match="did not start"):
        record(engine, tmp_path, TOPIC)


def test_a_backlog_of_a_topic_cannot_crash():
    backlog = Step(number=3, action=Backlog(entries=(CASE.steps[0].action.streams,) * 2))
    steps = (*CASE.steps[:2], backlog, CASE.steps[3])
    assert CrashPoint.of(CASE.model_copy(update={"steps": steps})).step == 3
    topic = TOPIC.model_copy(update={"steps": steps})
    assert CrashPoint.of(topic).step == 2
    with pytest.raises(NoMicroBatch, match="no rows arrive in step 3; steps with rows: 1, 2, 4"):
        CrashPoint.of(topic, 3)


def test_every_image_has_the_files_and_the_steps_that_are_left(tmp_path):
    engine = CrashEngine()
    restarts, recorded = record(engine, tmp_path, step=2, conf={"spark.sql.shuffle.partitions": "2"})
    engine.requests.clear()
    list(restarts.judged(recorded))
    last = engine.requests[-1]
    assert (last.first, [step.action for step in last.steps]) == (2, ["start", "add", "add"])
    assert last.conf == {"spark.sql.shuffle.partitions": "2"}
    assert last.tell
    assert {request.directory for request in engine.requests} == {str(tmp_path / "query")}


def with_step(action, number=4):
    steps = list(CASE.steps)
    steps[number - 1] = Step(number=number, action=action)
    return CASE.model_copy(update={"steps": tuple(steps)})


def test_the_step_is_the_last_one_with_rows_that_others_follow():
    assert CrashPoint.of(CASE).step == 3
    assert CrashPoint.of(with_step(Idle())).step == 2
    assert CrashPoint.of(observations.case(None)).step == 1


@pytest.mark.parametrize(
    ("case", "step", "why"),
    [
        (with_step(Restart(how="graceful")), None, "it restarts its query"),
        (CASE.model_copy(update={"trigger": "once"}), None, "its trigger is once"),
        (CASE, 9, "no rows arrive in step 9; steps with rows: 1, 2, 3, 4"),
        (with_step(Idle(), 2), 2, "no rows arrive in step 2; steps with rows: 1, 3, 4"),
        (CASE.model_copy(update={"steps": (Step(number=1, action=Idle()),)}), None, "no rows arrive in it"),
    ],
)
def test_a_case_that_cannot_crash_says_why(case, step, why):
    with pytest.raises(NoMicroBatch, match=why):
        CrashPoint.of(case, step)


def test_a_case_that_fails_is_not_recorded(tmp_path):
    class Failing(CrashEngine):
        def observe(self, request, *, step_timeout, on_step=None):
            super().observe(request, step_timeout=step_timeout)
            return observations.observed(observations.failed(1, "AnalysisException"))

    with pytest.raises(NotRecordable, match="step 1 ends with AnalysisException"):
        Restarts(Failing, tmp_path, {}, 60).record(CrashPoint.of(CASE))


def test_some_images_are_spread_over_all_or_only_those_of_some_faults(tmp_path):
    _, recorded = record(CrashEngine(), tmp_path)
    few = recorded.only(most=5)
    assert [recorded.images.index(one) for one in few.images] == [at * len(recorded.images) // 5 for at in range(5)]
    assert recorded.only(most=None) == recorded.only(most=10_000) == recorded.only(()) == recorded
    assert {one.fault for one in recorded.only(("stale", "late")).images} == {"stale", "late"}


def test_an_incomplete_recording_is_repeated(tmp_path, monkeypatch):
    complete, attempts = crash.FileRecorder.operations, []

    def operations(self):
        attempts.append(self)
        if len(attempts) < 3:
            raise RecordingIncomplete("more events than the kernel keeps")
        return complete(self)

    monkeypatch.setattr(crash.FileRecorder, "operations", operations)
    assert record(CrashEngine(), tmp_path)[1].images
    assert len(attempts) == 3


def test_rows_in_other_micro_batches_are_not_judged_at_the_first_attempt(tmp_path):
    class Splitting(CrashEngine):
        """Once, a later step's rows come in no micro-batch of their own."""

        split = 0

        def observe(self, request, *, step_timeout, on_step=None):
            seen = super().observe(request, step_timeout=step_timeout)
            if request.steps[0].action == "start" and not self.split:
                self.split += 1
                last = seen.steps[-1]
                return seen.model_copy(update={"steps": (*seen.steps[:-1], last.model_copy(update={"batches": ()}))})
            return seen

    engine = Splitting()
    restarts, recorded = record(engine, tmp_path)
    judged = list(restarts.judged(recorded))
    assert engine.split == 1
    assert statuses(judged, "killed").keys() == {"resumed"}


class Overloaded(CrashEngine):
    """Gives up on some requests once it has carried them out, and leaves what it did."""

    def __init__(self, gives_up):
        super().__init__()
        self.gives_up = gives_up
        self.left = 0

    def observe(self, request, *, step_timeout, on_step=None):
        if not self.gives_up(self, request):
            return super().observe(request, step_timeout=step_timeout)
        self.left += 1
        kept = f"{request.directory}.kept"
        super().observe(request.model_copy(update={"save": kept}), step_timeout=step_timeout)
        Path(kept).rename(request.directory)
        raise TooBusy("no time to start a Python worker")


@pytest.mark.parametrize("first", [1, 3])
def test_an_overloaded_engine_records_again_from_the_beginning(tmp_path, first):
    engine = Overloaded(lambda self, request: request.first == first and not self.left)
    _, recorded = record(engine, tmp_path)
    assert engine.left == 1
    assert recorded.emitted == {2: ('["total", 3]',), 3: ('["total", 4]',)}


def test_an_overloaded_engine_is_restarted_again_from_the_same_image(tmp_path):
    engine = Overloaded(lambda self, request: len(self.requests) == 5 and not self.left)
    restarts, recorded = record(engine, tmp_path)
    judged = list(restarts.judged(recorded))
    assert (engine.left, engine.requests[5].steps[0].action) == (1, "start")
    assert statuses(judged, "killed").keys() == {"resumed"}


def test_a_case_that_is_not_recorded_leaves_nothing_to_the_next(tmp_path):
    engine = Overloaded(lambda self, request: request.case == "busy")
    restarts = Restarts(lambda: engine, tmp_path, {}, 60)
    with pytest.raises(TooBusy):
        restarts.record(CrashPoint.of(CASE.model_copy(update={"id": "busy"})))
    assert restarts.record(CrashPoint.of(CASE)).emitted == {2: ('["total", 3]',), 3: ('["total", 4]',)}


CASES = Path(__file__).parents[4] / "cases"
WINDOW, RESTARTED = CASES / "late-drops" / "window-still-open.yaml", CASES / "recovery" / "commit-gone-is-replayed.yaml"


class Watching:
    def __init__(self):
        self.images, self.judged_images = 0, 0

    def engine_says(self, target, line): ...
    def engine_ready(self, target, identity, place): ...

    def recorded(self, point, target, images):
        self.images += images

    def judged(self, record):
        self.judged_images += 1


def request(tmp_path, *paths, **more):
    return CrashRequest(tmp_path / "crashes.jsonl", "conformance maintain crash", paths, spark=["3.5.9"], **more)


def plan(tmp_path, *cases, **more):
    return CrashPlan(request(tmp_path, **more), tuple(map(CrashPoint.of, cases)), (SPARK_359,), ())


@pytest.fixture
def engines(monkeypatch):
    """Modes of the engines: for recordings, and for restarts."""

    def use(recording, restarting):
        @contextmanager
        def restarts(plan, target, folder, watcher, *, maintenance):
            engine = recording if maintenance == "200ms" else restarting
            yield Restarts(lambda: engine, folder, plan.request.store.conf, 60)

        monkeypatch.setattr(crash, "_restarts", restarts)

    return use


THREE = observations.case(*[None] * 3)


def test_every_image_is_a_line(tmp_path, engines):
    engines(CrashEngine(), CrashEngine())
    watching = Watching()
    records = run_crashes(plan(tmp_path, THREE), watching)
    assert records.exit_code == 0
    assert watching.images == watching.judged_images == len(records.records)
    assert CrashRecords.read(tmp_path / "crashes.jsonl") == records
    assert {record.state_store for record in records.records} == {"hdfs"}


def test_an_engine_that_forgets_fails(tmp_path, engines):
    engines(CrashEngine(), CrashEngine("forgets"))
    assert run_crashes(plan(tmp_path, THREE, images=100), Watching()).exit_code == 1


def test_a_case_that_cannot_be_recorded_does_not_stop_the_others(tmp_path, engines):
    class Missing(CrashEngine):
        def observe(self, request, *, step_timeout, on_step=None):
            if request.case.endswith("gone"):
                raise EngineDied("the engine ended with exit code 1")
            if request.case.endswith("busy"):
                raise RecordingIncomplete("too many events")
            return super().observe(request, step_timeout=step_timeout)

    engines(Missing(), CrashEngine())
    cases = [THREE.model_copy(update={"id": f"late-drops/{name}"}) for name in ("gone", "busy", "there")]
    records = run_crashes(plan(tmp_path, *cases, images=3), Watching())
    assert [record.case for record in records.records if record.fault is None] == ["late-drops/gone", "late-drops/busy"]
    assert len(records.records) == 5
    assert records.exit_code == 3


def test_what_was_judged_before_an_interruption_is_kept(tmp_path, engines):
    class Interrupting(Watching):
        def judged(self, record):
            super().judged(record)
            if self.judged_images == 4:
                raise KeyboardInterrupt

    engines(CrashEngine(), CrashEngine())
    with pytest.raises(RunInterrupted, match=r"crashes\.jsonl\.part has 4 images"):
        run_crashes(plan(tmp_path, THREE), Interrupting())
    assert len(CrashRecords.read(tmp_path / "crashes.jsonl.part").records) == 4
    assert not (tmp_path / "crashes.jsonl").exists()


def test_a_case_that_restarts_its_query_is_left_out_unless_it_is_alone(tmp_path):
    found = plan_crashes(request(tmp_path, WINDOW, RESTARTED))
    assert [point.case.id for point in found.points] == ["late-drops/window-still-open"]
    assert "1 case left out: they restart their query, or no rows arrive." in found.notes
    assert str(found).startswith("1 case on spark-3.5.9, state in hdfs; into ")
    with pytest.raises(NoMicroBatch, match="it restarts its query"):
        plan_crashes(request(tmp_path, RESTARTED))


def test_cases_may_read_topics_instead_of_files(tmp_path):
    (point,) = plan_crashes(request(tmp_path, WINDOW, source="kafka")).points
    assert point.case.id == "late-drops/window-still-open@kafka"
    assert point.case.topics
    named = CASES / "recovery" / "named-sources-may-change-places.yaml"
    with pytest.raises(OptionsClash, match="none of these cases can have its rows come from a topic"):
        plan_crashes(request(tmp_path, named, source="kafka"))


@pytest.mark.parametrize("source", ["files", "kafka"])
def test_engines_reach_a_broker_if_a_case_reads_a_topic(tmp_path, monkeypatch, source):
    asked = []

    class Slot(EngineSlot):
        def __init__(self, *given, **more):
            super().__init__(*given, **more)
            asked.append(self.needs.topics)

    monkeypatch.setattr(execution, "EngineSlot", Slot)
    found = plan_crashes(request(tmp_path, WINDOW, source=source))
    with crash._restarts(found, SPARK_359, tmp_path, Watching(), maintenance="1d"):
        pass
    assert asked == [source == "kafka"]


def test_a_version_that_does_not_support_the_case_is_left_out(tmp_path):
    session = CASES / "session-windows" / "rows-within-the-gap-share-a-session.yaml"
    with pytest.raises(OptionsClash, match="no case is left"):
        plan_crashes(CrashRequest(tmp_path / "crashes.jsonl", "conformance maintain crash", [session], spark=["3.1.3"]))


def test_engines_operate_on_files_as_those_of_users():
    settings = as_users_run(SPARK_359)
    assert settings["spark.sql.streaming.checkpointFileManagerClass"].endswith(".FileContextBasedCheckpointFileManager")
    assert settings["spark.conformance.writeChecksums"] == "true"
