"""Finds the cells that the cache answers, and stores new answers in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from conformance.core.observation import Identity
from harness.engine.engine import EngineLocation, Runtime
from harness.scheduling.answer_cache import AnswerCache, CachedAnswer
from harness.scheduling.cache_key import answer_key, expects_progress, question_digest
from harness.scheduling.cell_run import CellRun, CellTask
from harness.targets.target import Target


class CachedAnswers:
    """The cache as one run sees it; ``conf``: Spark settings for every case of the run."""

    def __init__(self, cache: AnswerCache, runtime: Runtime, conf: Mapping[str, str]) -> None:
        self._cache = cache
        self._runtime = runtime
        self._conf = conf
        self._questions: dict[tuple[str, int | None], str] = {}
        self._fingerprints: dict[str, str | None] = {}
        self._engines: dict[str, tuple[Identity, EngineLocation]] = {}

    def lookup(self, tasks: Iterable[CellTask]) -> Iterator[tuple[CellTask, CachedAnswer]]:
        """The cells that the cache answers, with their answers."""
        by_key: dict[str, list[CellTask]] = {}
        for task in tasks:
            if (key := self._key(task)) is not None:
                by_key.setdefault(key, []).append(task)
        used = []
        for key, answer in self._cache.lookup(list(by_key)):
            used.append(key)
            for task in by_key[key]:
                yield task, answer.for_case(task.case.id)
        self._cache.touch(used)

    def engine_ready(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        """An engine of the target has introduced itself; the answers that follow are from it."""
        # The engine's environment may have been installed just now.
        self._fingerprints.pop(target.name, None)
        self._engines[target.name] = identity, place

    def store(self, run: CellRun) -> None:
        """Store an answer, if there is one and the engines that gave it have introduced themselves."""
        task, key = run.task, self._key(run.task)
        engines = tuple(self._engines[target.name] for target in task.targets if target.name in self._engines)
        if run.failure is None and key is not None and len(engines) == len(task.targets):
            seen = run.observations[0]
            seen = seen if expects_progress(task.case) else seen.without_progress()
            self._cache.store(key, CachedAnswer(observation=seen, engines=engines, seconds=run.seconds))

    def _key(self, task: CellTask) -> str | None:
        """None if the answer must not be reused: an author's own code, a file or a broker may have changed without a trace."""
        if task.case.needs_code or task.case.topics:
            return None
        engines = []
        for target in task.targets:
            if target.name not in self._fingerprints:
                self._fingerprints[target.name] = self._runtime.fingerprint(target)
            if (fingerprint := self._fingerprints[target.name]) is None:
                return None
            engines.append(fingerprint)
        question = task.case.id, task.cut
        if question not in self._questions:
            self._questions[question] = question_digest(task.case, self._conf, cut=task.cut)
        return answer_key(self._questions[question], engines)
