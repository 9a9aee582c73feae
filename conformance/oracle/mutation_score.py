"""Whether cases detect errors: whether one of them tells a wrong model from the right one."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.core.case import Case
from conformance.judging.verdict import not_applicable
from conformance.model.catalogue import WrongModel, rules_of
from conformance.model.errors import Unpredictable
from conformance.model.wrong_models import WRONG_MODELS
from conformance.oracle.cross_check import AGREEING
from conformance.oracle.prediction import predict, verdict_on


def detects(case: Case, wrong: WrongModel) -> bool:
    """Whether the expectations of a case contradict a wrong model."""
    version = wrong.version
    if not_applicable(case, version) is not None:
        return False
    try:
        return verdict_on(case, predict(case, version, wrong.of(rules_of(version)))).status not in AGREEING
    except Unpredictable:
        return False


def detected(cases: Mapping[str, Case]) -> tuple[WrongModel, ...]:
    """The wrong models that their named case detects.

    Other cases may detect more of them, but checking every case against every model takes minutes.

    Args:
        cases: id → case.
    """
    return tuple(
        wrong for wrong in WRONG_MODELS if (case := cases.get(wrong.detected_by)) is not None and detects(case, wrong)
    )
