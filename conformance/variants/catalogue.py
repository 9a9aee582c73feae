"""Every variant, and the cases it makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from conformance.core.case import Case
from conformance.core.state_stores import StateStore
from conformance.language.suggest import unknown
from conformance.language.variant_names import DESCRIPTIONS
from conformance.variants.restarted import Restarted
from conformance.variants.reversed_rows import ReversedRows
from conformance.variants.settings import Settings
from conformance.variants.shifted_epoch import ShiftedEpoch
from conformance.variants.spread_rows import SpreadRows
from conformance.variants.variant import Variant, VariedCase


class NoSuchVariant(ValueError):
    """A name that is none of a variant."""

    exit_code = 2

    def __init__(self, name: str) -> None:
        super().__init__(unknown("variant", name, DESCRIPTIONS))
        self.name = name


@cache
def variants() -> tuple[Variant, ...]:
    """All of them, in the order of their names' list."""
    rocksdb = StateStore.named("rocksdb")
    shuffle, zone = "spark.sql.shuffle.partitions", "spark.sql.session.timeZone"
    found: list[Variant] = [
        ReversedRows(),
        SpreadRows(),
        Settings("one-shuffle-partition", {shuffle: "1"}, usual=True),
        Settings("four-shuffle-partitions", {shuffle: "4"}),
        Settings("rocksdb", rocksdb.conf, rocksdb.versions),
        Settings(
            "no-codegen", {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
        ),
        Settings("adaptive", {"spark.sql.adaptive.enabled": "true"}),
        # A quarter of an hour off every full hour, east of Greenwich.
        Settings("time-zone", {zone: "Asia/Kathmandu"}),
        ShiftedEpoch(),
        Restarted(),
    ]
    return tuple(found)


def varied(cases: Iterable[Case], names: Sequence[str]) -> tuple[VariedCase, ...]:
    """Every case in every shape that these variants give it; without those that a case opts out of.

    Args:
        cases: as written.
        names: of variants; all of them where there are none.

    Raises:
        NoSuchVariant: one of the names.
    """
    for name in names:
        if name not in DESCRIPTIONS:
            raise NoSuchVariant(name)
    chosen = [one for one in variants() if not names or one.name in names]
    return tuple(
        VariedCase.of(case, made)
        for case in cases
        for variant in chosen
        if variant.name not in case.variants
        for made in variant.of(case)
    )
