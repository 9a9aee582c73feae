"""Whether cases can see: whether one tells a model that is wrong on purpose from the right one."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.core.case import Case
from conformance.judging.verdict import not_applicable
from conformance.model.catalogue import rules_of
from conformance.model.unpredictable import Unpredictable
from conformance.model.wrong_models import WRONG_MODELS, WrongModel
from conformance.oracle.cross_check import AGREEING
from conformance.oracle.prediction import judged, predict


def kills(case: Case, wrong: WrongModel) -> bool:
    """Whether a case tells a wrong model from the right one."""
    version = wrong.version
    if not_applicable(case, version) is not None:
        return False
    try:
        return judged(case, predict(case, version, wrong.of(rules_of(version)))).status not in AGREEING
    except Unpredictable:
        return False


def killed(cases: Mapping[str, Case]) -> tuple[WrongModel, ...]:
    """The wrong models whose named killer is among the cases, and kills.

    Others may be killed by other cases: to ask every case about every model takes minutes.

    Args:
        cases: id → case.
    """
    return tuple(
        wrong for wrong in WRONG_MODELS if (case := cases.get(wrong.killed_by)) is not None and kills(case, wrong)
    )
