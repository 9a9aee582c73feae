"""Removes directories of the machine from an observation: results are compared and published."""

from __future__ import annotations

import re
from collections.abc import Mapping

from conformance.core.observation import StepSeen

_DELIMITERS = re.compile(r"""([\s"'(\[{,=])""")
_LIBRARIES = re.compile(r"/lib/(?=python3\.\d+/)")


def redact_paths(step: StepSeen, names: Mapping[str, str]) -> StepSeen:
    """Replace directories in a step's error and plan.

    The path of a Python environment is removed from those of its modules, which then begin with ``python3.11/``.

    Args:
        step: as the driver sent it.
        names: absolute directory → its replacement, ``{"/tmp/x/cases/7-a": "<case>"}``; a nested directory before its parent.
    """

    def redacted(text: str) -> str:
        for directory, name in names.items():
            text = text.replace(directory, name)
        # One pattern for the whole path would take quadratic time on hostile text.
        return "".join(_LIBRARIES.split(word)[-1] for word in _DELIMITERS.split(text))

    error = step.error and step.error.model_copy(update={"message": redacted(step.error.message)})
    return step.model_copy(update={"error": error, "plan": step.plan and redacted(step.plan)})
