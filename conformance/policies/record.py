"""Readings as JSON, for programs: watermarks that are not there yet are null."""

from __future__ import annotations

from typing import Any

from conformance.policies import notation
from conformance.policies.case import PolicyCase
from conformance.policies.catalogue import POLICIES, delay_of
from conformance.policies.checking import Disagreement, seen
from conformance.policies.probes import far_future_row, silent_input
from conformance.policies.reading import Moment, Reading


def record(reading: Reading) -> dict[str, Any]:
    """A reading with all its moments, times in the unit of the trace."""
    rules, delay = reading.rules, delay_of(reading.rules)
    return {
        "policy": rules.name,
        "engine": rules.engine,
        "parameters": {name: _plain(value) for name, value in rules.parameters.items()},
        "assumptions": list(reading.trace.assumptions),
        "moments": [_moment(moment, reading) for moment in reading.moments],
        "late": [moment.number for moment in reading.late],
        "windows": {str(end): moment.number for end, moment in reading.closings.items()},
        "open": list(reading.open),
        "inGeneral": {
            "anInputFallsSilent": silent_input(rules, delay, spoke=True),
            "anInputNeverSpeaks": silent_input(rules, delay, spoke=False),
            "oneFarFutureRow": far_future_row(rules, delay),
        },
    }


def record_of(case: PolicyCase, disagreement: Disagreement) -> dict[str, Any]:
    """What a case expects otherwise than its reading has it."""
    return {
        "case": case.id,
        "path": str(case.path),
        "line": disagreement.line,
        "step": disagreement.step,
        "key": disagreement.key,
        "expected": disagreement.expected,
        "read": disagreement.read,
    }


def record_of_policies() -> list[dict[str, Any]]:
    """The policies there are, with what each takes and where its rule stands."""
    return [
        {
            "policy": name,
            "engine": known.engine,
            "meaning": known.meaning,
            "source": known.source,
            "parameters": {one: parameter.meaning for one, parameter in known.parameters.items()},
        }
        for name, known in POLICIES.items()
    ]


def _moment(moment: Moment, reading: Reading) -> dict[str, Any]:
    return {
        "number": moment.number,
        "entry": notation.entry(moment.entry, reading.trace),
        "clock": moment.now,
        **{key: list(value) if isinstance(value, tuple) else value for key, value in seen(moment).items()},
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | str) else float(value)
