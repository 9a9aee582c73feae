"""A hunt: cases are drawn and put to every voice, the answers judged, what is new kept and made small."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from conformance.core.case import Case
from conformance.fuzzing.comparison import Difference, Judge, Rules
from conformance.fuzzing.coverage import reached
from conformance.fuzzing.discrepancy import Discrepancy
from conformance.fuzzing.generation import Drawing
from conformance.fuzzing.oracle import Oracle, OracleAnswer
from conformance.fuzzing.reductions import Written
from conformance.fuzzing.shrinking import shrunk
from conformance.language.plain import case_from
from conformance.language.printing import printed
from conformance.model.errors import Unpredictable
from conformance.strategies.cases import Generated

A_BATCH = 24
"""Cases that are drawn at a time, at least."""
_DULL = 3
"""So often a difference is made small that turns out to be one that was found; after that it is only counted."""
_PATIENCE_S = 0.2
"""Seconds between two looks at whether somebody wants it to end."""
_ROUNDS = 4
"""A batch is so many times what the voice with the most room answers side by side."""


@dataclass
class Tally:
    """What became of the cases so far."""

    cases: int = 0
    finds: list[Discrepancy] = field(default_factory=list)
    again: int = 0
    """Differences like one that was found before."""
    known: Counter[Rules] = field(default_factory=Counter)
    """Differences that the model explains, by the rules it explains them by."""
    not_predicted: Counter[str] = field(default_factory=Counter)
    """Cases of which the model does not know a construct."""
    unanswered: Counter[str] = field(default_factory=Counter)
    """Cases to which a voice said nothing, by voice."""
    unsteady: int = 0
    """Differences that were gone when they were asked for again."""
    rules: set[str] = field(default_factory=set)
    """The rules of the model that cases reached."""
    traits: set[str] = field(default_factory=set)
    kept: int = 0
    """Cases that reached something new, from which others are drawn."""
    last_unanswered: str = ""
    """Why a voice said nothing, last."""


class Listener:
    """Hears how a hunt goes; this one does not care."""

    def went_on(self, tally: Tally) -> None:
        """Some more cases are through."""

    def shrinking(self, written: Mapping[str, Any], tally: Tally) -> None:
        """A case that shows a difference has become smaller."""

    def found(self, find: Discrepancy) -> None:
        """There is a find."""


class Campaign:
    """Looks for cases in which voices differ.

    Args:
        oracles: at least one; they have different names.
        judge: says what answers mean.
        drawing: where cases come from.
        listener: hears how it goes.
        jobs: how many voices work at the same time; all of them where it is None.
        stopped: asked every now and then, also while engines work, whether somebody wants it to end at once.
    """

    def __init__(
        self,
        oracles: Sequence[Oracle],
        judge: Judge,
        drawing: Drawing,
        listener: Listener | None = None,
        *,
        jobs: int | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._oracles = oracles
        self._by_name = {oracle.name: oracle for oracle in oracles}
        self._newest = max(oracle.version for oracle in oracles)
        self._judge = judge
        self._drawing = drawing
        self._listener = listener or Listener()
        self._jobs = min(jobs or len(oracles), len(oracles))
        self._stopped = stopped
        self._began = time.monotonic()
        self._seen: set[str] = set()
        self._drawn: dict[str, Generated] = {}
        self._signatures: set[tuple[object, ...]] = set()
        self._dull: Counter[tuple[str, str, str]] = Counter()
        self._numbers = count(1)
        self.at_once = max(oracle.at_once for oracle in oracles)
        self.tally = Tally()

    def run(self, over: Callable[[], bool]) -> Iterator[Discrepancy]:
        """Hunt until it is over, which is asked between cases. Finds come when they are small.

        Raises:
            KeyboardInterrupt: it was stopped; what was being shrunk then is the last of the finds in the tally.
        """
        while not over():
            batch = self._fresh(max(A_BATCH, _ROUNDS * self.at_once))
            answers = self._asked(batch, self._oracles)
            for place, case in enumerate(batch):
                yield from self._look(case, {name: given[place] for name, given in answers.items()})
                if over():
                    break
            self._listener.went_on(self.tally)

    def _fresh(self, wanted: int) -> list[Case]:
        """Cases that were not asked before. One that reaches something new in the model is remembered."""
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
            if self._reaches(case):
                self._drawing.remember(one)
        self.tally.kept = self._drawing.remembered
        return found

    def _reaches(self, case: Case) -> bool:
        """Whether the case reaches what none has reached."""
        try:
            what = reached(case, self._newest)
        except Unpredictable:
            return False
        self.tally.rules |= what.rules
        new = what.traits - self.tally.traits
        self.tally.traits |= new
        return bool(new)

    def _asked(self, cases: Sequence[Case], oracles: Sequence[Oracle]) -> dict[str, Sequence[OracleAnswer]]:
        """What each voice says of each case; engines work side by side."""
        with ThreadPoolExecutor(self._jobs) as pool:
            asked = {oracle.name: pool.submit(oracle.answers, cases) for oracle in oracles}
            while wait(asked.values(), _PATIENCE_S).not_done:
                if self._stopped():
                    for oracle in oracles:
                        oracle.close()
                    break
            if self._stopped():
                raise KeyboardInterrupt
            return {name: answers.result() for name, answers in asked.items()}

    def _look(self, case: Case, answers: Mapping[str, OracleAnswer]) -> Iterator[Discrepancy]:
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
                self._listener.found(found)
                yield found

    def _new(self, case: Case, difference: Difference, construct: str) -> Discrepancy | None:
        """The difference made small; None where there was one like it, or it does not come again."""
        tally = self.tally
        explained = self._judge.explained(case, difference)
        if _signature(explained, construct, ()) in self._signatures or self._is_dull(explained):
            tally.again += 1
            return None
        chosen = [oracle for oracle in self._oracles if oracle.name in (difference.one.who, difference.other.who)]

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
            tally.finds.append(Discrepancy(written, explained, drawn, tally.cases, seconds, whole=False))
            raise
        if left is None:
            tally.unsteady += 1
            return None
        left = self._judge.explained(small, left)
        signature = _signature(left, construct, tuple(operation for operation in _operations(small)))
        if signature in self._signatures:
            tally.again += 1
            self._dull[difference.one.who, difference.other.who, difference.what] += 1
            return None
        self._signatures |= {signature, _signature(explained, construct, ())}
        return Discrepancy(written, left, drawn, tally.cases, time.monotonic() - self._began)

    def _is_dull(self, difference: Difference) -> bool:
        """Whether one like it was made small several times, and was the same each time."""
        alike = difference.one.who, difference.other.who, difference.what
        return not difference.rules and self._dull[alike] >= _DULL

    def _differences(
        self, cases: Sequence[Case], oracles: Sequence[Oracle], like: Difference
    ) -> list[Difference | None]:
        """Of each case the difference that it shows, if it is like this one: of the same voices, and by the same rule if by any."""
        answers = self._asked(cases, oracles)
        found: list[Difference | None] = []
        for place, case in enumerate(cases):
            mine = {name: given[place] for name, given in answers.items()}
            finds = self._judge.judge(case, mine, self._by_name).finds
            same = next((one for one in finds if (one.one.who, one.other.who) == (like.one.who, like.other.who)), None)
            if same is not None and like.rules and not {*self._judge.explained(case, same).rules} & {*like.rules}:
                same = None
            found.append(same)
        return found


def _signature(difference: Difference, construct: str, operations: tuple[str, ...]) -> tuple[object, ...]:
    """What makes two differences the same: the rules; where there are none, what differs in a query of which operations."""
    names = tuple(name for name, _ in difference.rules)
    return names or (difference.one.who, difference.other.who, difference.what, construct, operations)


def _operations(case: Case) -> Iterator[str]:
    return (operation.name for operation in case.query.walk())
