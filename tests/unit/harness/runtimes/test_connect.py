"""Addresses of Connect servers, what is secret in them, what such engines lack, and which targets have their engines elsewhere."""

import socket
import threading
import time
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from itertools import product

import pytest

from conformance.core.case import TABLE_FORMATS
from conformance.core.errors import WrongUsage, end_waits
from conformance.core.versions import SparkVersion
from harness.engine.engine import NOTHING_ELSE
from harness.errors import HarnessError
from harness.progress import ignore_progress
from harness.runtimes import connect
from harness.runtimes.cluster import StorageUrl
from harness.runtimes.connect import Beside, ConnectRuntime, Endpoint, NoConnect
from harness.runtimes.local import LocalRuntime
from harness.runtimes.options import RuntimeOptions, runtime
from harness.targets.targets import Targets
from tests.support.miniature.target import SPARK_359
from tests.support.whole_suite import whole_suite

OPEN = "sc://localhost:15002"
LOCKED = "sc://spark.example:443/;use_ssl=true;token=dapi-4711;user_id=me;x-cluster=0815-abc"


@pytest.mark.parametrize("url", [OPEN, OPEN + "/", LOCKED, "sc://[::1]:15002"])
def test_addresses(url):
    assert Endpoint.parse(url).url == url


@pytest.mark.parametrize(
    "url", ["", "localhost:15002", "http://localhost:15002", "sc://", "sc://host:443/token=dapi-4711"]
)
def test_invalid_addresses(url):
    with pytest.raises(WrongUsage, match="sc://host:15002") as raised:
        Endpoint.parse(url)
    assert "dapi-4711" not in str(raised.value)


def test_the_token_of_an_address_is_never_shown():
    endpoint = Endpoint.parse(LOCKED)
    assert str(endpoint) == "sc://spark.example:443"
    for shown in (repr(endpoint), endpoint.redact(f"no session at {LOCKED}: dapi-4711")):
        assert "dapi-4711" not in shown
        assert "0815-abc" not in shown
    assert endpoint.redact("use_ssl=true for me") == "use_ssl=true for me"


def test_which_see_this_machines_files():
    assert Endpoint.parse(OPEN).on_this_machine
    assert not Endpoint.parse(LOCKED).on_this_machine
    assert not Endpoint.parse("sc://localhost.example:15002").on_this_machine


def test_what_cannot_be_had_through_connect_is_little(tmp_path):
    cases = whole_suite().cases
    for storage, line in product((None, StorageUrl("hdfs://host/tests")), ("3.5", "newest")):
        runtime = ConnectRuntime(tmp_path, Endpoint.parse(OPEN), storage=storage)
        (target,) = Targets.load().select([line])
        lacking = {case.id: why for case in cases if (why := runtime.unsupported(case, target))}
        assert "cannot be killed" in lacking["recovery/killed-while-it-runs-counts-no-row-twice"]
        assert ("recovery/truncated-commit-is-refused" in lacking) == (storage is not None)
        assert "in the JVM" in lacking["recovery/state-may-be-divided-into-other-partitions.3"]
        assert "clock" in lacking["no-data-batches/processing-time-trigger-skips-missed-times"]
        assert ("late-drops/limit-drops-no-late-rows" in lacking) == (line == "3.5")
        # Topics and tables are filled through the engine's JVM.
        of_files = {case.id for case in cases if case.source not in ("kafka", *TABLE_FORMATS)}
        assert len(of_files & lacking.keys()) < 0.15 * len(of_files)


def test_connect_is_not_available_before_3_5(tmp_path):
    with pytest.raises(NoConnect, match="does not run streaming queries through Spark Connect"):
        ConnectRuntime(tmp_path, Endpoint.parse(OPEN)).start(
            Targets.load().select(["3.4"])[0], on_progress=ignore_progress
        )


CONNECTED = replace(SPARK_359, through_connect=True)


class Named:
    def __init__(self, name):
        self.name, self.started, self.closed = name, [], False

    def unsupported(self, case, target):
        return f"{case} not on {self.name}"

    def fingerprint(self, target):
        return self.name

    def start(self, target, *, on_progress, needs=NOTHING_ELSE):
        self.started.append(target.name)
        return self.name

    def close(self):
        self.closed = True


def test_a_target_is_asked_where_it_runs():
    here, there = Named("local"), Named("connect")
    both = Beside(here, there, lambda target: target.through_connect)
    for target, one in ((SPARK_359, here), (CONNECTED, there)):
        assert both.start(target, on_progress=print) == one.name
        assert both.fingerprint(target) == one.name
        assert both.unsupported("it", target) == f"it not on {one.name}"
        assert one.started == [target.name]
    both.close()
    assert here.closed
    assert there.closed


def test_both_have_one_folder(tmp_path):
    options = RuntimeOptions(endpoint=Endpoint.parse("sc://localhost"), beside_connect=True)
    both = runtime(options, tmp_path, keep=False)
    assert isinstance(both, Beside)
    assert isinstance(both.here, LocalRuntime)
    assert isinstance(both.there, ConnectRuntime)
    assert both.here.root == both.there.root == tmp_path
    assert options.uses_java_here
    assert isinstance(runtime(replace(options, beside_connect=False), tmp_path, keep=False), ConnectRuntime)


def test_a_closed_port_is_reported_before_anything_is_installed(tmp_path, monkeypatch):
    """A server that has answered before gets the time to come back; a proxy may reach what this machine does not."""
    monkeypatch.setattr(connect, "prepare", lambda *_, **__: pytest.fail("installed"))
    monkeypatch.setattr(connect, "_BACK_SECONDS", 2)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    runtime = ConnectRuntime(tmp_path, Endpoint.parse(f"sc://127.0.0.1:{port}/;token=sesame"))
    said = []
    for answered in (False, True):
        if answered:
            runtime._answered.set()
        with pytest.raises(HarnessError) as raised:
            runtime.start(Targets.load().select(["newest"])[0], on_progress=said.append)
        assert str(raised.value) == (
            f"cannot connect to the Connect server sc://127.0.0.1:{port}: 127.0.0.1:{port}: Connection refused. "
            "Is it running, and can this machine reach it?"
        )
    assert said == [f"{raised.value}; trying again for 2 s"]
    monkeypatch.setattr(connect, "_BACK_SECONDS", 60)
    began = time.monotonic()
    with pytest.raises(HarnessError):
        runtime.start(Targets.load().select(["newest"])[0], on_progress=lambda _: end_waits())
    assert time.monotonic() - began < 20
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    Endpoint.parse("sc://spark.invalid:443/;use_ssl=true").check(SPARK_359.version)


@pytest.mark.parametrize(
    ("address", "version", "refused"),
    [
        ("127.0.0.1:{}/;token=sesame", "3.5.9", True),
        ("127.0.0.1:{}/;token=sesame", "4.3.0", True),
        ("localhost:{}/;token=sesame", "3.5.9", True),
        ("localhost:{}/;token=sesame", "4.3.0", False),
        ("localhost:{}/;use_ssl=true", "4.3.0", True),
        ("127.0.0.1:{}", "4.3.0", False),
    ],
)
def test_a_server_without_tls_is_named_at_once_where_the_client_uses_it(address, version, refused):
    """A server answers the beginning of TLS with the first frame of HTTP/2, its settings."""
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as stack:

        def answer():
            with suppress(OSError):
                while True:
                    stack.enter_context(server.accept()[0]).sendall(bytes.fromhex("000000040000000000"))

        threading.Thread(target=answer, daemon=True).start()
        endpoint = Endpoint.parse("sc://" + address.format(server.getsockname()[1]))
        with pytest.raises(HarnessError) if refused else nullcontext() as raised:
            endpoint.check(SparkVersion.parse(version))
        if refused:
            line = version[:3]
            assert str(raised.value).startswith(
                f"{endpoint} has no TLS, which the client of {line} uses: write localhost"
            )


def test_another_failure_of_tls_is_the_clients_to_report():
    """It knows the certificates, and whatever else a server wants."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=lambda: [server.accept()[0].close() for _ in range(2)], daemon=True).start()
        Endpoint.parse(f"sc://localhost:{server.getsockname()[1]}/;use_ssl=true").check(SPARK_359.version)
