"""Every variant, and the cases it produces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from conformance.core.case import Case
from conformance.core.errors import WrongUsage
from conformance.core.state_stores import StateStore
from conformance.language.suggest import unknown
from conformance.language.variant_names import DESCRIPTIONS
from conformance.variants.arrivals import Rearranged, reversed_rows, spread_rows
from conformance.variants.from_kafka import FromKafka
from conformance.variants.restarted import Restarted
from conformance.variants.rows_for_pandas import RowsForPandas
from conformance.variants.settings import Settings
from conformance.variants.shifted_epoch import ShiftedEpoch
from conformance.variants.since import versions_of
from conformance.variants.variant import Variant, VariedCase

_STORE = "spark.sql.streaming.stateStore"

KAFKA = "kafka"
"""The variant that needs a broker."""


class NoSuchVariant(WrongUsage):
    """No variant has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(unknown("variant", name, DESCRIPTIONS))
        self.name = name


@cache
def variants() -> tuple[Variant, ...]:
    """All variants, in the order of ``DESCRIPTIONS``."""
    rocksdb = StateStore.named("rocksdb")
    shuffle, zone = "spark.sql.shuffle.partitions", "spark.sql.session.timeZone"
    found: list[Variant] = [
        Rearranged("reversed-rows", reversed_rows),
        Rearranged("spread-rows", spread_rows),
        Settings("one-shuffle-partition", {shuffle: "1"}, default=True),
        Settings("four-shuffle-partitions", {shuffle: "4"}),
        Settings("rocksdb", rocksdb.conf, rocksdb.versions),
        Settings(
            "changelog-checkpoints",
            {**rocksdb.conf, f"{_STORE}.rocksdb.changelogCheckpointing.enabled": "true"},
            versions_of("changelog-checkpoints"),
        ),
        Settings(
            "checkpoint-format-2",
            {**rocksdb.conf, f"{_STORE}.checkpointFormatVersion": "2"},
            versions_of("checkpoint-format-2"),
        ),
        Settings(
            "avro-state",
            {**rocksdb.conf, f"{_STORE}.encodingFormat": "avro"},
            versions_of("avro-state"),
            only="transformWithState",
        ),
        Settings("row-checksum", {f"{_STORE}.rowChecksum.enabled": "true"}, versions_of("row-checksum")),
        RowsForPandas(),
        Settings(
            "no-codegen", {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
        ),
        Settings("adaptive", {"spark.sql.adaptive.enabled": "true"}),
        # UTC+05:45, not a whole number of hours.
        Settings("time-zone", {zone: "Asia/Kathmandu"}),
        ShiftedEpoch(),
        FromKafka(),
        Restarted(),
    ]
    return tuple(found)


def varied(cases: Iterable[Case], names: Sequence[str]) -> tuple[VariedCase, ...]:
    """Every case as changed by each of these variants, except those that the case excludes.

    Args:
        cases: as written.
        names: of variants; empty means all but ``kafka``, which needs a broker.

    Raises:
        NoSuchVariant: one of the names is unknown.
    """
    for name in names:
        if name not in DESCRIPTIONS:
            raise NoSuchVariant(name)
    chosen = [one for one in variants() if one.name in names or (not names and one.name != KAFKA)]
    return tuple(
        VariedCase.of(case, output)
        for case in cases
        for variant in chosen
        if variant.name not in case.variants
        for output in variant.of(case)
    )
