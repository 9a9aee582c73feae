"""The smallest case that still shows it, as far as leaving out and making plainer go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from conformance.core.case import Case
from conformance.fuzzing.reductions import Way, Written, cost, ways
from conformance.language import case_from
from conformance.language.printing import printed
from conformance.language.problem import InvalidCase

Differs: TypeAlias = Callable[[Sequence[Case]], Sequence[bool]]
"""Of each case whether it still shows what the first one showed."""


def shrunk(
    written: Written,
    differs: Differs,
    *,
    at_once: int = 1,
    smaller: Callable[[Written], None] = lambda _: None,
) -> Written:
    """A case that no single change makes smaller without losing what it shows.

    Args:
        written: a case in the shape of its YAML, which shows it.
        differs: says of cases whether they show it too.
        at_once: how many cases it is asked at a time: as many as engines answer side by side.
        smaller: hears of each smaller case that still shows it, so that nothing is lost when this is interrupted.
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
            for way in ways():
                written = self._along(way, written)
            if written is before:
                return written

    def _along(self, way: Way, written: Written) -> Written:
        """Everything of one sort that can go: after a success it goes on where it was, not from the beginning."""
        done = 0
        while True:
            candidates = islice(way(written), done, None)
            found = self._first(candidates, written)
            if found is None:
                return written
            place, written = found
            done += place
            self._smaller(written)

    def _first(self, candidates: Iterator[Written], than: Written) -> tuple[int, Written] | None:
        """The first that is smaller and still shows it, and its place."""
        least = cost(than)
        numbered = enumerate(candidates)
        while batch := self._untried(numbered, least):
            shown = self._differs([case for _, _, case in batch])
            for (place, written, _), still in zip(batch, shown, strict=True):
                if still:
                    return place, written
        return None

    def _untried(self, numbered: Iterator[tuple[int, Written]], least: object) -> list[tuple[int, Written, Case]]:
        batch: list[tuple[int, Written, Case]] = []
        for place, written in numbered:
            if cost(written) >= least:  # type: ignore[operator]
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
