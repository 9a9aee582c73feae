"""A judge for whom no oracle is right: what a campaign finds does not depend on the model's predictions."""

from collections.abc import Mapping
from dataclasses import replace

from conformance.core.case import Case
from conformance.fuzzing.comparison import (
    AnswerDifference,
    AnswerJudgement,
    Oracle,
    OracleAnswer,
    cached_prediction,
    first_difference,
    named_answers,
    rules_between,
)
from conformance.model.errors import Unpredictable


class ByEachOther:
    """Any two different answers are a find; the model is only asked for the rules that explain it."""

    def judge(self, case: Case, answers: Mapping[str, OracleAnswer], oracles: Mapping[str, Oracle]) -> AnswerJudgement:
        return AnswerJudgement(first_difference(named_answers(answers, oracles)))

    def explained(self, case: Case, difference: AnswerDifference) -> AnswerDifference:
        try:
            here, there = (cached_prediction(one.on(case), one.version) for one in (difference.one, difference.other))
        except Unpredictable:
            return difference
        return replace(difference, rules=rules_between(case, here, there))
