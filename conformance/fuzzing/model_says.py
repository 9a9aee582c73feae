"""What the reference model says of a generated case: it may meet what nobody has tried on it, and the hunt goes on all the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from conformance.case import Case
from conformance.model.rules import Rules
from conformance.model.unpredictable import Unpredictable
from conformance.predict import Prediction, predict
from conformance.versions import SparkVersion

FAILS = "a case on which it fails"
"""What the construct is called that the model does not know where it is the model that is at fault."""


@dataclass(frozen=True)
class _Question:
    """A case is known by what it says."""

    digest: str
    version: SparkVersion
    case: Case = field(compare=False, hash=False)


def model_says(case: Case, version: SparkVersion, rules: Rules | None = None) -> Prediction:
    """As ``predict``; what it said last of a case it does not work out again.

    Raises:
        Unpredictable: the model does not know what the case does, or fails over it: a defect of the model, named ``FAILS``.
    """
    found = _said(case, version, rules) if rules is not None else _remembered(_Question(case.digest, version, case))
    if isinstance(found, Unpredictable):
        raise found
    return found


@lru_cache(maxsize=512)
def _remembered(question: _Question) -> Prediction | Unpredictable:
    return _said(question.case, question.version, None)


def _said(case: Case, version: SparkVersion, rules: Rules | None) -> Prediction | Unpredictable:
    try:
        return predict(case, version, rules)
    except Unpredictable as unknown:
        return unknown
    except Exception as defect:
        return Unpredictable(f"{FAILS}: {type(defect).__name__}: {defect}")
