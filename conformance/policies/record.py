"""Replays and policies as JSON. A watermark that is not there yet is null."""

from __future__ import annotations

from typing import Any

from conformance.policies.case import PolicyCase, PolicyMismatch
from conformance.policies.catalogue import POLICIES, delay_of
from conformance.policies.probes import far_future_row, silent_input
from conformance.policies.question import as_expectation
from conformance.policies.replay import Replay, ReplayStep


def record(replayed: Replay) -> dict[str, Any]:
    """A replay with all its steps, times in the unit of the trace."""
    rules, delay = replayed.rules, delay_of(replayed.rules)
    return {
        "policy": rules.name,
        "engine": rules.engine,
        "parameters": {
            name: value if isinstance(value, int | str) else float(value) for name, value in rules.parameters.items()
        },
        "assumptions": list(replayed.trace.assumptions),
        "moments": [_step(step, replayed) for step in replayed.steps],
        "failure": replayed.failure,
        "late": [step.number for step in replayed.late],
        "windows": {str(end): step.number for end, step in replayed.completions.items()},
        "open": list(replayed.open),
        "inGeneral": {
            "anInputFallsSilent": silent_input(rules, delay, spoke=True),
            "anInputNeverSpeaks": silent_input(rules, delay, spoke=False),
            "oneFarFutureRow": far_future_row(rules, delay),
        },
    }


def record_of(case: PolicyCase, mismatch: PolicyMismatch) -> dict[str, Any]:
    """An expectation that a replay does not meet."""
    return {
        "case": case.id,
        "path": str(case.path),
        "line": mismatch.line,
        "step": mismatch.step,
        "key": mismatch.key,
        "expected": mismatch.expected,
        "read": mismatch.actual,
    }


def record_of_policies() -> list[dict[str, Any]]:
    """Every policy, with its parameters and source."""
    return [
        {
            "policy": name,
            "engine": policy.engine,
            "meaning": policy.meaning,
            "source": policy.source,
            "parameters": {one: parameter.meaning for one, parameter in policy.parameters.items()},
        }
        for name, policy in POLICIES.items()
    ]


def _step(step: ReplayStep, replayed: Replay) -> dict[str, Any]:
    return {
        "number": step.number,
        "entry": replayed.trace.format_entry(step.entry),
        "clock": step.now,
        **{key: list(value) if isinstance(value, tuple) else value for key, value in as_expectation(step).items()},
    }
