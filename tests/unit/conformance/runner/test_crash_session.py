"""Which cases crash on which versions, and the file of what came of it, with engines of a few lines in place of Spark."""

import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance.runner import crash_session
from conformance.runner.crash import CrashPoint, NoMicroBatch, Restarts
from conformance.runner.crash_session import CrashPlan, CrashRequest, as_users_run, plan_crashes, run_crashes
from conformance.runner.resources import Interrupted, OptionsClash
from harness.engine.engine import EngineDied
from harness.engine.file_recorder import RecordingIncomplete
from harness.scheduling.engine_slot import EngineSlot
from reports.results.crash import CrashRecords
from tests.support import observations
from tests.support.crash_engine import CrashEngine
from tests.support.miniature.target import SPARK_359

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
    return CrashRequest(tmp_path / "crashes.jsonl", "conformance crash", paths, spark=["3.5.9"], **more)


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

        monkeypatch.setattr(crash_session, "_restarts", restarts)

    return use


needs_inotify = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")


@needs_inotify
def test_every_image_is_a_line(tmp_path, engines):
    engines(CrashEngine(), CrashEngine())
    watching = Watching()
    records = run_crashes(plan(tmp_path, observations.case(*[None] * 3)), watching)
    assert records.exit_code == 0
    assert watching.images == watching.judged_images == len(records.records)
    assert CrashRecords.read(tmp_path / "crashes.jsonl") == records
    assert {record.state_store for record in records.records} == {"hdfs"}


@needs_inotify
def test_an_engine_that_forgets_fails(tmp_path, engines):
    engines(CrashEngine(), CrashEngine("forgets"))
    assert run_crashes(plan(tmp_path, observations.case(*[None] * 3), images=100), Watching()).exit_code == 1


@needs_inotify
def test_a_case_that_cannot_be_recorded_does_not_stop_the_others(tmp_path, engines):
    class Missing(CrashEngine):
        def observe(self, request, *, step_timeout):
            if request.case.endswith("gone"):
                raise EngineDied("the engine ended with exit code 1")
            if request.case.endswith("busy"):
                raise RecordingIncomplete("too many events")
            return super().observe(request, step_timeout=step_timeout)

    engines(Missing(), CrashEngine())
    cases = [observations.case(*[None] * 3, id=f"late-drops/{name}") for name in ("gone", "busy", "there")]
    records = run_crashes(plan(tmp_path, *cases, images=3), Watching())
    assert [record.case for record in records.records if record.fault is None] == ["late-drops/gone", "late-drops/busy"]
    assert len(records.records) == 5
    assert records.exit_code == 3


@needs_inotify
def test_what_was_judged_before_an_interruption_is_kept(tmp_path, engines):
    class Interrupting(Watching):
        def judged(self, record):
            super().judged(record)
            if self.judged_images == 4:
                raise KeyboardInterrupt

    engines(CrashEngine(), CrashEngine())
    with pytest.raises(Interrupted, match=r"crashes\.jsonl\.part has 4 images"):
        run_crashes(plan(tmp_path, observations.case(*[None] * 3)), Interrupting())
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
            asked.append(self.topics)

    monkeypatch.setattr(crash_session, "EngineSlot", Slot)
    found = plan_crashes(request(tmp_path, WINDOW, source=source))
    with crash_session._restarts(found, SPARK_359, tmp_path, Watching(), maintenance="1d"):
        pass
    assert asked == [source == "kafka"]


def test_a_version_that_does_not_support_the_case_is_left_out(tmp_path):
    session = CASES / "session-windows" / "rows-within-the-gap-share-a-session.yaml"
    old = CrashRequest(tmp_path / "crashes.jsonl", "conformance crash", [session], spark=["3.1.3"])
    with pytest.raises(OptionsClash, match="no case is left"):
        plan_crashes(old)


def test_engines_operate_on_files_as_those_of_users():
    settings = as_users_run(SPARK_359)
    assert settings["spark.sql.streaming.checkpointFileManagerClass"].endswith(".FileContextBasedCheckpointFileManager")
    assert settings["spark.conformance.writeChecksums"] == "true"
