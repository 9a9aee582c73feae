"""Which versions resume whose checkpoints, by the policies of ``upgrade_paths.yaml``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, permutations, product
from typing import Any, Literal, TypeAlias, get_args

from conformance.core.data import read_data
from harness.targets.target import Target
from harness.targets.targets import Obstacle, Targets, runs_anywhere

Policy: TypeAlias = Literal["neighbours", "lts", "all"]
POLICIES: tuple[str, ...] = get_args(Policy)
TargetPair: TypeAlias = tuple[Target, Target]
"""The version that writes the checkpoint, and the one that resumes from it."""


def pairs(
    targets: Targets, policy: Policy | None = None, *, obstacle: Obstacle = runs_anywhere
) -> tuple[TargetPair, ...]:
    """The pairs of a policy, each once; by default those that users ask for most.

    Args:
        targets: the catalogue.
        policy: ``neighbours``: each line and the next. ``lts``: the jumps of ``upgrade_paths.yaml``. ``all``: each line and every other.
        obstacle: why a target cannot run here, None if it can. A line that is chosen by name is in a pair only where it runs.
    """
    policies: dict[str, Any] = read_data("harness.targets", "upgrade_paths.yaml")
    lines = [target for target in targets.every_line() if not target.by_name or obstacle(target) is None]
    if policy == "all":
        return tuple(permutations(lines, 2))
    found: list[TargetPair] = []
    if policy != "lts" and policies["neighbours"]:
        found += pairwise(lines)
    if policy != "neighbours":
        found += _jumps(policies["jumps"], lines)
    return tuple(dict.fromkeys(_both_ways(found) if policies["back"] else found))


def between(origins: Sequence[Target], others: Sequence[Target]) -> tuple[TargetPair, ...]:
    """Each of the first with each of the second except itself; a version with itself only if there is no other pair."""
    found = tuple(product(origins, others))
    return tuple(pair for pair in found if pair[0] != pair[1]) or found


def _jumps(jumps: Iterable[dict[str, str]], lines: Sequence[Target]) -> Iterator[TargetPair]:
    known = {target.version.line: target for target in lines} | {"newest": lines[-1]}
    for jump in jumps:
        if jump["from"] in known and jump["to"] in known:
            yield known[jump["from"]], known[jump["to"]]


def _both_ways(found: Iterable[TargetPair]) -> Iterator[TargetPair]:
    for origin, to in found:
        yield origin, to
        yield to, origin
