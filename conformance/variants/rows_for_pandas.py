"""``transformWithState`` over rows instead of ``transformWithStateInPandas``: one operator, whose processor sees other types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from conformance.core.case import Case, Restart, Step
from conformance.core.query import Operation, Pipeline
from conformance.variants.since import versions_of
from conformance.variants.variant import VariantOutput

_OPERATION = "transformWithState"


@dataclass(frozen=True)
class RowsForPandas:
    """The same case with processors over rows (SPARK-51814), if it has any over pandas."""

    name: str = "rows-for-pandas"

    def of(self, case: Case) -> Iterator[VariantOutput]:
        if all(_over_rows(operation) is operation for operation in case.operations()):
            return
        versions = versions_of(self.name)
        changed = {
            "query": _pipeline(case.query),
            "steps": tuple(_step(step) for step in case.steps),
            "spark": versions if case.spark is None else case.spark & versions,
        }
        yield VariantOutput(self.name, case.model_copy(update=changed))


def _step(step: Step) -> Step:
    action = step.action
    if not isinstance(action, Restart) or action.change.query is None:
        return step
    change = action.change.model_copy(update={"query": _pipeline(action.change.query)})
    return step.model_copy(update={"action": action.model_copy(update={"change": change})})


def _pipeline(pipeline: Pipeline) -> Pipeline:
    return Pipeline(tuple(_over_rows(operation) for operation in pipeline.operations))


def _over_rows(operation: Operation) -> Operation:
    """The operation with processors over rows, itself if it has none over pandas."""
    nested = tuple(_pipeline(one) for one in operation.nested)
    if operation.name == _OPERATION and operation.arguments[_OPERATION].get("inPandas", True):
        of = {**operation.arguments[_OPERATION], "inPandas": False}
        return replace(operation, arguments={**operation.arguments, _OPERATION: of}, nested=nested)
    if nested == operation.nested:
        return operation
    return replace(operation, arguments={**operation.arguments, **_written(operation, nested)}, nested=nested)


def _written(operation: Operation, nested: tuple[Pipeline, ...]) -> dict[str, object]:
    """The arguments that hold nested pipelines."""
    if operation.name == "sql":
        return {"views": {name: one.wire() for name, one in zip(operation.arguments["views"], nested, strict=True)}}
    return {operation.name: nested[0].wire()} if operation.name != "call" else {}
