"""Builds the frame of the reference model from the operations of a case."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.core.case import Case, Operation, Pipeline, sort_order
from conformance.model import sql
from conformance.model.columns import Ids
from conformance.model.errors import Unpredictable
from conformance.model.frame import Frame
from conformance.model.rules import Rules


def frame_of(pipeline: Pipeline, case: Case, rules: Rules) -> Frame:
    """The frame of a pipeline.

    Args:
        pipeline: of the case, or of a restart that changes it.
        case: defines the streams.
        rules: of the version.

    Raises:
        Refused: Spark refuses it at analysis.
        Unpredictable: the model does not know an operation.
    """
    return _FrameBuilder(case, rules).pipeline(pipeline)


class _FrameBuilder:
    """Applies the operations of the case language to a frame."""

    def __init__(self, case: Case, rules: Rules) -> None:
        self._case = case
        self._rules = rules
        self._ids = Ids()
        self._views: dict[str, Frame] = {}

    def pipeline(self, pipeline: Pipeline) -> Frame:
        first, *rest = pipeline.operations
        if first.name != "from":
            raise Unpredictable(f"the operation {first.name}")
        stream = first.arguments["from"]
        frame = Frame.read(stream, self._case.streams[stream], self._rules, self._ids, first.arguments.get("name"))
        for operation in rest:
            step = OPERATIONS.get(operation.name)
            if step is None:
                raise Unpredictable(f"the operation {operation.name}")
            frame = step(self, frame, operation)
        return frame

    def sql(self, frame: Frame, operation: Operation) -> Frame:
        names = (*operation.arguments.get("views", ()), operation.arguments["as"])
        frames = (*(self.pipeline(nested) for nested in operation.nested), frame)
        self._views |= {name.lower(): view for name, view in zip(names, frames, strict=True)}
        return sql.run(operation.arguments["sql"], self._views)

    def transform_with_state(self, frame: Frame, operation: Operation) -> Frame:
        of = operation.arguments[operation.name]
        initial = sql.run(of["initialState"], {"": frame}) if "initialState" in of else None
        return frame.transform_with_state(
            of["by"],
            of["with"],
            of.get("outputMode", "append"),
            of.get("timeMode", "None"),
            of.get("eventTimeColumn"),
            initial,
            in_pandas=of.get("inPandas", True),
        )

    def nested(self, operation: Operation) -> Frame:
        (other,) = operation.nested
        return self.pipeline(other)


OPERATIONS: Mapping[str, Callable[[_FrameBuilder, Frame, Operation], Frame]] = {
    "withWatermark": lambda _, frame, of: frame.with_watermark(*of.arguments["withWatermark"]),
    "where": lambda _, frame, of: frame.where(of.arguments["where"]),
    "select": lambda _, frame, of: frame.select(*of.arguments["select"]),
    "withColumn": lambda _, frame, of: frame.with_column(*of.arguments["withColumn"]),
    "drop": lambda _, frame, of: frame.drop(*of.arguments["drop"]),
    "alias": lambda _, frame, of: frame.alias(of.arguments["alias"]),
    "groupBy": lambda _, frame, of: frame.group_by(of.arguments["groupBy"], of.arguments["agg"]),
    "join": lambda build, frame, of: frame.join(build.nested(of), of.arguments["on"], of.arguments.get("how", "inner")),
    "union": lambda build, frame, of: frame.union(build.nested(of)),
    "orderBy": lambda _, frame, of: frame.order_by(*map(sort_order, of.arguments["orderBy"])),
    "limit": lambda _, frame, of: frame.limit(of.arguments["limit"]),
    "distinct": lambda _, frame, of: frame.distinct() if of.arguments["distinct"] else frame,
    "dropDuplicates": lambda _, frame, of: frame.drop_duplicates(*of.arguments["dropDuplicates"]),
    "dropDuplicatesWithinWatermark": lambda _, frame, of: frame.drop_duplicates(
        *of.arguments["dropDuplicatesWithinWatermark"], within_watermark=True
    ),
    "sql": _FrameBuilder.sql,
    "applyInPandasWithState": lambda _, frame, of: frame.apply_in_pandas_with_state(
        of.arguments[of.name]["by"],
        of.arguments[of.name]["with"],
        of.arguments[of.name].get("outputMode", "append"),
        of.arguments[of.name].get("timeout", "NoTimeout"),
    ),
    "transformWithState": _FrameBuilder.transform_with_state,
}
"""Operation of the case language → the method of the frame."""
