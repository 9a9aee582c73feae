"""The two ways a query ends without a result: Spark refuses it, or the model cannot predict it."""

from __future__ import annotations

from typing import Literal, TypeAlias

Stage: TypeAlias = Literal["analysis", "start", "run"]
"""Building the frame, starting the query, or running it."""


class Refused(Exception):
    """Spark refuses the query.

    Attributes:
        name: of the refusal in ``refusals.yaml``.
        stage: when Spark refuses it.
        classes: error classes and simple names of the exceptions.
        message: the text, or the known part of it.
    """

    def __init__(self, name: str, stage: Stage, classes: tuple[str, ...], message: str) -> None:
        super().__init__(f"{' < '.join(classes)} at {stage}: {message}")
        self.name = name
        self.stage = stage
        self.classes = classes
        self.message = message


class Unpredictable(Exception):
    """The model cannot predict a construct of the query.

    Attributes:
        construct: its name: ``conf spark.sql.ansi.enabled``, ``function soundex``.
    """

    def __init__(self, construct: str) -> None:
        super().__init__(f"the model does not know {construct}")
        self.construct = construct
