"""What another version of Spark does with a checkpoint: refusals and changes, as far as its files tell.

The rules are data, ``changes.yaml``; each names a case of the suite that shows it, or the place in Spark's source.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

from conformance.checkpoints.checkpoint import CLASSES, Checkpoint
from conformance.checkpoints.files import MissingFile
from conformance.checkpoints.state import JOIN, StateSchema, state_differences
from conformance.core.data import read_data
from conformance.core.observation import ErrorSeen
from conformance.core.versions import SparkVersion, VersionRange

Effect: TypeAlias = Literal["refused", "may be refused", "changes"]
WORST_FIRST: tuple[Effect, ...] = ("refused", "may be refused", "changes")


@dataclass(frozen=True)
class AwaitingChange:
    """A refusal or change, what in a checkpoint it applies to, and how to go on."""

    when: Mapping[str, Any]
    """Name of a condition → its argument; all must hold."""
    to: VersionRange
    effect: Effect
    because: str
    link: str
    error: str | None = None
    """The class of the error with which the version refuses the checkpoint."""
    evidence: Mapping[str, str] | None = None
    """What an error of this class must show: ``operator`` and ``kind`` of each `StateDifference`, or a ``text``. None: it shows nothing."""
    workaround: str | None = None
    """A setting or step that lets the query resume."""
    case: str | None = None
    """The id of a case that shows the change."""
    source: str | None = None
    """The place in Spark's source that shows it, if no case does."""

    @property
    def reason(self) -> str:
        return f"{self.because} ({self.link})"

    def explains(self, error: ErrorSeen, to: SparkVersion) -> bool:
        """Whether an error with which this version refused a checkpoint shows that this is its reason; its class alone does not."""
        if self.error is None or self.error != error.name or self.evidence is None or to not in self.to:
            return False
        if "text" in self.evidence:
            return self.evidence["text"] in error.message
        differences = state_differences(error.message)
        wanted = self.evidence["operator"], self.evidence["kind"]
        return {(difference.operator, difference.kind) for difference in differences} == {wanted}

    def applies(self, checkpoint: Checkpoint, to: SparkVersion) -> bool:
        return to in self.to and all(_CONDITIONS[name](checkpoint, argument) for name, argument in self.when.items())


def awaiting(checkpoint: Checkpoint, to: SparkVersion) -> tuple[AwaitingChange, ...]:
    """What a version does with the checkpoint, worst first."""
    applying = (change for change in changes() if change.applies(checkpoint, to))
    return tuple(sorted(applying, key=lambda change: WORST_FIRST.index(change.effect)))


def reasons(error: ErrorSeen, among: Iterable[AwaitingChange], to: SparkVersion) -> tuple[str, ...]:
    """Why this version refused a checkpoint, a sentence each, as far as the error shows it: the columns of the state that do not fit,
    and the documented reason, if there is one and no other. Empty if the error shows neither."""
    documented = [change.reason for change in among if change.explains(error, to)]
    return (*map(str, state_differences(error.message)), *(documented if len(documented) == 1 else ()))


@cache
def changes() -> tuple[AwaitingChange, ...]:
    entries = read_data("conformance.checkpoints", "changes.yaml")
    return tuple(AwaitingChange(**{**entry, "to": VersionRange.parse(entry["to"])}) for entry in entries)


Condition: TypeAlias = Callable[[Checkpoint, Any], bool]


def _join_key_not_null(checkpoint: Checkpoint, wanted: bool) -> bool:
    """Whether a stored column that may be a key of a join is NOT NULL.

    The schema does not say which of the stored columns are keys, so any of the type of a key may be. Times are left out: a time with a
    watermark is NOT NULL on every version.
    """
    has_such_a_column = any(
        not field.nullable
        and field.type in {key.type for key in schema.key if key.name != _INDEX}
        and field.type not in _TIMES
        for operator in checkpoint.operators
        if operator.name == JOIN
        for store in operator.stores
        if store.name.endswith("ToValue")
        for schema in store.schemas
        for field in schema.value
    )
    return has_such_a_column is wanted


_INDEX = "index"
"""Spark's own column of the key: which of several rows with one key."""
_TIMES = frozenset({"timestamp", "timestamp_ntz"})


def _schemas(checkpoint: Checkpoint) -> list[StateSchema]:
    return [schema for operator in checkpoint.operators for schema in operator.schemas]


def _missing_kind(missing: MissingFile) -> str:
    if missing.path.parts[0] != "state":
        return "log"
    if missing.path.name == "state":
        return "folder"
    return "delta" if missing.path.suffix == ".delta" and not missing.damage else "other"


_CONDITIONS: Mapping[str, Condition] = {
    "join_key_not_null": _join_key_not_null,
    "state_type": lambda checkpoint, name: any(
        field.type == name for schema in _schemas(checkpoint) for field in schema.fields
    ),
    "join_format": lambda checkpoint, format: (
        any(operator.name == JOIN for operator in checkpoint.operators)
        and checkpoint.settings.get("spark.sql.streaming.join.stateFormatVersion", "1") == str(format)
    ),
    "strict_distribution": lambda checkpoint, wanted: (
        bool(checkpoint.operators)
        and (checkpoint.settings.get("spark.sql.streaming.statefulOperator.useStrictDistribution") == "true") is wanted
    ),
    "offset_gap": lambda checkpoint, wanted: checkpoint.has_gap is wanted,
    "entry_unfit": lambda checkpoint, wanted: checkpoint.unfit is wanted,
    "metadata_missing": lambda checkpoint, wanted: (checkpoint.query_id is None) is wanted,
    "operators_unnamed": lambda checkpoint, wanted: (
        (None in [operator.format for operator in checkpoint.operators]) is wanted
    ),
    "foreign_class": lambda checkpoint, wanted: (
        any(checkpoint.settings.get(key) not in (None, *names) for key, names in CLASSES.items()) is wanted
    ),
    "state_missing": lambda checkpoint, what: any(_missing_kind(missing) == what for missing in checkpoint.missing),
    "schema_missing": lambda checkpoint, wanted: (
        (() in [store.schemas for operator in checkpoint.operators for store in operator.stores]) is wanted
    ),
    "sources": lambda checkpoint, least: checkpoint.watermark_ms > 0 and len(checkpoint.sources) >= least,
    "offset_format": lambda checkpoint, least: checkpoint.planned is not None and checkpoint.planned.format >= least,
    "commit_format": lambda checkpoint, least: (
        checkpoint.committed is not None and checkpoint.committed.format >= least
    ),
    "schema_format": lambda checkpoint, least: any(schema.format >= least for schema in _schemas(checkpoint)),
}
