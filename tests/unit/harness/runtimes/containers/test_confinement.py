"""What docker is asked for."""

from types import SimpleNamespace

import pytest

from conformance.core.errors import WrongUsage
from harness.runtimes.containers.daemon import missing_limits
from harness.runtimes.containers.runtime import Confinement


def daemon(**info):
    return SimpleNamespace(client=SimpleNamespace(info=lambda: info))


def test_it_is_safe_by_default():
    asked = Confinement().arguments(missing_limits(daemon(MemoryLimit=True)))
    assert asked["network"] == "none"
    assert asked["cap_drop"] == ["ALL"]
    assert asked["security_opt"] == ["no-new-privileges"]
    assert asked["read_only"] is True
    assert set(asked["tmpfs"]) == {"/tmp"}
    assert asked["mem_limit"] == asked["memswap_limit"] == "3g"
    assert asked["nano_cpus"] == 2_000_000_000
    assert asked["pids_limit"] == 2048


def test_what_a_daemon_cannot_limit_is_not_asked_for_but_told():
    missing = missing_limits(daemon(MemoryLimit=False, SwapLimit=False, CpuCfsQuota=False, PidsLimit=True))
    asked = Confinement().arguments(missing)
    assert not {"mem_limit", "memswap_limit", "nano_cpus"} & asked.keys()
    assert asked["pids_limit"] == 2048
    assert missing == ("memory", "swap", "CPU")
    assert missing_limits(daemon()) == ()


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"memory": "3 GB"}, "--memory 3 GB: not a size; use bytes or a number with k, m or g, such as 3g"),
        ({"memory": ""}, "--memory : not a size"),
        ({"cpus": 0}, "--cpus 0: not a positive number"),
        ({"cpus": -1.0}, "--cpus -1.0: not a positive number"),
    ],
)
def test_an_invalid_limit_is_refused(limits, message):
    with pytest.raises(WrongUsage) as caught:
        Confinement(**limits)
    assert str(caught.value).startswith(message)
    assert caught.value.exit_code == 2
