"""The condition under which a job meets what a case shows: default settings, a setting, a state store, an edited checkpoint, a restart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from conformance.core.case import Alter, Case, Restart

ConditionKind: TypeAlias = Literal["default settings", "restart", "setting", "state store", "edits", "unknown"]

KINDS: Mapping[ConditionKind, str] = {
    "default settings": "with default settings",
    "restart": "only after a restart",
    "setting": "only with a setting",
    "state store": "only with RocksDB",
    "edits": "only with a damaged checkpoint, another query or other files",
    "unknown": "under a condition that is not known, as the case is not at hand",
}
"""Every kind, what any job can meet first."""

WITHOUT_EFFECT = frozenset(
    {"spark.sql.shuffle.partitions", "spark.sql.session.timeZone", "spark.sql.legacy.interval.enabled"}
)
"""Settings that cases make for the sake of their rows, and that no behaviour of theirs depends on."""
DEFAULTS: Mapping[str, str] = {
    "spark.sql.dropDuplicates.deterministicKeyOrder.enabled": "true",
    "spark.sql.streaming.aggregation.stateFormatVersion": "2",
    "spark.sql.streaming.join.stateFormatVersion": "2",
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
    "spark.sql.streaming.offsetLog.formatVersion": "1",
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "false",
    "spark.sql.streaming.stateStore.compression.codec": "lz4",
    "spark.sql.streaming.stateStore.encodingFormat": "unsaferow",
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "spark.sql.streaming.stateStore.rowChecksum.enabled": "false",
    "spark.sql.streaming.statefulOperator.checkCorrectness.enabled": "true",
}
"""Settings that cases write out although every version that knows them has this default."""


@dataclass(frozen=True)
class Condition:
    """What a job must have, beside its query, to meet what a case shows."""

    settings: tuple[str, ...] = ()
    """``spark.sql.streaming.join.stateFormatVersion=1``, without those that are the default."""
    state_store: str | None = None
    """``RocksDB``; None for the default."""
    edits: tuple[str, ...] = ()
    """What is changed while the query stands still: ``metadata gone``, ``another query``."""
    restart: bool = False
    known: bool = True

    @classmethod
    def of(cls, case: Case, last: int | None = None, *, restart: bool | None = None) -> Condition:
        """Derive the condition from what the case does.

        Args:
            last: the step that shows the behaviour: what later steps do does not count. None for the last step.
            restart: whether a restart alone shows it; None if that depends on whether the case restarts.
        """
        actions = [step.action for step in case.steps if last is None or step.number <= last]
        restarts = [action for action in actions if isinstance(action, Restart)]
        conf = {key: value for key, value in case.conf.items() if key not in WITHOUT_EFFECT}
        changed = [
            (key, value)
            for action in restarts
            for key, value in (action.change.conf or {}).items()
            if case.conf.get(key, DEFAULTS.get(key)) != value
        ]
        needed = [(key, value) for key, value in (*conf.items(), *changed) if DEFAULTS.get(key) != value]
        settings = (f"{key}={value}" for key, value in needed if "RocksDB" not in value)
        return cls(
            tuple(dict.fromkeys(settings)),
            "RocksDB" if any("RocksDB" in value for _, value in needed) else None,
            tuple(dict.fromkeys(edit for action in actions for edit in _edits(action))),
            bool(restarts) if restart is None else restart,
        )

    @property
    def kind(self) -> ConditionKind:
        """The rarest thing that it asks of a job, so that each case is counted once."""
        if not self.known:
            return "unknown"
        if self.edits:
            return "edits"
        if self.settings:
            return "setting"
        if self.state_store:
            return "state store"
        return "restart" if self.restart else "default settings"

    def __str__(self) -> str:
        """Return ``only with a setting: spark.sql.streaming.join.stateFormatVersion=1``."""
        needs = [*self.edits, *self.settings, *([self.state_store] if self.state_store else [])]
        return KINDS[self.kind] + (f": {', '.join(needs)}" if needs else "")


UNKNOWN = Condition(known=False)
"""The condition of what a case shows that is not at hand."""


def _edits(action: object) -> Iterator[str]:
    if isinstance(action, Alter):
        yield "other columns of a table"
    if not isinstance(action, Restart):
        return
    change = action.change
    yield from (f"{part} {damage}" for damage, part in action.damage.items())
    for has, edit in (
        (change.query, "another query"),
        (change.output_mode, "another output mode"),
        (change.trigger, "another trigger"),
        (change.partitions, "more partitions of a topic"),
        (action.repartition, "state in other partitions"),
        (action.aged_out, "records that are gone"),
        (action.alter, "other columns of a table"),
        (action.checkpoint, f"the checkpoint {action.checkpoint}"),
    ):
        if has:
            yield edit


def counts(conditions: Iterable[Condition]) -> Mapping[ConditionKind, int]:
    """Count by kind, default settings first, also if there are none."""
    by_kind = Counter(condition.kind for condition in conditions)
    return {kind: by_kind[kind] for kind in KINDS if by_kind[kind] or kind == "default settings"}


def by_condition(conditions: Iterable[Condition]) -> str:
    """Return ``4 with default settings, 5 only with a setting, 1 only with RocksDB``."""
    return ", ".join(f"{count or 'none'} {KINDS[kind]}" for kind, count in counts(conditions).items())
