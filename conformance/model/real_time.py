"""Real-time mode, of which the model knows what is refused. Sources: SPARK-53736, SPARK-54660, SPARK-58635, RealTimeModeAllowlist."""

from __future__ import annotations

from conformance.model.errors import Unpredictable
from conformance.model.plan import Aggregate, Deduplicate, Join, Plan, StateFunction, stateful
from conformance.model.rules import Rules
from conformance.model.settings import QuerySettings

_TRIGGER = "realTime"
_MODE = "update"


def check_trigger(settings: QuerySettings, rules: Rules) -> None:
    """Before the query is built.

    Raises:
        Refused: PySpark has no real-time trigger yet.
    """
    if settings.trigger == _TRIGGER and settings.trigger not in rules.features:
        raise rules.refusal("unknown trigger", settings.trigger)


def check_files(settings: QuerySettings, rules: Rules) -> None:
    """For a query that reads files, which cannot wait for rows.

    Raises:
        Refused: Spark refuses the source, unless it refuses the output mode before.
    """
    if settings.trigger == _TRIGGER and settings.mode == _MODE:
        raise rules.refusal("real-time source", "FileStreamSource")


def check_real_time(plan: Plan, settings: QuerySettings, rules: Rules) -> None:
    """For a query whose sources can wait for rows.

    Raises:
        Refused: Spark refuses the query.
        Unpredictable: it does not; the model does not know in which order the rows of a long micro-batch are emitted.
    """
    if settings.trigger != _TRIGGER:
        return
    if settings.mode != _MODE:
        raise rules.refusal("real-time output mode", settings.mode.capitalize())
    for operator in stateful(plan):
        name = _physical_name(operator)
        if name is not None and not (_runs_since_4_3(operator) and "state in real time" in rules.features):
            raise rules.refusal("real-time operator", name)
    raise Unpredictable("a query in real-time mode")


def _runs_since_4_3(operator: Plan) -> bool:
    match operator:
        case Aggregate():
            return True
        case Deduplicate():
            return not operator.within_watermark
        case _:
            return False


def _physical_name(operator: Plan) -> str | None:
    """The part that releases share of the name that Spark refuses; None for an operator of which the model does not know it."""
    match operator:
        case Aggregate(session=None):
            return "HashAggregateExec"
        case Deduplicate():
            return (
                "StreamingDeduplicateWithinWatermarkExec" if operator.within_watermark else "StreamingDeduplicateExec"
            )
        case Join():
            return "StreamingSymmetricHashJoinExec"
        case StateFunction():
            return "FlatMapGroupsInPandasWithStateExec"
        case _:
            return None
