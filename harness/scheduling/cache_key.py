"""The key under which an answer is cached: a digest of everything the answer depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from conformance.core.case import Case, Expectation
from harness.engine.request import request_for
from harness.engine.segments import segments_of

_FORMAT = 1
"""Raised when answers change for another reason than the driver: for example, how segments are joined into one observation."""

_MEASURES = ("memory.py",)
"""Files of the driver that measure the engine, not the case."""

_STATE_FUNCTIONS = ("state_functions.py", "stateful_processors.py")


def answer_key(question: str, engines: Iterable[str]) -> str:
    """The key of the answer that engines give to a question.

    Args:
        question: ``question_digest``.
        engines: what identifies each engine that takes part, in order, with its settings: ``Runtime.fingerprint``.
    """
    return hashlib.sha256(json.dumps([_FORMAT, question, list(engines)]).encode()).hexdigest()


def question_digest(case: Case, conf: Mapping[str, str] | None = None, *, cut: int | None = None) -> str:
    """SHA-256 over what any engine is asked: every request, and the driver that executes it.

    The case's id, title and expectations do not change it.

    Args:
        conf: Spark settings for every case of the run.
        cut: the step before which the case changes engines.
    """
    segments = segments_of(case) if cut is None else (*segments_of(case, 1, cut - 1), *segments_of(case, cut))
    requests = [
        request_for(case, "", segment=segment, conf=conf).model_dump(mode="json", exclude={"case", "directory", "code"})
        for segment in segments
    ]
    content = [driver_digest(_runs_state_functions(case)), cut, expects_progress(case), requests]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@cache
def driver_digest(state_functions: bool) -> str:
    """SHA-256 over the driver's program: another driver may observe something else.

    Args:
        state_functions: whether to include the named functions over state, which most cases do not run.
    """
    digest = hashlib.sha256()
    for file in sorted((files("harness") / "driver").iterdir(), key=lambda file: file.name):
        left_out = _MEASURES if state_functions else _MEASURES + _STATE_FUNCTIONS
        if file.name.endswith(".py") and file.name not in left_out:
            digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _runs_state_functions(case: Case) -> bool:
    return any(one.name in ("applyInPandasWithState", "transformWithState") for one in case.operations())


def expects_progress(case: Case) -> bool:
    """Whether the case expects something of the raw progress, which is cached only then."""
    expected = [step.expect for step in case.steps]
    for entry in case.differs:
        expected += [entry.expect, *entry.steps.values()]
    return any(one is not None and (one.progress is not None or _drops_by_operator(one)) for one in expected)


def _drops_by_operator(one: Expectation) -> bool:
    """Whether it says how many rows each operator drops, which only the raw progress tells."""
    return isinstance(one.dropped, tuple) or any(isinstance(batch.dropped, tuple) for batch in one.batches or ())
