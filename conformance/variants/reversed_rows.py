"""Rows of each partition in the opposite order, which must not matter within a micro-batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.core.case import Case, Partitioned
from conformance.variants.arrivals import rearranged
from conformance.variants.variant import VariantOutput


@dataclass(frozen=True)
class ReversedRows:
    name: str = "reversed-rows"

    def of(self, case: Case) -> Iterator[VariantOutput]:
        other = rearranged(case, _reversed)
        if other != case:
            yield VariantOutput(self.name, other)


def _reversed(_: str, rows: Partitioned) -> Partitioned:
    return Partitioned(partitions=tuple(partition[::-1] for partition in rows.partitions))
