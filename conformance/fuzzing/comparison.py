"""Oracles, who answer what a case does, and their answers compared: agreement, a difference that a rule explains, or a discrepancy."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any, Protocol, TypeAlias

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion
from conformance.fuzzing.shrinking import arrivals
from conformance.judging.comparison import divergence
from conformance.model.catalogue import other_readings, rules_of
from conformance.model.errors import Refused, Unpredictable
from conformance.model.rules import Rules, refusals
from conformance.oracle.prediction import Prediction, predict
from conformance.oracle.version_divergence import version_divergence


@dataclass(frozen=True)
class OracleAnswer:
    observation: Observation | None
    why: str = ""
    """Why there is no observation; empty if there is one."""
    not_predicted: bool = False
    """Whether the model does not know the case. An engine without an observation has failed."""


class Oracle(Protocol):
    """The reference model of a version, a wrong model, or an engine; no answer depends on previous cases."""

    @property
    def name(self) -> str:
        """A unique name for display: ``spark-3.5.9``, ``spark-3.5.9 with rocksdb``, ``model-3.5.9``."""

    @property
    def version(self) -> SparkVersion:
        pass

    @property
    def conf(self) -> Mapping[str, str]:
        """Spark settings added to every case, unless the case sets them itself."""

    @property
    def at_once(self) -> int:
        """How many cases it answers in parallel; smaller batches waste time."""

    def answers(self, cases: Sequence[Case]) -> Sequence[OracleAnswer]:
        """An answer for each case; the cases have different ids."""

    def close(self) -> None:
        """Release its resources. May be called from any thread, and more than once."""


@dataclass(frozen=True)
class ModelOracle:
    """Answers with the prediction of the model, by the rules of the version or by others."""

    version: SparkVersion
    rules: Rules | None = None
    called: str = ""
    """Its name; ``model-3.5.9`` by default."""
    conf: Mapping[str, str] = field(default_factory=dict)
    at_once: int = 1

    @property
    def name(self) -> str:
        return self.called or f"model-{self.version}"

    def answers(self, cases: Sequence[Case]) -> Sequence[OracleAnswer]:
        return [self._answer(with_conf(case, self.conf)) for case in cases]

    def _answer(self, case: Case) -> OracleAnswer:
        try:
            ruled = self.rules is not None
            prediction = predict(case, self.version, self.rules) if ruled else cached_prediction(case, self.version)
            return OracleAnswer(prediction.observation)
        except Unpredictable as unknown:
            return OracleAnswer(None, str(unknown), not_predicted=True)

    def close(self) -> None:
        pass


def with_conf(case: Case, conf: Mapping[str, str]) -> Case:
    """The case with Spark settings added, except those that it sets itself."""
    return case.model_copy(update={"conf": {**conf, **case.conf}}) if conf else case


def cached_prediction(case: Case, version: SparkVersion) -> Prediction:
    """As ``predict``, with recent predictions cached; Unpredictable also if the model fails on the case: ``ModelDefect``."""
    prediction = _cached(_CacheKey(case.digest, tuple(sorted(case.conf.items())), version, case))
    if isinstance(prediction, Unpredictable):
        raise prediction
    return prediction


@dataclass(frozen=True)
class _CacheKey:
    """A case is identified by its content, not its id."""

    digest: str
    conf: tuple[tuple[str, str], ...]
    version: SparkVersion
    case: Case = field(compare=False, hash=False)


@lru_cache(maxsize=512)
def _cached(key: _CacheKey) -> Prediction | Unpredictable:
    try:
        return predict(key.case, key.version)
    except Unpredictable as unknown:
        return unknown


RuleNames: TypeAlias = tuple[tuple[str, str], ...]
"""Names of rules, each with its ticket or source."""


@dataclass(frozen=True)
class NamedAnswer:
    oracle: str
    version: SparkVersion
    observation: Observation
    conf: Mapping[str, str] = field(default_factory=dict)

    def on(self, case: Case) -> Case:
        return with_conf(case, self.conf)


@dataclass(frozen=True)
class AnswerDifference:
    one: NamedAnswer
    other: NamedAnswer
    """The answer of another oracle, or what the model predicts for the version of the first."""
    what: str
    """``rows``, ``watermark`` …: see ``conformance.judging.comparison``."""
    rules: RuleNames = ()
    """Rules each of which explains the difference; empty if there is none, or before the model was asked."""


@dataclass(frozen=True)
class AnswerJudgement:
    differences: tuple[AnswerDifference, ...] = ()
    known: tuple[RuleNames, ...] = ()
    """The rules of differences that the model predicts."""
    not_predicted: str = ""
    """The construct that the model does not know; empty if it predicts the case."""


@dataclass(frozen=True)
class ByTheModel:
    """An answer is right if it is what the model predicts for its version; the model explains why two right answers differ.

    If the model does not predict a case, different answers are a discrepancy.
    """

    alone: bool = True
    """Whether a single answer that differs from the prediction is a discrepancy, or only if another answer differs too."""

    def judge(self, case: Case, answers: Mapping[str, OracleAnswer], oracles: Mapping[str, Oracle]) -> AnswerJudgement:
        """Compare answers; they and the oracles are by the name of the oracle."""
        named = named_answers(answers, oracles)
        try:
            predicted = {answer.oracle: cached_prediction(answer.on(case), answer.version) for answer in named}
        except Unpredictable as unknown:
            return AnswerJudgement(first_difference(named), not_predicted=unknown.construct)
        wrong = {answer.oracle: each for answer in named if (each := _from_the_model(answer, predicted[answer.oracle]))}
        if self.alone and wrong:
            first: dict[str, AnswerDifference] = {}
            for each in wrong.values():
                first.setdefault(each.what, each)  # the same difference of another oracle is no second discrepancy
            return AnswerJudgement(tuple(first.values()))
        known: dict[RuleNames, None] = {}
        for difference in _differences(_neighbours(named)):
            older, newer = difference.one.oracle, difference.other.oracle
            if older in wrong or newer in wrong:
                return AnswerJudgement((difference,))
            known[rules_between(case, predicted[older], predicted[newer])] = None
        return AnswerJudgement(known=tuple(known))

    def explained(self, case: Case, difference: AnswerDifference) -> AnswerDifference:
        """Add the rules that, with another value, predict the answer that differs. Slow: predicts the case once per rule."""
        rules: dict[tuple[str, str], None] = {}
        for answer in (difference.one, difference.other):
            rules |= dict.fromkeys(rules_predicting(answer.on(case), answer.version, answer.observation))
        return replace(difference, rules=tuple(rules))


def rules_between(case: Case, here: Prediction, there: Prediction) -> RuleNames:
    """The rules each of which explains a difference between two versions or settings; empty if several must change together."""
    try:
        diverged = version_divergence(case, here, there)
    except Exception:  # a changed rule may not make sense together with the others
        diverged = None
    if diverged is None:
        return ()
    if here.version == there.version:  # with other settings
        failed = {side.name for side in (diverged.here, diverged.there) if isinstance(side, Refused)}
        return tuple((refusal.name, refusal.source) for refusal in refusals() if refusal.name in failed)
    return tuple((rule.name, rule.source) for rule in diverged.rules)


def rules_predicting(case: Case, version: SparkVersion, seen: Observation) -> RuleNames:
    """The rules and refusals each of which, altered, makes the model predict an observation; none if it predicts it anyway."""
    rules = rules_of(version)
    try:
        prediction = cached_prediction(case, version)
    except Unpredictable:
        prediction = None
    if prediction is not None and divergence(prediction.observation, seen, error_classes=False) is None:
        return ()
    predicting = [
        (rule.name, rule.source)
        for rule, altered in other_readings(version)
        if (prediction is None or prediction.read.tell_apart(rules, altered))
        and _predicts(case, version, altered, seen)
    ]
    refused = prediction.steps[-1].error if prediction is not None and prediction.steps else None
    if refused is not None:
        without = {name: wording for name, wording in rules.refusals.items() if name != refused.name}
        if _predicts(case, version, rules.altered(refusals=without), seen):
            predicting += [(refusal.name, refusal.source) for refusal in refusals() if refusal.name == refused.name]
    return tuple(dict.fromkeys(predicting))


def _predicts(case: Case, version: SparkVersion, rules: Rules, seen: Observation) -> bool:
    try:
        return divergence(predict(case, version, rules).observation, seen, error_classes=False) is None
    except Unpredictable:
        return False


def named_answers(answers: Mapping[str, OracleAnswer], oracles: Mapping[str, Oracle]) -> list[NamedAnswer]:
    return [
        NamedAnswer(name, oracles[name].version, answer.observation, oracles[name].conf)
        for name, answer in answers.items()
        if answer.observation is not None
    ]


def _from_the_model(answer: NamedAnswer, prediction: Prediction) -> AnswerDifference | None:
    model = NamedAnswer(f"model-{answer.version}", answer.version, prediction.observation, answer.conf)
    return next(_differences([(answer, model)]), None)


def _neighbours(answers: Sequence[NamedAnswer]) -> Iterable[tuple[NamedAnswer, NamedAnswer]]:
    """Each answer and that of the next newer version: if none of these differ, no two answers do."""
    return pairwise(sorted(answers, key=lambda answer: answer.version))


def _differences(pairs: Iterable[tuple[NamedAnswer, NamedAnswer]]) -> Iterator[AnswerDifference]:
    for answer, other in pairs:
        difference = divergence(answer.observation, other.observation, error_classes=False)
        if difference is not None:
            yield AnswerDifference(answer, other, difference.what)


def first_difference(answers: Sequence[NamedAnswer]) -> tuple[AnswerDifference, ...]:
    return tuple(islice(_differences(_neighbours(answers)), 1))


@dataclass(frozen=True)
class Discrepancy:
    written: Mapping[str, Any]
    """The shrunk case in the shape of its YAML, without expectations."""
    difference: AnswerDifference
    fully_shrunk: bool = True

    @property
    def name(self) -> str:
        names = [name for name, _ in self.difference.rules[:1]] or [self.difference.what]
        text = " ".join([*names, self.difference.one.oracle, self.difference.other.oracle])
        return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")

    @property
    def steps(self) -> int:
        return len(self.written["steps"])

    @property
    def rows(self) -> int:
        return sum(len(rows) for _, _, rows in arrivals(self.written))
