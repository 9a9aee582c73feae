"""A part of a suite for one of several machines: ``2/5`` is the second of five."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from conformance.core.case import Case
from conformance.policies.case import PolicyCase
from conformance.suite.running_time import length

C = TypeVar("C", Case, PolicyCase)


class NotAShard(ValueError):
    """A text that does not say which of how many parts."""

    exit_code = 2

    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r} is not a shard; write 2/5 for the second of five parts")
        self.text = text


@dataclass(frozen=True)
class Shard:
    """Which of how many."""

    number: int
    """From 1."""
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """
        Raises:
            NotAShard: the text is not ``N/M`` with N from 1 to M.
        """
        found = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text.strip())
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise NotAShard(text)
        return cls(int(found[1]), int(found[2]))

    def among(self, cases: Sequence[C]) -> tuple[C, ...]:
        """The cases of this part, in their order. The parts of one suite take about as long, and each case is in one of them."""
        dealt = {case.id for case in sorted(cases, key=_length, reverse=True)[self.number - 1 :: self.of]}
        return tuple(case for case in cases if case.id in dealt)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def _length(case: Case | PolicyCase) -> int:
    return length(case) if isinstance(case, Case) else 0
