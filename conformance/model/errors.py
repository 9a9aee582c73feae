"""The ways a query ends without a result: Spark refuses it, the model cannot predict it, or the model has a defect."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from conformance.core.data import read_data

Stage: TypeAlias = Literal["analysis", "start", "run"]
"""Building the frame, starting the query, or running it."""

DEFECT = "a case on which it fails"
"""Begins the construct of every ``ModelDefect``."""


class Refused(Exception):
    """Spark refuses the query.

    ``name`` is that of the refusal in ``refusals.yaml``, ``classes`` are error classes and simple names of exceptions, and ``message`` is
    the text or the known part of it.
    """

    def __init__(self, name: str, stage: Stage, classes: tuple[str, ...], message: str) -> None:
        super().__init__(f"{' < '.join(classes)} at {stage}: {message}")
        self.name = name
        self.stage = stage
        self.classes = classes
        self.message = message


class Unpredictable(Exception):
    """The model cannot predict a construct of the query, such as ``conf spark.sql.ansi.enabled`` or ``function soundex``."""

    def __init__(self, construct: str) -> None:
        super().__init__(f"the model does not know {construct}")
        self.construct = construct


class ModelDefect(Unpredictable):
    """The model failed on a case. It has no opinion then; the defect must not end a run or a report."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(f"{DEFECT}: {type(cause).__name__}: {cause}"[:300])


_BESIDE: Mapping[str, Sequence[str]] = read_data("conformance.model", "error_names.yaml")


def may_be(stage: str, classes: Sequence[str], named: str) -> bool:
    """Whether an error of these classes may show a name: one beside them, a condition if they have none, or none of Spark's for good."""
    known = {*classes, stage}
    while more := {other for name in known for other in _BESIDE.get(name, ())} - known:
        known |= more
    unnamed = named.isupper() and not any(map(str.isupper, classes))
    return unnamed or named.startswith("_LEGACY_ERROR_TEMP_") or not known.isdisjoint({named, named.partition(".")[0]})
