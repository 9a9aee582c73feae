"""Which of two runtimes an engine of a target comes from."""

from dataclasses import replace

from harness.engine.engine import NOTHING_ELSE
from harness.runtimes.beside_connect import BesideConnect
from harness.runtimes.connect import ConnectRuntime, Endpoint
from harness.runtimes.local import LocalRuntime
from harness.runtimes.options import RuntimeOptions, runtime
from tests.support.miniature.target import SPARK_359

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
    both = BesideConnect(here, there)
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
    assert isinstance(both, BesideConnect)
    assert isinstance(both.classic, LocalRuntime)
    assert isinstance(both.connect, ConnectRuntime)
    assert both.classic.root == both.connect.root == tmp_path
    assert options.uses_java_here
    assert isinstance(runtime(replace(options, beside_connect=False), tmp_path, keep=False), ConnectRuntime)
