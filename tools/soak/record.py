"""The result of a soak: a record to keep."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Literal

from pydantic import Field

from conformance.core.observation import FrozenRecord
from conformance.core.output_file import FileKind
from tools.soak.invariants import InvariantVerdict, StreamTotals

SOAK_RECORD = FileKind(
    "the record of a soak", lambda start: re.match(rb'\{\s*"format": 1,\s*"command":', start) is not None
)


class SoakRecord(FrozenRecord):
    """``soak.json``."""

    format: Literal[1] = 1
    command: str
    started: datetime
    target: str
    spark: str
    """The version, as the engine reports it."""
    java: str
    master: str | None
    """The cluster; None for this machine."""
    rows: int
    seed: int
    kills_wanted: int
    kills: int
    seconds: float
    """From the first start of the query to its end, including the starts of engines in between."""
    arrived: int
    """The rows of the input; the next three fields say where they went."""
    counted: int
    late: int
    in_state: int
    invariants: tuple[InvariantVerdict, ...] = Field(alias="laws")

    @property
    def totals(self) -> StreamTotals:
        return StreamTotals(self.arrived, self.counted, self.late, self.in_state)

    @property
    def exit_code(self) -> int:
        """0 if every invariant holds, 1 if one is broken, 3 if fewer engines were killed than requested."""
        if not self.totals.balanced or any(invariant.status == "broken" for invariant in self.invariants):
            return 1
        return 0 if self.kills == self.kills_wanted else 3

    @property
    def text(self) -> str:
        return self.model_dump_json(indent=2, by_alias=True) + "\n"
