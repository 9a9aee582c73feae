"""What becomes of a job's checkpoint on another version, compared with a restart on the version that wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from conformance.core.observation import ErrorSeen, Observation
from conformance.judging.divergence import Divergence, divergences

Met: TypeAlias = Literal["refused", "fails", "other rows", "unknown", "fails everywhere", "resumed"]
"""What a checkpoint meets on the later version; worst first. ``fails``: it resumes, and then the query fails or the job's own code
does; ``fails everywhere``: the query fails also where the checkpoint was written."""

WORST_FIRST: Sequence[Met] = ("refused", "fails", "other rows", "unknown", "fails everywhere", "resumed")


@dataclass(frozen=True)
class Handoff:
    """One checkpoint, handed over before a step."""

    cut: int
    met: Met
    error: ErrorSeen | None = None
    """Of the later version."""
    first: Divergence | None = None
    """Where the later version differs first from a restart on the earlier one."""
    lacking: str | None = None
    """Why there is no answer."""


@dataclass(frozen=True)
class Handoffs:
    """Checkpoints that met the same, by the steps before which they were handed over."""

    met: Met
    steps: tuple[int, ...]
    shown: Handoff
    """The first of them."""


def judge_handoff(cut: int, restarted: Observation | None, resumed: Observation | None, lacking: str | None) -> Handoff:
    """Judge one checkpoint.

    Args:
        cut: the step before which it was handed over.
        restarted: what the version that wrote it did after a restart there.
        resumed: what the other version did; None without an answer.
        lacking: why there is none.
    """
    if restarted is None or resumed is None:
        return Handoff(cut, "unknown", lacking=lacking)
    if resumed.error is not None:
        if restarted.error is not None:
            return Handoff(cut, "fails everywhere", resumed.error)
        ran = any(step.batches for step in resumed.steps if step.number >= cut)
        return Handoff(cut, "fails" if ran or resumed.error.own_code is not None else "refused", resumed.error)
    first = next((found for found in divergences(restarted, resumed) if found.what in ("rows", "steps", "error")), None)
    return Handoff(cut, "resumed" if first is None or restarted.error is not None else "other rows", first=first)


def grouped(found: Iterable[Handoff]) -> tuple[Handoffs, ...]:
    """Those that met the same together, worst first."""
    groups: dict[tuple[Met, str], list[Handoff]] = {}
    for one in found:
        groups.setdefault((one.met, one.error.title if one.error is not None else one.lacking or ""), []).append(one)
    together = [Handoffs(met, tuple(one.cut for one in some), some[0]) for (met, _), some in groups.items()]
    return tuple(sorted(together, key=lambda group: WORST_FIRST.index(group.met)))
