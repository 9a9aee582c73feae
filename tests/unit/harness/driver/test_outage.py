"""An outage counts once it lasts, and what a master shows says why a cluster gives no executor."""

import errno
import json
import os
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import pytest

from harness.driver import outage
from harness.driver.errors import FailureReason
from harness.driver.outage import Outage, lasting, no_executor, no_master, none_listens, watch


@pytest.fixture
def clock(monkeypatch):
    """Seconds of the monotonic clock: each look takes one."""
    now = [0.0]
    monkeypatch.setattr(outage.time, "monotonic", lambda: now[0])
    return now


def looked(clock, outages):
    """What lasts of these, one a second."""
    left = list(outages)

    def goes_on():
        clock[0] += 1
        return bool(left)

    return lasting(lambda: left.pop(0), goes_on)


def test_only_what_lasts_is_an_outage(clock):
    gone = Outage("refused", 3)
    assert looked(clock, [None, gone, gone, gone, None, gone, gone]) is None
    assert looked(clock, [gone] * 4) == "refused"
    assert looked(clock, [Outage("unknown", 120)] * 100) is None


def test_a_watch_calls_once_and_ends_with_an_engine_that_does_not_answer_or_with_its_event(clock):
    looks = iter([False] * 10 + [True])
    event = SimpleNamespace(wait=lambda _: clock.__setitem__(0, clock[0] + 1) or next(looks))
    lost, ended = [], threading.Event()
    reason = FailureReason.NO_BROKER
    watch(lambda: Outage("refused", 3), lambda failure: (lost.append(failure), ended.set()), reason, event)
    assert ended.wait(60)
    watch(lambda: 1 / 0, lost.append, reason, event)
    watch(lambda: Outage("refused", 60), lost.append, reason, event)
    for left in [thread for thread in threading.enumerate() if thread.name == "outage"]:
        left.join(60)
        assert not left.is_alive()
    assert [(str(failure), failure.reason) for failure in lost] == [("refused", reason)]


@pytest.fixture
def master():
    """A master's page in JSON, with the fields that ``JsonProtocol`` writes; the test says what it shows."""
    shown = {}

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(shown).encode())

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port, shown
    server.shutdown()
    server.server_close()


def context(port, *, executors="", jobs=(0,), master=None):
    ids = SimpleNamespace(mkString=lambda _: executors)
    return SimpleNamespace(
        master=master or f"spark://127.0.0.1:{port}",
        applicationId="app-1",
        statusTracker=lambda: SimpleNamespace(getActiveJobsIds=lambda: list(jobs)),
        _jsc=SimpleNamespace(sc=lambda: SimpleNamespace(getExecutorIds=lambda: ids)),
    )


def test_why_a_cluster_gives_no_executor(master, monkeypatch):
    port, shown = master
    monkeypatch.setattr(outage, "_port_of_page", lambda *_: port)
    worker = {"state": "ALIVE", "cores": 4, "coresfree": 0, "memoryfree": 512}
    ours, other = {"id": "app-1", "cores": 0}, {"id": "app-2", "cores": 4}
    none = f"spark://127.0.0.1:{port} gives no executor"
    shown |= {"status": "ALIVE", "workers": [{**worker, "state": "DEAD"}], "activeapps": [ours]}
    assert no_executor(context(port)) == Outage(f"{none}: it has no worker")
    assert no_executor(context(port), 4).patience == 4
    shown |= {"workers": [worker, {**worker, "coresfree": 1}], "activeapps": [ours, other]}
    assert no_executor(context(port)) == Outage(f"{none}: workers: 2, with 1 of 8 cores and 1024 MiB free")
    # One starts; one runs; nothing waits for one.
    shown |= {"activeapps": [{**ours, "cores": 1}, other]}
    assert no_executor(context(port)) is None
    shown |= {"activeapps": [ours]}
    assert no_executor(context(port, executors="0 1")) is None
    assert no_executor(context(port, jobs=())) is None
    # A standby master, and a master that shows nothing, say nothing; nor does YARN.
    for status in ("STANDBY", None):
        shown["status"] = status
        assert no_executor(context(port)) == Outage(f"{none}, and its master does not say why", 120.0)
    assert no_executor(context(port, master="yarn")) == Outage("yarn gives no executor", 120.0)


def test_a_master_that_takes_no_connection_is_an_outage_whatever_its_page_said(master):
    """Of several, one that does is enough."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        closed = free.getsockname()[1]
    url, why = f"spark://127.0.0.1:{closed}", os.strerror(errno.ECONNREFUSED)
    assert no_master(url) == no_executor(context(closed)) == Outage(f"{url} takes no connection: {why}")
    assert no_master(f"{url},localhost:{master[0]}") is None
    broker = none_listens(f"127.0.0.1:{closed},127.0.0.1:{closed}", "the Kafka broker {}")
    assert broker.what == f"the Kafka broker 127.0.0.1:{closed},127.0.0.1:{closed} takes no connection: {why}"
    assert no_master("local[2]") is no_master("") is no_master("yarn") is None
