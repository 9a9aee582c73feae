"""Which answers need no engine, because one like it has given them before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from conformance.case import Case
from conformance.observation import Identity, Observation
from harness.answer_key import answer_key, progress_wanted
from harness.engine import Place, Runtime
from harness.known import Answer, KnownAnswers
from harness.request import calls_code
from harness.target import Target


class Reuse:
    """Looks answers up, and keeps new ones.

    Args:
        known: the answers there are.
        runtime: where engines would come from.
        conf: Spark settings for every case of the run.
    """

    def __init__(self, known: KnownAnswers, runtime: Runtime, conf: Mapping[str, str]) -> None:
        self._known = known
        self._runtime = runtime
        self._conf = conf
        self._fingerprints: dict[str, str | None] = {}
        self._met: dict[str, tuple[Identity, Place]] = {}

    def among(self, cases: Sequence[Case], target: Target) -> Iterator[tuple[Case, Answer]]:
        """What is known of these cases on a target."""
        by_key: dict[str, list[Case]] = {}
        for case in cases:
            if (key := self._key(case, target)) is not None:
                by_key.setdefault(key, []).append(case)
        used = []
        for key, answer in self._known.among(list(by_key)):
            used.append(key)
            for case in by_key[key]:
                yield case, answer.of(case.id)
        self._known.used(used)

    def met(self, target: Target, identity: Identity, place: Place) -> None:
        """An engine of the target has introduced itself: the answers that come now are its."""
        # What it was started from may only just have been installed.
        self._fingerprints.pop(target.name, None)
        self._met[target.name] = identity, place

    def keep(self, case: Case, target: Target, observation: Observation, seconds: float) -> None:
        """Keep what an engine has shown that was met before."""
        key = self._key(case, target)
        if key is not None and target.name in self._met:
            seen = observation if progress_wanted(case) else observation.without_progress()
            self._known.keep(key, Answer(observation=seen, engines=(self._met[target.name],), seconds=seconds))

    def _key(self, case: Case, target: Target) -> str | None:
        """None where an answer must not be used again: somebody's own code may have changed without a trace."""
        if calls_code(case):
            return None
        if target.name not in self._fingerprints:
            self._fingerprints[target.name] = self._runtime.fingerprint(target)
        fingerprint = self._fingerprints[target.name]
        return None if fingerprint is None else answer_key(case, [fingerprint], self._conf)
