"""How engines are killed and followed by others, with an engine of a few lines in place of Spark."""

import json
import threading

import pytest

from harness.engine.engine import DriverFailed, EngineFailed, EngineKilled
from tests.unit.tools.soak.engines import FakeEngines, FakeTransport, Watching
from tools.soak.engine import Ask, Generate, InvariantQuery, RunQuery, Soak, SoakEngine, SoakStream, kill_moments

STREAM = SoakStream(rows=200, seed=1, batches=20, files=1)


def soaked(engines, kills, stream=STREAM):
    engines.watching = watching = Watching()
    return Soak(engines.start, "/soak", stream, kills, watching).run(), watching


def test_one_engine_reads_everything():
    engines = FakeEngines()
    done, watching = soaked(engines, 0)
    assert (done.rows, done.kills) == (200, 0)
    assert [request["kind"] for request in engines.transports[0].requests] == ["generate", "run"]
    assert watching.rows[-1] == (200, 0)
    assert engines.transports[0].closed


class ImmediateTimer(threading.Timer):
    """Fires at once, in the thread that starts it: how long a kill waits is of no matter here."""

    def start(self):
        self.function()


@pytest.mark.parametrize("seed", range(5))
def test_every_engine_but_the_last_is_killed_and_the_next_goes_on(seed, monkeypatch):
    monkeypatch.setattr(threading, "Timer", ImmediateTimer)
    engines = FakeEngines()
    done, watching = soaked(engines, 3, STREAM.model_copy(update={"seed": seed}))
    assert done.kills == 3
    assert [transport.killed for transport in engines.transports] == [True, True, True, False]
    assert all(transport.closed for transport in engines.transports)
    # No attempt generates rows twice, and each reports its number.
    asked = [[request["kind"] for request in transport.requests] for transport in engines.transports]
    assert asked == [["generate", "run"], ["run"], ["run"], ["run"]]
    assert [transport.requests[-1]["attempt"] for transport in engines.transports] == [0, 1, 2, 3]
    # A micro-batch that is replayed does not count twice.
    assert done.rows == 200
    assert [rows for rows, _ in watching.rows] == sorted(rows for rows, _ in watching.rows)


def test_a_kill_that_comes_too_late_is_not_counted():
    # A micro-batch that says it took a minute: the moment after it never comes.
    engines = FakeEngines(ms=60_000)
    seed = next(
        seed for seed in range(100) if [moment.when for moment in kill_moments(2, 200, seed)] == ["emitted", "anywhere"]
    )
    done, _ = soaked(engines, 2, STREAM.model_copy(update={"seed": seed}))
    assert done.kills == 1
    assert len(engines.transports) == 2


def test_an_engine_that_dies_by_itself_does_not_count_as_a_kill():
    engines = FakeEngines(dies_at=7)
    with pytest.raises(EngineKilled, match="exit code 70") as caught:
        soaked(engines, 0)
    assert "OutOfMemoryError" in str(caught.value)
    assert engines.transports[-1].closed


def ask(**kind):
    engine = SoakEngine(FakeTransport({}, **kind), patience=0.2)
    try:
        return list(engine.ask(Generate(folder="/soak", stream=STREAM)))
    finally:
        engine.close()


@pytest.mark.parametrize(
    ("kind", "error", "why"),
    [
        ({"silent": True}, EngineFailed, r"no answer within 0\.2 s"),
        ({"says": "Exception in thread main\n"}, EngineFailed, "not a message: 'Exception in thread"),
        ({"says": '{"kind": "failed", "message": "no space left"}\n'}, DriverFailed, "no space left"),
    ],
)
def test_an_engine_that_says_nothing_or_nonsense_or_that_it_failed_is_ended(kind, error, why):
    with pytest.raises(error, match=why):
        ask(**kind)


def test_moments_follow_from_the_seed():
    assert kill_moments(5, 1000, 7) == kill_moments(5, 1000, 7) != kill_moments(5, 1000, 8)
    assert kill_moments(0, 1000, 7) == ()
    for seed in range(50):
        found = kill_moments(3, 1000, seed)
        assert [moment.rows for moment in found] == sorted(moment.rows for moment in found)
        assert all(50 <= moment.rows <= 900 for moment in found)
        assert found[0].when == "emitted"


class Talking(FakeTransport):
    """Says these lines in answer to a request, whatever it is."""

    def __init__(self, *lines):
        super().__init__({})
        self._said = lines

    def write(self, line):
        self.requests.append(json.loads(line))
        for said in self._said:
            self._lines.put(json.dumps({"case": self.requests[-1]["case"], **said}) + "\n")


def told(request, *lines):
    engine = SoakEngine(Talking(*lines), patience=0.2)
    try:
        return [*engine.ask(request)] if not isinstance(request, Ask) else engine.rows(request)
    finally:
        engine.close()


RUN = RunQuery(folder="/soak", stream=STREAM, attempt=0)
EMITTED, DONE = {"kind": "emitted", "batch": 0}, {"kind": "done", "columns": []}


def test_the_answer_to_an_earlier_request_that_comes_again_does_not_end_the_query():
    with pytest.raises(EngineFailed, match="unexpected 'done' at 'run' of the soak"):
        told(RUN, {**DONE, "case": Generate(folder="/soak", stream=STREAM).case}, DONE)


def test_an_answer_that_comes_twice_counts_once():
    assert [answer.batch for answer in told(RUN, EMITTED, EMITTED, DONE, DONE)] == [0]


def test_an_engine_that_says_the_same_for_ever_is_ended():
    class Repeating(Talking):
        def answers(self):
            yield self._lines.get()  # the introduction
            while not self.killed and not self.closed:
                if self.requests:
                    yield json.dumps({**EMITTED, "case": RUN.case}) + "\n"
                threading.Event().wait(0.01)

    engine = SoakEngine(Repeating(), patience=0.3)
    with pytest.raises(EngineFailed, match=r"no answer within 0\.3 s"):
        list(engine.ask(RUN))


@pytest.mark.parametrize("first", [(), ({"kind": "rows", "name": "b", "columns": [], "rows": []},)])
def test_a_question_without_an_answer_is_told(first):
    request = Ask(
        folder="/soak", stream=STREAM, late="own batch", questions=(InvariantQuery(name="a", sql="SELECT 1"),)
    )
    late = {"kind": "rows", "name": "a", "columns": [], "rows": []}
    with pytest.raises(EngineFailed, match="gave no answer to 'a'"):
        told(request, *first, DONE, late)
