"""A case without its interruptions, and whether what came out over them is what comes out without: nothing lost, nothing twice.

A micro-batch that runs again after a crash has the id it had before, so a sink that knows which ids it has is given every row once:
https://spark.apache.org/docs/latest/streaming/apis-on-dataframes-and-datasets.html#foreachbatch
"""

import json
from collections import Counter
from collections.abc import Mapping
from typing import TypeAlias

from conformance.core.case import Add, Case, Restart, RestartChange, Step
from conformance.core.observation import Observation

Emitted: TypeAlias = Mapping[int, Counter[str]]
"""Id of a micro-batch → the rows it emitted, as JSON; only those that emitted any."""


def uninterrupted(case: Case) -> Case | None:
    """The same case with rows that arrived in an interruption, and without the interruption.

    None where it has none, where one changes the query or makes a source again, or where both logs lose their entry, which begins the
    query anew: then there is no run without it.
    """
    restarts = [step.action for step in case.steps if isinstance(step.action, Restart)]
    lost = {restart.damage.get("gone") for restart in restarts}
    other = any(restart.change != RestartChange() or restart.recreated for restart in restarts)
    if not restarts or other or lost >= {"commit", "offsets"}:
        return None
    kept = (_without_interruption(step) for step in case.steps)
    steps = tuple(step.model_copy(update={"number": number}) for number, step in enumerate(filter(None, kept), 1))
    return case.model_copy(update={"steps": steps})


def emitted(observation: Observation) -> Emitted:
    """What a sink has that is given some micro-batches again and knows which it has already."""
    by_id = {batch.id: Counter(map(json.dumps, batch.rows)) for step in observation.steps for batch in step.batches}
    return {id: rows for id, rows in by_id.items() if rows}


def same_rows(case: Case, interrupted: Observation, whole: Observation) -> bool:
    """Whether a run over interruptions gave what a run without them gave, row for row and micro-batch for micro-batch.

    A run that ended with an error must have given the beginning of it. A case that says why it bears no restart anywhere else
    (``variants: {not: {restart: …}}``) may give its rows in other micro-batches.
    """
    over, without = emitted(interrupted), emitted(whole)
    if interrupted.steps and interrupted.steps[-1].error is not None:
        reached = max((batch.id for step in interrupted.steps for batch in step.batches), default=-1)
        return over == {id: rows for id, rows in without.items() if id <= reached}
    if "restart" in case.variants:
        return sum(over.values(), Counter()) == sum(without.values(), Counter())
    return over == without


def _without_interruption(step: Step) -> Step | None:
    if not isinstance(step.action, Restart):
        return step
    return step.model_copy(update={"action": Add(streams=step.action.add)}) if step.action.add else None
