"""Who answers what a case does: the protocol of an oracle, and the reference model as one, right or wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion
from conformance.model.errors import Unpredictable
from conformance.model.rules import Rules
from conformance.oracle.prediction import Prediction, predict


@dataclass(frozen=True)
class OracleAnswer:
    """The answer of an oracle to one case."""

    observation: Observation | None
    why: str = ""
    """Why there is no observation; empty if there is one."""
    not_predicted: bool = False
    """Whether the model does not know the case; an engine without an observation has failed."""


class Oracle(Protocol):
    """The reference model of a version, a wrong model, or an engine.

    Its answer to a case does not depend on previous cases.
    """

    @property
    def name(self) -> str:
        """A unique name for display: ``spark-3.5.9``, ``spark-3.5.9 with rocksdb``, ``model-3.5.9``."""

    @property
    def version(self) -> SparkVersion:
        """The Spark version that it runs or predicts."""

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
    """Answers with the prediction of the model.

    Args:
        version: of Spark.
        rules: the rules of the version by default.
        called: its name; ``model-3.5.9`` by default.
        conf: Spark settings added to every case.
    """

    version: SparkVersion
    rules: Rules | None = None
    called: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)
    at_once: int = 1

    @property
    def name(self) -> str:
        return self.called or f"model-{self.version}"

    def answers(self, cases: Sequence[Case]) -> Sequence[OracleAnswer]:
        return [self._answer(case) for case in cases]

    def _answer(self, case: Case) -> OracleAnswer:
        try:
            return OracleAnswer(cached_prediction(with_conf(case, self.conf), self.version, self.rules).observation)
        except Unpredictable as unknown:
            return OracleAnswer(None, str(unknown), not_predicted=True)

    def close(self) -> None:
        pass


def with_conf(case: Case, conf: Mapping[str, str]) -> Case:
    """The case with Spark settings added; the case's own settings win."""
    return case.model_copy(update={"conf": {**conf, **case.conf}}) if conf else case


def cached_prediction(case: Case, version: SparkVersion, rules: Rules | None = None) -> Prediction:
    """As ``predict``, with recent predictions cached.

    Raises:
        Unpredictable: the model does not know what the case does, or fails on it: ``ModelDefect``.
    """
    if rules is None:
        found = _cached(_CacheKey(case.digest, tuple(sorted(case.conf.items())), version, case))
    else:
        found = _predicted(case, version, rules)
    if isinstance(found, Unpredictable):
        raise found
    return found


@dataclass(frozen=True)
class _CacheKey:
    """A case is identified by its content, not its id."""

    digest: str
    conf: tuple[tuple[str, str], ...]
    version: SparkVersion
    case: Case = field(compare=False, hash=False)


@lru_cache(maxsize=512)
def _cached(key: _CacheKey) -> Prediction | Unpredictable:
    return _predicted(key.case, key.version, None)


def _predicted(case: Case, version: SparkVersion, rules: Rules | None) -> Prediction | Unpredictable:
    try:
        return predict(case, version, rules)
    except Unpredictable as unknown:
        return unknown
