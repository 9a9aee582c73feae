"""On which side of a comparison a cluster or a Connect server runs."""

from dataclasses import replace

import pytest
import typer

from conformance.cli.engine_options import Sides
from conformance.runner.resources import EngineUse
from harness.runtimes.cluster import Cluster, StorageUrl
from harness.runtimes.connect import Endpoint, NoConnect
from harness.runtimes.local import LocalRuntime
from harness.runtimes.options import RuntimeOptions, runtime
from harness.targets.targets import Targets

OLD, NEW = Targets.load().select(["3.4", "4.3"])
SERVER = Endpoint.parse("sc://localhost:15002")
CLUSTER = Cluster.parse("spark://127.0.0.1:7077")


def placed(sides, **given):
    before, after, where = sides.placed(OLD, NEW, EngineUse(runtime=RuntimeOptions(**given)))
    return before, after, where.runtime


def test_the_later_version_runs_through_connect_unless_a_side_is_named():
    before, after, options = placed(Sides(), endpoint=SERVER)
    assert (before.through_connect, after.through_connect, options.beside_connect) == (False, True, True)


def test_a_version_that_has_no_connect_is_refused():
    with pytest.raises(NoConnect):
        placed(Sides(connect_side="from"), endpoint=SERVER)


@pytest.mark.parametrize("side", ["from", "to"])
def test_a_cluster_serves_both_versions_or_one(tmp_path, side):
    assert placed(Sides(), cluster=CLUSTER)[2].cluster_of is None
    options = placed(Sides(master_side=side), cluster=CLUSTER)[2]
    both = runtime(options, tmp_path, keep=False)
    clusters = [both._of(target) for target in (OLD, NEW)]
    assert all(isinstance(each, LocalRuntime) for each in clusters)
    assert [each.cluster for each in clusters] == ([CLUSTER, None] if side == "from" else [None, CLUSTER])


@pytest.mark.parametrize(
    ("sides", "given", "why"),
    [
        (Sides(master_side="to"), {}, "--master"),
        (Sides(), {"cluster": CLUSTER, "storage": StorageUrl("hdfs://host/tests")}, "a folder that all machines share"),
    ],
)
def test_what_cannot_be_is_said(sides, given, why):
    with pytest.raises(typer.BadParameter, match=why):
        placed(sides, **given)


def test_the_server_of_a_side_is_named_and_on_this_machine(monkeypatch):
    monkeypatch.delenv("CONFORMANCE_CONNECT", raising=False)
    with pytest.raises(typer.BadParameter, match="pass the address of the server"):
        _ = Sides(connect_side="to").address
    with pytest.raises(typer.BadParameter, match="on the machine of the server"):
        _ = Sides(connect="sc://elsewhere:15002").address
    assert Sides(connect="sc://localhost:15002").address == "sc://localhost:15002"
    assert replace(Sides(), connect_side=None).address is None
