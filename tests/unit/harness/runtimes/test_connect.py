"""Addresses of Connect servers, what is secret in them, and what such engines lack."""

from itertools import product

import pytest

from harness.progress import ignore_progress
from harness.runtimes.connect import ConnectRuntime, Endpoint, NoConnect, NotAnEndpoint
from harness.runtimes.storage import StorageUrl
from harness.targets.catalogue import Targets
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
    with pytest.raises(NotAnEndpoint, match="sc://host:15002") as raised:
        Endpoint.parse(url)
    assert "dapi-4711" not in str(raised.value)


def test_the_token_of_an_address_is_never_shown():
    endpoint = Endpoint.parse(LOCKED)
    assert str(endpoint) == "sc://spark.example:443"
    for shown in (
        str(endpoint),
        repr(endpoint),
        f"{endpoint!s}",
        endpoint.redact(f"no session at {LOCKED}: dapi-4711"),
    ):
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
        assert ("late-drops/limit-drops-no-late-rows" in lacking) == (line == "3.5")
        assert len(lacking) < 0.15 * len(cases)


def test_connect_is_not_available_before_3_5(tmp_path):
    with pytest.raises(NoConnect, match="does not run streaming queries through Spark Connect"):
        ConnectRuntime(tmp_path, Endpoint.parse(OPEN)).start(
            Targets.load().select(["3.4"])[0], on_progress=ignore_progress
        )


def test_any_release_may_be_at_an_endpoint():
    (target,) = Targets.load().select(["4.0.0"])
    assert (str(target.version), target.python) == ("4.0.0", Targets.load().select(["4.0"])[0].python)
