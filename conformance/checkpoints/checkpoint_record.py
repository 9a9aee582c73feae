"""A checkpoint as JSON, for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from conformance.checkpoints.awaiting import AwaitingChange
from conformance.checkpoints.checkpoint import Checkpoint
from conformance.checkpoints.state import StateOperator
from conformance.checkpoints.state_schema import Field
from conformance.checkpoints.writer import lines_of_writer


def record(checkpoint: Checkpoint, changes: Iterable[AwaitingChange], to: str | None) -> dict[str, Any]:
    """Everything known of a checkpoint, and what awaits it on the version ``to``, if one is given. Times are in ms since 1970."""
    return {
        "checkpoint": checkpoint.where,
        "queryId": checkpoint.query_id,
        "lines": list(lines_of_writer(checkpoint)),
        "planned": checkpoint.planned and {"batch": checkpoint.planned.batch, "ms": checkpoint.planned.planned_ms},
        "committed": checkpoint.committed and {"batch": checkpoint.committed.batch},
        "unfinished": checkpoint.unfinished,
        "watermarkMs": checkpoint.watermark_ms or None,
        "sources": [{"name": one.name, "kind": one.kind, "offset": one.offset} for one in checkpoint.sources],
        "settings": dict(checkpoint.settings),
        "operators": [_operator(one) for one in checkpoint.operators],
        "bytes": checkpoint.size,
        **({"to": to, "awaiting": [_change(one) for one in changes]} if to is not None else {}),
    }


def _operator(operator: StateOperator) -> dict[str, Any]:
    return {
        "number": operator.number,
        "name": operator.name,
        "metadataFormat": operator.format,
        "stores": [
            {
                "name": store.name,
                "provider": store.provider,
                "partitions": store.partitions,
                "versions": list(store.versions) if store.versions else None,
                "bytes": store.size,
                "schemas": [
                    {
                        "family": schema.family,
                        "format": schema.format,
                        "key": [_field(field) for field in schema.key],
                        "value": [_field(field) for field in schema.value],
                    }
                    for schema in store.schemas
                ],
            }
            for store in operator.stores
        ],
    }


def _field(field: Field) -> dict[str, Any]:
    return {"name": field.name, "type": field.type, "nullable": field.nullable}


def _change(change: AwaitingChange) -> dict[str, Any]:
    return {
        "effect": change.effect,
        "error": change.error,
        "because": change.because,
        "link": change.link,
        "wayRound": change.workaround,
        "case": change.case,
    }
