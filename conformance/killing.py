"""Whether cases can see: whether one tells a model that is wrong on purpose from the right one."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.agreement import AGREEING
from conformance.case import Case
from conformance.model.catalogue import rules_of
from conformance.model.unpredictable import Unpredictable
from conformance.model.wrong import WRONG_MODELS, WrongModel
from conformance.predict import judged, predict
from conformance.verdict import not_applicable


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
