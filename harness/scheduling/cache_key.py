"""What an answer depends on, as one digest: whoever asks the same of the same engine by the same driver gets the same answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from conformance.core.case import Case
from harness.engine.request import request_for
from harness.engine.segments import Segment, segments_of

_FORMAT = 1
"""Raised when what an answer is made of changes otherwise than by the driver: how a run is put together from its legs, for one."""

_MEASURES = ("memory.py",)
"""Of the driver: what looks at the engine and not at the case."""

_STATE_FUNCTIONS = ("state_functions.py", "stateful_processors.py")


def answer_key(asked: str, engines: Iterable[str]) -> str:
    """The key of what engines make of a question.

    Args:
        asked: the digest of the question: ``asked``.
        engines: what identifies each engine that takes part, in order, with its settings: ``Runtime.fingerprint``.
    """
    return hashlib.sha256(json.dumps([_FORMAT, asked, list(engines)]).encode()).hexdigest()


def asked(case: Case, conf: Mapping[str, str] | None = None, *, cut: int | None = None) -> str:
    """SHA-256 over what is asked of an engine, whichever it is.

    Everything counts that it is told to do, and the driver that does it; another name, title or expectation leaves it as it is.

    Args:
        case: the case.
        conf: Spark settings for every case of the run.
        cut: the step before which the case changes engines.
    """
    told = [
        request_for(case, "", segment=segment, conf=conf).model_dump(
            mode="json", exclude={"case", "directory", "code_path"}
        )
        for segment in _way(case, cut)
    ]
    content = [driver_digest(_runs_state_functions(case)), cut, progress_wanted(case), told]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@cache
def driver_digest(state_functions: bool) -> str:
    """SHA-256 over the driver's program: another driver may see something else.

    Args:
        state_functions: whether the named functions over state are part of it, which most cases do not run.
    """
    digest = hashlib.sha256()
    for file in sorted((files("harness") / "driver").iterdir(), key=lambda file: file.name):
        left_out = _MEASURES if state_functions else _MEASURES + _STATE_FUNCTIONS
        if file.name.endswith(".py") and file.name not in left_out:
            digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _runs_state_functions(case: Case) -> bool:
    return any(one.name in ("applyInPandasWithState", "transformWithState") for one in case.operations())


def _way(case: Case, cut: int | None) -> tuple[Segment, ...]:
    return segments_of(case) if cut is None else (*segments_of(case, 1, cut - 1), *segments_of(case, cut))


def progress_wanted(case: Case) -> bool:
    """Whether the raw progress is part of what is expected: only then it is kept."""
    expected = [step.expect for step in case.steps]
    for entry in case.differs:
        expected += [entry.expect, *entry.steps.values()]
    return any(one is not None and one.progress is not None for one in expected)
