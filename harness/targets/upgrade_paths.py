"""Which versions go on from whose checkpoints: the policy of ``upgrade_paths.yaml`` on the targets there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from itertools import pairwise, permutations, product
from typing import Any, Literal, TypeAlias, get_args

import yaml

from harness.targets.catalogue import Targets
from harness.targets.target import Target

Policy: TypeAlias = Literal["neighbours", "lts", "all"]
POLICIES: tuple[str, ...] = get_args(Policy)
TargetPair: TypeAlias = tuple[Target, Target]
"""Who writes the checkpoint, and who goes on from it."""


def pairs(targets: Targets, policy: Policy | None = None) -> tuple[TargetPair, ...]:
    """The pairs of a policy, each once; those people ask for most where none is named.

    Args:
        targets: the catalogue.
        policy: ``neighbours``: every line and the next. ``lts``: the jumps of ``upgrade_paths.yaml``. ``all``: every line and every other.
    """
    said: dict[str, Any] = yaml.safe_load((files("harness.targets") / "upgrade_paths.yaml").read_text(encoding="utf-8"))
    lines = targets.lines()
    if policy == "all":
        return tuple(permutations(lines, 2))
    found: list[TargetPair] = []
    if policy != "lts" and said["neighbours"]:
        found += pairwise(lines)
    if policy != "neighbours":
        found += _jumps(said["jumps"], lines)
    return tuple(dict.fromkeys(_both_ways(found) if said["back"] else found))


def between(origins: Sequence[Target], others: Sequence[Target]) -> tuple[TargetPair, ...]:
    """Every one of the first with every one of the second but itself; a version with itself only where that is all there is."""
    found = tuple(product(origins, others))
    return tuple(pair for pair in found if pair[0] != pair[1]) or found


def _jumps(said: Iterable[dict[str, str]], lines: Sequence[Target]) -> Iterator[TargetPair]:
    known = {target.version.line: target for target in lines} | {"newest": lines[-1]}
    for jump in said:
        if jump["from"] in known and jump["to"] in known:
            yield known[jump["from"]], known[jump["to"]]


def _both_ways(found: Iterable[TargetPair]) -> Iterator[TargetPair]:
    for origin, to in found:
        yield origin, to
        yield to, origin
