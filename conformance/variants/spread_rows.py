"""Rows of a micro-batch spread over partitions, in turn: which task reads a row is nobody's business."""

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
    """Rows that lie in one partition; where a case places them itself, that is its point."""
    if len(rows.partitions) != 1 or len(rows.partitions[0]) < 2:
        return rows
    return Partitioned(partitions=tuple(rows.partitions[0][at::PARTITIONS] for at in range(PARTITIONS)))
