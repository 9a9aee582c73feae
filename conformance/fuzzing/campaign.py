"""A campaign: generates cases, asks every oracle, judges the answers, and shrinks each new find."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from conformance.core.case import Case
from conformance.fuzzing.comparison import AnswerDifference, AnswerJudge, Discrepancy, RuleNames
from conformance.fuzzing.coverage import coverage_of
from conformance.fuzzing.generation import Drawing
from conformance.fuzzing.oracle import Oracle, OracleAnswer
from conformance.fuzzing.reductions import Written
from conformance.fuzzing.shrinking import shrunk
from conformance.language import case_from
from conformance.language.printing import printed
from conformance.model.errors import Unpredictable
from conformance.strategies.cases import Generated

MIN_BATCH = 24
"""Cases generated at a time, at least."""
_MAX_REPEATS = 3
"""How often a difference is shrunk only to repeat an earlier find; after that it is only counted."""
_POLL_S = 0.2
"""Seconds between two checks whether the campaign was stopped."""
_ROUNDS = 4
"""A batch is this many times the largest parallelism of an oracle."""


@dataclass
class Tally:
    """The results so far."""

    cases: int = 0
    finds: list[Discrepancy] = field(default_factory=list)
    again: int = 0
    """Differences like an earlier find."""
    known: Counter[RuleNames] = field(default_factory=Counter)
    """Differences that the model predicts, by the rules that explain them."""
    not_predicted: Counter[str] = field(default_factory=Counter)
    """Cases that the model does not predict, by construct."""
    unanswered: Counter[str] = field(default_factory=Counter)
    """Cases without an answer, by oracle."""
    unsteady: int = 0
    """Differences that did not occur again when the case was repeated."""
    rules: set[str] = field(default_factory=set)
    """The rules of the model that cases have covered."""
    traits: set[str] = field(default_factory=set)
    kept: int = 0
    """Cases that covered something new, and are mutated."""
    last_unanswered: str = ""
    """The last reason for a missing answer."""


class CampaignListener:
    """Is notified of the progress of a campaign; this one ignores it."""

    def went_on(self, tally: Tally) -> None:
        """A batch of cases is done."""

    def shrinking(self, written: Mapping[str, Any], tally: Tally) -> None:
        """A find was made smaller."""


class Campaign:
    """Searches for cases on which oracles differ.

    Args:
        oracles: at least one, with different names.
        jobs: how many oracles work in parallel; all by default.
        stopped: polled, also while engines work; True stops the campaign at once.
    """

    def __init__(
        self,
        oracles: Sequence[Oracle],
        judge: AnswerJudge,
        drawing: Drawing,
        listener: CampaignListener | None = None,
        *,
        jobs: int | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._oracles = oracles
        self._by_name = {oracle.name: oracle for oracle in oracles}
        self._newest = max(oracle.version for oracle in oracles)
        self._judge = judge
        self._drawing = drawing
        self._listener = listener or CampaignListener()
        self._jobs = min(jobs or len(oracles), len(oracles))
        self._stopped = stopped
        self._began = time.monotonic()
        self._seen: set[str] = set()
        self._drawn: dict[str, Generated] = {}
        self._signatures: set[tuple[object, ...]] = set()
        self._repeats: Counter[tuple[str, str, str]] = Counter()
        self._numbers = count(1)
        self.at_once = max(oracle.at_once for oracle in oracles)
        self.tally = Tally()

    def run(self, over: Callable[[], bool]) -> Iterator[Discrepancy]:
        """Search until ``over`` returns True, which is checked between cases. Yields each find once it is shrunk.

        Raises:
            KeyboardInterrupt: the campaign was stopped; a find being shrunk is then the last one of the tally.
        """
        while not over():
            batch = self._new_cases(max(MIN_BATCH, _ROUNDS * self.at_once))
            answers = self._asked(batch, self._oracles)
            for place, case in enumerate(batch):
                yield from self._judged(case, {name: given[place] for name, given in answers.items()})
                if over():
                    break
            self._listener.went_on(self.tally)

    def _new_cases(self, wanted: int) -> list[Case]:
        """Cases that have not been run. The generator remembers those that cover something new in the model."""
        self._drawn = {}
        found = []
        for one in self._drawing.some(wanted):
            text = printed(one.written)
            if text in self._seen:
                continue
            self._seen.add(text)
            case = case_from(one.written, f"drawn-{next(self._numbers)}")
            self._drawn[case.id] = one
            found.append(case)
            if self._covers_something_new(case):
                self._drawing.remember(one)
        self.tally.kept = self._drawing.remembered
        return found

    def _covers_something_new(self, case: Case) -> bool:
        try:
            coverage = coverage_of(case, self._newest)
        except Unpredictable:
            return False
        self.tally.rules |= coverage.rules
        new = coverage.traits - self.tally.traits
        self.tally.traits |= new
        return bool(new)

    def _asked(self, cases: Sequence[Case], oracles: Sequence[Oracle]) -> dict[str, Sequence[OracleAnswer]]:
        """The answers of each oracle to all cases; oracles work in parallel."""
        with ThreadPoolExecutor(self._jobs) as pool:
            asked = {oracle.name: pool.submit(oracle.answers, cases) for oracle in oracles}
            while wait(asked.values(), _POLL_S).not_done:
                if self._stopped():
                    for oracle in oracles:
                        oracle.close()
                    break
            if self._stopped():
                raise KeyboardInterrupt
            return {name: answers.result() for name, answers in asked.items()}

    def _judged(self, case: Case, answers: Mapping[str, OracleAnswer]) -> Iterator[Discrepancy]:
        tally = self.tally
        tally.cases += 1
        judgement = self._judge.judge(case, answers, self._by_name)
        if judgement.not_predicted:
            tally.not_predicted[judgement.not_predicted] += 1
        for name, answer in answers.items():
            if answer.observation is None and not judgement.not_predicted:
                tally.unanswered[name] += 1
                tally.last_unanswered = answer.why
        for rules in judgement.known:
            if rules not in tally.known:
                self._drawing.remember(self._drawn[case.id])
            tally.known[rules] += 1
        for difference in judgement.finds:
            found = self._new(case, difference, judgement.not_predicted)
            if found is not None:
                tally.finds.append(found)
                yield found

    def _new(self, case: Case, difference: AnswerDifference, construct: str) -> Discrepancy | None:
        """The difference, shrunk; None if it repeats an earlier find or does not occur again."""
        tally = self.tally
        explained = self._judge.explained(case, difference)
        if _signature(explained, construct, ()) in self._signatures or self._is_repetitive(explained):
            tally.again += 1
            return None
        chosen = [oracle for oracle in self._oracles if oracle.name in (difference.one.oracle, difference.other.oracle)]

        def still(cases: Sequence[Case]) -> list[bool]:
            return [found is not None for found in self._differences(cases, chosen, explained)]

        if not still([case])[0]:
            tally.unsteady += 1
            return None
        written = drawn = self._drawn[case.id].written

        def smaller(found: Written) -> None:
            nonlocal written
            written = found
            self._listener.shrinking(found, tally)

        try:
            shrunk(written, still, at_once=self.at_once, smaller=smaller)
            small = case_from(written, f"{case.id}-small")
            left = self._differences([small], chosen, explained)[0]
        except KeyboardInterrupt:
            seconds = time.monotonic() - self._began
            tally.finds.append(Discrepancy(written, explained, drawn, tally.cases, seconds, fully_shrunk=False))
            raise
        if left is None:
            tally.unsteady += 1
            return None
        left = self._judge.explained(small, left)
        signature = _signature(left, construct, tuple(operation for operation in _operations(small)))
        if signature in self._signatures:
            tally.again += 1
            self._repeats[difference.one.oracle, difference.other.oracle, difference.what] += 1
            return None
        self._signatures |= {signature, _signature(explained, construct, ())}
        return Discrepancy(written, left, drawn, tally.cases, time.monotonic() - self._began)

    def _is_repetitive(self, difference: AnswerDifference) -> bool:
        """Whether similar differences were shrunk several times and always repeated an earlier find."""
        repeated = difference.one.oracle, difference.other.oracle, difference.what
        return not difference.rules and self._repeats[repeated] >= _MAX_REPEATS

    def _differences(
        self, cases: Sequence[Case], oracles: Sequence[Oracle], like: AnswerDifference
    ) -> list[AnswerDifference | None]:
        """For each case the difference between the same oracles, by one of the same rules if there are any."""
        answers = self._asked(cases, oracles)
        found: list[AnswerDifference | None] = []
        for place, case in enumerate(cases):
            mine = {name: given[place] for name, given in answers.items()}
            finds = self._judge.judge(case, mine, self._by_name).finds
            same = next(
                (one for one in finds if (one.one.oracle, one.other.oracle) == (like.one.oracle, like.other.oracle)),
                None,
            )
            if same is not None and like.rules and not {*self._judge.explained(case, same).rules} & {*like.rules}:
                same = None
            found.append(same)
        return found


def _signature(difference: AnswerDifference, construct: str, operations: tuple[str, ...]) -> tuple[object, ...]:
    """Identifies a difference: by its rules or, without rules, by what differs and the operations of the query."""
    names = tuple(name for name, _ in difference.rules)
    return names or (difference.one.oracle, difference.other.oracle, difference.what, construct, operations)


def _operations(case: Case) -> Iterator[str]:
    return (operation.name for operation in case.query.walk())
