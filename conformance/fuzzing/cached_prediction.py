"""What the reference model says of a generated case: it may meet what nobody has tried on it, and the hunt goes on all the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from conformance.core.case import Case
from conformance.core.versions import SparkVersion
from conformance.model.errors import Unpredictable
from conformance.model.rules import Rules
from conformance.oracle.prediction import Prediction, predict

FAILS = "a case on which it fails"
"""What the construct is called that the model does not know where it is the model that is at fault."""


@dataclass(frozen=True)
class _Question:
    """A case is known by what it says."""

    digest: str
    conf: tuple[tuple[str, str], ...]
    version: SparkVersion
    case: Case = field(compare=False, hash=False)


def with_conf(case: Case, conf: Mapping[str, str]) -> Case:
    """The case as it is with somebody who has Spark settings for all cases."""
    return case.model_copy(update={"conf": {**conf, **case.conf}}) if conf else case


def model_says(case: Case, version: SparkVersion, rules: Rules | None = None) -> Prediction:
    """As ``predict``; what it said last of a case it does not work out again.

    Raises:
        Unpredictable: the model does not know what the case does, or fails over it: a defect of the model, named ``FAILS``.
    """
    question = _Question(case.digest, tuple(sorted(case.conf.items())), version, case)
    found = _remembered(question) if rules is None else _said(case, version, rules)
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
