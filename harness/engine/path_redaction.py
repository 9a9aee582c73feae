"""What an engine said of a step, without where on its machine that was: results are compared, and published."""

from __future__ import annotations

import re
from collections.abc import Mapping

from conformance.core.observation import StepSeen

_ENVIRONMENT = re.compile(r"""[^\s"'(\[{,=]*/lib/(?=python3\.\d+/)""")


def placeless(step: StepSeen, places: Mapping[str, str]) -> StepSeen:
    """The same step; directories in the text of its error and in its plan are named after what they are.

    Args:
        step: as the driver answered.
        places: absolute directories with the names to give them, ``{"/tmp/x/cases/7-a": "<case>"}``; of two of which one lies in the
            other, the inner one first.

    A Python environment is left out of the paths of its modules, which begin with ``python3.11/`` then.
    """

    def named(text: str) -> str:
        for directory, name in places.items():
            text = text.replace(directory, name)
        return _ENVIRONMENT.sub("", text)

    error = step.error and step.error.model_copy(update={"message": named(step.error.message)})
    return step.model_copy(update={"error": error, "plan": step.plan and named(step.plan)})
