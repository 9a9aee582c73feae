"""Names of sources, and what a restart may change about them. Sources: SPARK-55121, SPARK-55601, SPARK-56968."""

from __future__ import annotations

import re
from typing import TypeAlias

from conformance.model.checkpoint import ModelCheckpoint
from conformance.model.errors import Unpredictable
from conformance.model.plan import Plan, StreamSource, walk
from conformance.model.rules import Rules
from conformance.model.settings import EVOLUTION, OFFSET_LOG, QuerySettings

Sources: TypeAlias = frozenset[tuple[str, str | None]]
"""What a query reads: each stream with the name of its source, None without one."""


def sources(plan: Plan) -> Sources:
    return frozenset((node.stream, node.name) for node in walk(plan) if isinstance(node, StreamSource))


def check_names(plan: Plan, settings: QuerySettings, rules: Rules) -> None:
    """
    Raises:
        Refused: a name that Spark does not take, or none where it wants one.
        Unpredictable: source evolution on a version without names.
    """
    read = sources(plan)
    evolves = _evolves(settings)
    if evolves and "named sources" not in rules.features:
        raise Unpredictable("source evolution where sources have no names")
    for stream, name in sorted(read, key=str):
        if name is None and evolves:
            raise rules.refusal("source without a name", stream)
        if name is not None and not re.fullmatch("[A-Za-z0-9_]+", name):
            raise rules.refusal("name of a source", name)
        if name is not None and not evolves:
            raise rules.refusal("named source without source evolution", name)
    names = [name for _, name in read if name is not None]
    for name in names:
        if names.count(name) > 1:
            raise rules.refusal("two sources of one name", name)


def keeps_names(settings: QuerySettings, rules: Rules) -> bool:
    """Whether a new checkpoint keeps offsets by name."""
    if not _evolves(settings):
        return False
    return settings.conf.get(OFFSET_LOG) == "2" or "offset log by source evolution" in rules.features


def check_restart(plan: Plan, settings: QuerySettings, checkpoint: ModelCheckpoint, rules: Rules) -> None:
    """Compare what the query reads with what the checkpoint has offsets of.

    Raises:
        Refused: they do not fit.
        Unpredictable: the model does not know where a source goes on.
    """
    if checkpoint.sources is None:
        return
    read, evolves = sources(plan), _evolves(settings)
    if checkpoint.by_name:
        if not evolves:
            raise Unpredictable("a checkpoint with names without source evolution")
        before = {stream for batch in checkpoint.planned for stream in batch.data}
        if before & {stream for stream, _ in read - checkpoint.sources}:
            raise Unpredictable("a source that is read from its beginning again")
        return
    name = "source evolution on an existing checkpoint"
    if evolves and not _had_names(checkpoint) and name in rules.refusals:
        raise rules.refusal(name)
    now, then = {stream for stream, _ in read}, {stream for stream, _ in checkpoint.sources}
    if now != then:
        if len(now) == len(then):
            raise Unpredictable("a restart with other sources")
        raise rules.refusal("another number of sources", f"[{len(then)}] sources")


def _evolves(settings: QuerySettings) -> bool:
    return settings.conf.get(EVOLUTION, "false").lower() == "true"


def _had_names(checkpoint: ModelCheckpoint) -> bool:
    return any(name is not None for _, name in checkpoint.sources or ())
