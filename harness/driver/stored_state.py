"""The state in a checkpoint, counted with Spark's data source for it: a source that is independent of the progress.

Since 4.0: https://spark.apache.org/docs/latest/streaming/structured-streaming-state-data-source.html
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

ASKED = "spark.conformance.readState"
"""The setting of a case that asks for it."""

_JOIN = "symmetricHashJoin"
_SIDES = ("left", "right")
_OF_VARIABLES = "transformWithState"
"""The operators that keep several variables; the data source reads them one by one."""


def stored_state(session: Any, checkpoint: str, batches: List[Dict[str, Any]]) -> Optional[List[Dict[str, Any]]]:
    """The rows that the data source finds in the state of each stateful operator, in the order of their ids.

    None if there is nothing to compare: no micro-batch of these was committed, or Spark has no such data source yet.
    ``batches``: those of the step, as ``BatchSeen``.
    """
    if int(session.version.split(".")[0]) < 4 or not batches or batches[-1]["next_watermark"] is None:
        return None
    batch = batches[-1]["id"]
    entries = session.read.format("state-metadata").option("batchId", batch).load(checkpoint).collect()
    operators = {entry.operatorId: entry.operatorName for entry in entries}
    return [
        {"operator": name, "rows": _rows(session, checkpoint, batch, id, name)}
        for id, name in sorted(operators.items())
    ]


def _rows(session: Any, checkpoint: str, batch: int, operator: int, name: str) -> Optional[int]:
    """How many rows an operator has in its state; None if it keeps variables."""
    if name.startswith(_OF_VARIABLES):
        return None
    reader = session.read.format("statestore").option("batchId", batch).option("operatorId", operator)
    if name != _JOIN:
        return int(reader.load(checkpoint).count())
    return sum(int(reader.option("joinSide", side).load(checkpoint).count()) for side in _SIDES)
