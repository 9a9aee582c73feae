"""Shrinks a case: removes and simplifies parts as long as it still shows the difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from conformance.core.case import Case
from conformance.fuzzing.reductions import REDUCTIONS, Reduction, Written, cost
from conformance.language import case_from
from conformance.language.printing import printed
from conformance.language.problem import InvalidCase

Differs: TypeAlias = Callable[[Sequence[Case]], Sequence[bool]]
"""For each case, whether it still shows the difference."""


def shrunk(
    written: Written,
    differs: Differs,
    *,
    at_once: int = 1,
    smaller: Callable[[Written], None] = lambda _: None,
) -> Written:
    """A case that no single reduction makes smaller without losing the difference.

    Args:
        written: the case in the shape of its YAML.
        differs: checks whether cases show the difference.
        at_once: how many cases to check at a time: as many as engines run in parallel.
        smaller: called with each smaller case that shows the difference, so that nothing is lost on interruption.
    """
    return _Shrinking(differs, at_once, smaller).shrunk(written)


class _Shrinking:
    def __init__(self, differs: Differs, at_once: int, smaller: Callable[[Written], None]) -> None:
        self._differs = differs
        self._at_once = at_once
        self._smaller = smaller
        self._tried: set[str] = set()

    def shrunk(self, written: Written) -> Written:
        while True:
            before = written
            for reduction in REDUCTIONS:
                written = self._reduced(reduction, written)
            if written is before:
                return written

    def _reduced(self, reduction: Reduction, written: Written) -> Written:
        """Apply one kind of reduction as often as possible; after a success, continue at the same place."""
        done = 0
        while True:
            candidates = islice(reduction(written), done, None)
            found = self._first(candidates, written)
            if found is None:
                return written
            place, written = found
            done += place
            self._smaller(written)

    def _first(self, candidates: Iterator[Written], than: Written) -> tuple[int, Written] | None:
        """The first smaller candidate that still shows the difference, and its position."""
        limit = cost(than)
        numbered = enumerate(candidates)
        while batch := self._untried(numbered, limit):
            shown = self._differs([case for _, _, case in batch])
            for (place, written, _), still in zip(batch, shown, strict=True):
                if still:
                    return place, written
        return None

    def _untried(self, numbered: Iterator[tuple[int, Written]], limit: object) -> list[tuple[int, Written, Case]]:
        batch: list[tuple[int, Written, Case]] = []
        for place, written in numbered:
            if cost(written) >= limit:  # type: ignore[operator]
                continue
            text = printed(written)
            if text in self._tried:
                continue
            self._tried.add(text)
            try:
                batch.append((place, written, case_from(written, "smaller")))
            except InvalidCase:
                continue
            if len(batch) == self._at_once:
                break
        return batch
