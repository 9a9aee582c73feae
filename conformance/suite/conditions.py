"""The condition under which a job meets what a case shows: default settings, a setting, a state store, an edited checkpoint, a restart."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, Self, TypeAlias

from conformance.core.case import Action, Alter, Case, Restart
from conformance.core.observation import FrozenRecord

ConditionKind: TypeAlias = Literal["default settings", "restart", "setting", "state store", "edits", "unknown"]

KINDS: Mapping[ConditionKind, str] = {
    "default settings": "with default settings",
    "restart": "only after a restart",
    "setting": "only with a setting",
    "state store": "only with RocksDB",
    "edits": "only with a damaged checkpoint or a changed job",
    "unknown": "whose case is not at hand",
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


class Condition(FrozenRecord):
    """What a job must have, beside its query, to meet what a case shows."""

    kind: ConditionKind
    """The rarest thing that is asked of a job, so that each case is counted once."""
    needs: tuple[str, ...] = ()
    """What is edited at a restart, ``query``, then ``spark.sql.streaming.join.stateFormatVersion=1``, ``RocksDB``."""
    restart: bool = False
    """Whether only a restart shows it."""

    @classmethod
    def of(cls, case: Case, last: int | None = None, *, restart: bool | None = None) -> Self:
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
        restarted = bool(restarts) if restart is None else restart
        needs: dict[ConditionKind, list[str]] = {
            "edits": [edit for action in actions for edit in _edits(action)],
            "setting": [f"{key}={value}" for key, value in needed if _ROCKSDB not in value],
            "state store": [_ROCKSDB for _, value in needed if _ROCKSDB in value],
        }
        kind = next((kind for kind, own in needs.items() if own), "restart" if restarted else "default settings")
        every = (need for own in needs.values() for need in own)
        return cls(kind=kind, needs=tuple(dict.fromkeys(every)), restart=restarted)

    def __str__(self) -> str:
        """Return ``only with a setting: spark.sql.streaming.join.stateFormatVersion=1``."""
        named = ", ".join(self.needs) if self.kind != "state store" else ""
        return f"{KINDS[self.kind]}{': ' if named else ''}{named}"


_ROCKSDB = "RocksDB"
UNKNOWN = Condition(kind="unknown")
"""The condition of what a case shows that is not at hand."""


def _edits(action: Action) -> Iterator[str]:
    """Yield what is edited while the query stands still: ``damage``, ``query`` …"""
    if isinstance(action, Alter):
        yield "columns"
    if isinstance(action, Restart):
        others = {"how", "at", "add", "batch", "change", "conf"}
        yield from (key.replace("_", " ") for key, value in (*action, *action.change) if value and key not in others)


def counts(conditions: Iterable[Condition]) -> Mapping[ConditionKind, int]:
    """Count by kind, default settings first, also if there are none: which is not known where a condition is not."""
    by_kind = Counter(condition.kind for condition in conditions)
    none = "" if by_kind["unknown"] else "default settings"
    return {kind: by_kind[kind] for kind in KINDS if by_kind[kind] or kind == none}


def by_condition(conditions: Iterable[Condition], restart: str = KINDS["restart"]) -> str:
    """Return ``4 with default settings, 5 only with a setting, 1 only with RocksDB``; ``restart``: the words for that kind."""
    words = {**KINDS, "restart": restart}
    return ", ".join(f"{count or 'none'} {words[kind]}" for kind, count in counts(conditions).items())
