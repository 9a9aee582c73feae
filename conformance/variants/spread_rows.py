"""Rows of a micro-batch distributed over partitions: it must not matter which task reads a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.core.case import Case, Partitioned
from conformance.variants.arrivals import rearranged
from conformance.variants.variant import VariantOutput

PARTITIONS = 3


@dataclass(frozen=True)
class SpreadRows:
    name: str = "spread-rows"

    def of(self, case: Case) -> Iterator[VariantOutput]:
        other = rearranged(case, _spread)
        if other != case:
            yield VariantOutput(self.name, other)


def _spread(_: str, rows: Partitioned) -> Partitioned:
    """Only rows in a single partition are spread: a case that places rows in partitions does so on purpose."""
    if len(rows.partitions) != 1 or len(rows.partitions[0]) < 2:
        return rows
    return Partitioned(partitions=tuple(rows.partitions[0][at::PARTITIONS] for at in range(PARTITIONS)))
