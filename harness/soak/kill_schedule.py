"""When an engine is killed: moments that nobody chose, the same for the same seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

_EARLIEST, _LATEST = 0.05, 0.9
"""Shares of the rows between which engines are killed: behind that there might be nobody left to kill."""


@dataclass(frozen=True)
class Moment:
    """One of them."""

    rows: int
    """Not before so many rows are read."""
    when: Literal["emitted", "anywhere"]
    """As soon as a micro-batch has given its rows to the sink, and before it can be committed: that one is replayed. Or anywhere."""
    wait: float
    """Of ``anywhere``: how long after a micro-batch is over, in durations of that one."""


def moments(kills: int, rows: int, seed: int) -> tuple[Moment, ...]:
    """So many moments in the reading of so many rows, in order. The first is one before a commit, where most can go wrong."""
    chance = random.Random(seed)
    shares = sorted(chance.uniform(_EARLIEST, _LATEST) for _ in range(kills))
    return tuple(
        Moment(
            rows=int(share * rows),
            when="emitted" if number == 0 else chance.choice(("emitted", "anywhere")),
            wait=chance.uniform(0.0, 2.0),
        )
        for number, share in enumerate(shares)
    )
