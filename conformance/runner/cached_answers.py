"""Which answers need no engine, because one like it has given them before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from conformance.core.case import Case
from conformance.core.observation import Identity, Observation
from harness.engine.engine import EngineLocation, Runtime
from harness.engine.request import calls_code
from harness.scheduling.answer_cache import AnswerCache, CachedAnswer
from harness.scheduling.cache_key import answer_key, asked, progress_wanted
from harness.targets.target import Target


@dataclass(frozen=True)
class CacheQuery:
    """What is asked of engines: a case, on one of them or, changing before step ``cut``, on two."""

    case: Case
    targets: tuple[Target, ...]
    cut: int | None = None


class CachedAnswers:
    """Looks answers up, and keeps new ones.

    Args:
        known: the answers there are.
        runtime: where engines would come from.
        conf: Spark settings for every case of the run.
    """

    def __init__(self, known: AnswerCache, runtime: Runtime, conf: Mapping[str, str]) -> None:
        self._known = known
        self._runtime = runtime
        self._conf = conf
        self._asked: dict[tuple[str, int | None], str] = {}
        self._fingerprints: dict[str, str | None] = {}
        self._met: dict[str, tuple[Identity, EngineLocation]] = {}

    def among(self, questions: Iterable[CacheQuery]) -> Iterator[tuple[CacheQuery, CachedAnswer]]:
        """Those of the questions that have been answered, with their answers."""
        by_key: dict[str, list[CacheQuery]] = {}
        for question in questions:
            if (key := self._key(question)) is not None:
                by_key.setdefault(key, []).append(question)
        used = []
        for key, answer in self._known.among(list(by_key)):
            used.append(key)
            for question in by_key[key]:
                yield question, answer.of(question.case.id)
        self._known.used(used)

    def met(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        """An engine of the target has introduced itself: the answers that come now are its."""
        # What it was started from may only just have been installed.
        self._fingerprints.pop(target.name, None)
        self._met[target.name] = identity, place

    def keep(self, question: CacheQuery, observation: Observation, seconds: float) -> None:
        """Keep what engines have shown that were met before."""
        key = self._key(question)
        met = tuple(self._met[target.name] for target in question.targets if target.name in self._met)
        if key is not None and len(met) == len(question.targets):
            seen = observation if progress_wanted(question.case) else observation.without_progress()
            self._known.keep(key, CachedAnswer(observation=seen, engines=met, seconds=seconds))

    def _key(self, question: CacheQuery) -> str | None:
        """None where an answer must not be used again: somebody's own code may have changed without a trace."""
        if calls_code(question.case):
            return None
        engines = []
        for target in question.targets:
            if target.name not in self._fingerprints:
                self._fingerprints[target.name] = self._runtime.fingerprint(target)
            if (fingerprint := self._fingerprints[target.name]) is None:
                return None
            engines.append(fingerprint)
        which = question.case.id, question.cut
        if which not in self._asked:
            self._asked[which] = asked(question.case, self._conf, cut=question.cut)
        return answer_key(self._asked[which], engines)
