"""How cores and memory are divided."""

import pytest

from harness.scheduling.budget import ENGINE_MEMORY, MAX_SIDE_BY_SIDE, Budget, Machine, budget

ROOMY = 1 << 40


@pytest.mark.parametrize(
    ("cores", "memory", "targets", "asked", "given"),
    [
        (2, ROOMY, 10, {}, Budget(2, 2, 4)),
        (2, ROOMY, 1, {}, Budget(1, 4, 4)),
        (1, ROOMY, 5, {}, Budget(1, 2, 2)),
        (8, ROOMY, 16, {}, Budget(5, 4, 8)),
        (64, ROOMY, 1, {}, Budget(1, MAX_SIDE_BY_SIDE, MAX_SIDE_BY_SIDE)),
        (8, 2 * ENGINE_MEMORY, 16, {}, Budget(2, 8, 8)),
        (8, 2 * ENGINE_MEMORY, 16, {"jobs": 6}, Budget(2, 8, 8)),
        (8, 0, 16, {}, Budget(1, 8, 8)),
        (2, ROOMY, 10, {"jobs": 5}, Budget(5, 1, 4)),
        (2, ROOMY, 10, {"side_by_side": 1}, Budget(2, 1, 1)),
        (2, ROOMY, 10, {"side_by_side": 20}, Budget(2, 20, 20)),
        (2, ROOMY, 0, {}, Budget(1, 4, 4)),
    ],
)
def test_engines_fit_cores_and_memory_and_cases_keep_the_cores_busy(cores, memory, targets, asked, given):
    assert budget(Machine(cores, memory), targets, **asked) == given


def test_this_machine_has_cores_and_memory():
    here = Machine.here()
    assert here.cores >= 1
    assert here.memory > 0


def test_a_container_has_the_memory_left_to_its_cgroup(tmp_path, monkeypatch):
    most, taken = tmp_path / "memory.max", tmp_path / "memory.current"
    most.write_text("1000\n")
    taken.write_text("400\n")
    monkeypatch.setattr("harness.scheduling.budget._LIMITS", ((most, taken),))
    assert Machine.here().memory == 600
    most.write_text("max\n")
    assert Machine.here().memory > 600
