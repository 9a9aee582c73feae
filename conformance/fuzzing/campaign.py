"""A campaign: generates cases, asks every oracle, judges the answers, and shrinks each new discrepancy.

A discrepancy is written as a case: it expects the answer of one oracle, has the other's under ``differs``, and says how to reproduce it.
"""

import random
import re
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count, starmap
from pathlib import Path
from typing import Any

from conformance.core.case import Case
from conformance.core.child_process import limited_memory
from conformance.core.data import Json
from conformance.core.errors import on_stop
from conformance.core.observation import StepSeen
from conformance.core.output_file import FileKind, any_content, write_file
from conformance.core.versions import StateStore, StoreName, releases
from conformance.fuzzing import comparison
from conformance.fuzzing.comparison import AnswerDifference, Discrepancy, Oracle, OracleAnswer, RuleNames
from conformance.fuzzing.coverage import Drawing, coverage_of
from conformance.fuzzing.shrinking import WrittenCase, shrunk
from conformance.judging.step_comparison import OutputSchema
from conformance.language import case_from
from conformance.language.printing import inline, printed
from conformance.language.source import InvalidCase
from conformance.model.errors import Unpredictable
from conformance.runner.execution import Silent
from conformance.runner.resources import EngineUse, OptionsClash, choose_targets, open_runtime
from conformance.strategies.cases import Generated
from conformance.suite.record_expectations import observed_expectation
from harness.engine.engine import Runtime
from harness.errors import HarnessError
from harness.scheduling.cell_run import EngineListener, EngineSlot, Limits, run_cell
from harness.targets.targets import Target

MIN_BATCH = 24
"""Cases generated at a time, at least."""
_MAX_REPEATS = 3
"""How often a difference is shrunk only to repeat an earlier discrepancy; after that it is only counted."""
_POLL_S = 0.2
_MEMORY = 4 << 30
"""The campaign may take this many bytes; a prediction needs less than a hundredth."""
_ROUNDS = 4
"""A batch is this many times the largest parallelism of an oracle."""


@dataclass
class Tally:
    cases: int = 0
    discrepancies: list[Discrepancy] = field(default_factory=list)
    again: int = 0
    """Differences like an earlier discrepancy."""
    known: Counter[RuleNames] = field(default_factory=Counter)
    """Differences that the model predicts, by the rules that explain them."""
    not_predicted: Counter[str] = field(default_factory=Counter)
    """Cases that the model does not predict, by construct."""
    unanswered: Counter[str] = field(default_factory=Counter)
    """Cases without an answer, by oracle."""
    unsteady: int = 0
    """Differences that did not occur again when the case was repeated."""
    rules: set[str] = field(default_factory=set)
    traits: set[str] = field(default_factory=set)
    last_unanswered: str = ""


class CampaignListener(Silent):
    """The progress of a campaign; this one ignores it."""

    def started(self, seed: int, oracles: Sequence[str], by_the_model: bool) -> None:
        """The oracles are about to get the first cases."""

    def written(self, file: Path) -> None:
        """A discrepancy is in this file."""

    def went_on(self, tally: Tally) -> None:
        """A batch of cases is done."""

    def shrinking(self, written: Mapping[str, Any], tally: Tally) -> None:
        """A discrepancy was made smaller."""


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
        judge: comparison.ByTheModel,
        drawing: Drawing,
        listener: CampaignListener | None = None,
        *,
        jobs: int | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._oracles, self._judge, self._drawing = oracles, judge, drawing
        self._by_name = {oracle.name: oracle for oracle in oracles}
        self._newest = max(oracle.version for oracle in oracles)
        self._listener = listener or CampaignListener()
        self._jobs = min(jobs or len(oracles), len(oracles))
        self._stopped = stopped
        self._seen: set[str] = set()
        self._drawn: dict[str, Generated] = {}
        self._signatures: set[tuple[object, ...]] = set()
        self._repeats: Counter[tuple[str, str, str]] = Counter()
        self._numbers = count(1)
        self.at_once = max(oracle.at_once for oracle in oracles)
        self.tally = Tally()

    def run(self, over: Callable[[], bool]) -> Iterator[Discrepancy]:
        """Search until ``over``, which is checked every few cases, and yield each discrepancy once it is shrunk.

        Of a campaign that a KeyboardInterrupt stops, the last discrepancy of the tally may not be shrunk.
        """
        while not over():
            batch = self._new_cases(max(MIN_BATCH, _ROUNDS * self.at_once))
            answers = self._asked(batch, self._oracles, over)
            for place, case in enumerate(batch[: min(map(len, answers.values()))]):
                yield from self._judged(case, {name: given[place] for name, given in answers.items()})
                if over():
                    break
            self._listener.went_on(self.tally)

    def _new_cases(self, wanted: int) -> list[Case]:
        """Cases that have not been run. The generator remembers those that cover something new in the model."""
        self._drawn = {}
        cases = []
        for drawn in self._drawing.some(wanted):
            text = printed(drawn.written)
            if text in self._seen:
                continue
            self._seen.add(text)
            case = case_from(drawn.written, f"drawn-{next(self._numbers)}")
            self._drawn[case.id] = drawn
            cases.append(case)
            if self._covers_something_new(case):
                self._drawing.remember(drawn)
        return cases

    def _covers_something_new(self, case: Case) -> bool:
        try:
            coverage = coverage_of(case, self._newest)
        except Unpredictable:
            return False
        self.tally.rules |= coverage.rules
        new = coverage.traits - self.tally.traits
        self.tally.traits |= new
        return bool(new)

    def _asked(
        self, cases: Sequence[Case], oracles: Sequence[Oracle], over: Callable[[], bool] = lambda: False
    ) -> dict[str, Sequence[OracleAnswer]]:
        """The answers of each oracle, to all cases or, once the campaign is ``over``, to fewer; oracles work in parallel."""

        def answers(oracle: Oracle) -> Sequence[OracleAnswer]:
            given: list[OracleAnswer] = []
            some = _ROUNDS // 2 * oracle.at_once
            for first in range(0, len(cases), some):
                if over() and (given or self.tally.cases):
                    break
                given += oracle.answers(cases[first : first + some])
            return given

        with ThreadPoolExecutor(self._jobs) as pool:
            asked = {oracle.name: pool.submit(answers, oracle) for oracle in oracles}
            while wait(asked.values(), _POLL_S).not_done:
                if self._stopped():
                    for oracle in oracles:
                        oracle.close()
                    break
            if self._stopped():
                raise KeyboardInterrupt
            return {name: given.result() for name, given in asked.items()}

    def _judged(self, case: Case, answers: Mapping[str, OracleAnswer]) -> Iterator[Discrepancy]:
        tally = self.tally
        tally.cases += 1
        judgement = self._judge.judge(case, answers, self._by_name)
        if judgement.not_predicted:
            tally.not_predicted[judgement.not_predicted] += 1
        for name, answer in answers.items():
            if answer.observation is None and not answer.not_predicted:
                tally.unanswered[name] += 1
                tally.last_unanswered = answer.why
            elif answer.not_predicted and not judgement.not_predicted:
                tally.not_predicted[answer.why] += 1
        for rules in judgement.known:
            if rules not in tally.known:
                self._drawing.remember(self._drawn[case.id])
            tally.known[rules] += 1
        for difference in judgement.differences:
            if (discrepancy := self._new(case, difference, judgement.not_predicted)) is not None:
                tally.discrepancies.append(discrepancy)
                yield discrepancy

    def _new(self, case: Case, difference: AnswerDifference, construct: str) -> Discrepancy | None:
        """The difference, shrunk; None if it repeats an earlier discrepancy or does not occur again."""
        tally = self.tally
        explained = self._judge.explained(case, difference)
        pair = difference.one.oracle, difference.other.oracle
        repeated = (*pair, difference.what)
        is_repetitive = not explained.rules and self._repeats[repeated] >= _MAX_REPEATS
        if is_repetitive or _signature(explained, construct, ()) in self._signatures:
            tally.again += 1
            return None
        chosen = [oracle for oracle in self._oracles if oracle.name in pair]

        def still(cases: Sequence[Case]) -> list[bool]:
            return [same is not None for same in self._differences(cases, chosen, explained)]

        if not still([case])[0]:
            tally.unsteady += 1
            return None
        written = self._drawn[case.id].written

        def smaller(shrinking: WrittenCase) -> None:
            nonlocal written
            written = shrinking
            self._listener.shrinking(shrinking, tally)

        try:
            shrunk(written, still, at_once=self.at_once, smaller=smaller)
            small = case_from(written, f"{case.id}-small")
            left = self._differences([small], chosen, explained)[0]
        except KeyboardInterrupt:
            tally.discrepancies.append(Discrepancy(written, explained, fully_shrunk=False))
            raise
        if left is None:
            tally.unsteady += 1
            return None
        left = self._judge.explained(small, left)
        signature = _signature(left, construct, tuple(operation.name for operation in small.query.walk()))
        if signature in self._signatures:
            tally.again += 1
            self._repeats[repeated] += 1
            return None
        self._signatures |= {signature, _signature(explained, construct, ())}
        return Discrepancy(written, left)

    def _differences(
        self, cases: Sequence[Case], oracles: Sequence[Oracle], like: AnswerDifference
    ) -> list[AnswerDifference | None]:
        """For each case the difference between the same oracles, by one of the same rules if there are any."""
        answers = self._asked(cases, oracles)
        pair = like.one.oracle, like.other.oracle
        differences: list[AnswerDifference | None] = []
        for place, case in enumerate(cases):
            mine = {name: given[place] for name, given in answers.items()}
            seen = self._judge.judge(case, mine, self._by_name).differences
            same = next((each for each in seen if (each.one.oracle, each.other.oracle) == pair), None)
            if same is not None and like.rules and not {*self._judge.explained(case, same).rules} & {*like.rules}:
                same = None
            differences.append(same)
        return differences


def _signature(difference: AnswerDifference, construct: str, operations: tuple[str, ...]) -> tuple[object, ...]:
    """Identify a difference: by its rules or, without rules, by what differs and the operations of the query."""
    names = tuple(name for name, _ in difference.rules)
    return names or (difference.one.oracle, difference.other.oracle, difference.what, construct, operations)


OUTPUT = Path("found")
BIGGEST_SEED = 100_000


@dataclass(frozen=True)
class FuzzOptions(EngineUse):
    seconds: float
    spark: Sequence[str] = ()
    model: bool = False
    """Whether a difference from the reference model is a discrepancy by itself."""
    state_stores: Sequence[StoreName] = ()
    """Each Spark that has them answers once with each; with the case's own if empty."""
    families: Sequence[str] = ()
    seed: int | None = None
    most_cases: int | None = None
    output: Path = OUTPUT


@dataclass(frozen=True)
class FuzzPlan:
    options: FuzzOptions
    seed: int
    targets: tuple[Target, ...]
    """Empty if only the model answers."""
    notes: tuple[str, ...]

    @property
    def command(self) -> str:
        options = self.options
        words = ["conformance", "maintain", "fuzz"]
        words += [word for version in options.spark for word in ("--spark", version)]
        words += ["--model"] * options.model
        words += [word for store in options.state_stores for word in ("--state-store", store)]
        words += [word for family in options.families for word in ("--family", family)]
        words += ["--seed", str(self.seed)]
        return shlex.join(words + (["--output", str(options.output)] if options.output != OUTPUT else []))


@dataclass(frozen=True)
class FuzzOutcome:
    tally: Tally
    seconds: float
    interrupted: bool
    asked: int
    """Answers that were asked for: each case, of each oracle."""

    def raise_for_missing_answers(self) -> None:
        """Raise HarnessError if engines did not answer all cases, so that no discrepancy does not mean no difference."""
        if missing := self.tally.unanswered.total():
            raise HarnessError(
                f"{missing} of {self.asked} answers are missing, so these cases were not compared; "
                f"the last: {self.tally.last_unanswered}"
            )


def plan_fuzzing(options: FuzzOptions) -> FuzzPlan:
    """Choose versions and the seed; OptionsClash if there is nothing to test; see `Targets.choose` for other errors."""
    if not options.spark and not options.model:
        raise OptionsClash("nothing to test: pass --spark, --model, or both")
    if options.state_stores and not options.spark:
        raise OptionsClash("the reference model has no state store: pass --spark, or omit --state-store")
    choice = choose_targets(options.spark) if options.spark else None
    seed = options.seed if options.seed is not None else random.randrange(BIGGEST_SEED)
    return FuzzPlan(options, seed, choice.targets if choice else (), choice.notes if choice else ())


def run_fuzzing(plan: FuzzPlan, display: CampaignListener) -> FuzzOutcome:
    """Search until the time is over, and write each discrepancy once it is shrunk; WrongUsage if there is no such family of cases."""
    options = plan.options
    drawing = Drawing(options.families, plan.seed)
    with ExitStack() as stack:
        oracles = _oracles(plan, display, stack)
        for oracle in oracles:
            stack.callback(oracle.close)
        by_the_model = options.model or len(oracles) == 1
        display.started(plan.seed, [oracle.name for oracle in oracles], by_the_model)
        stopped = stack.enter_context(_stopped_by_signals())
        # A drawn case on which the model takes more is not predicted.
        stack.enter_context(limited_memory(_MEMORY))
        judge = comparison.ByTheModel(alone=by_the_model)
        campaign = Campaign(oracles, judge, drawing, display, jobs=options.concurrency.jobs, stopped=stopped)
        tally, began = campaign.tally, time.monotonic()

        def over() -> bool:
            enough = options.most_cases is not None and tally.cases >= options.most_cases
            return enough or time.monotonic() - began >= options.seconds

        def write(discrepancy: Discrepancy) -> None:
            display.written(written_into(options.output, discrepancy, plan.command))

        interrupted = False
        try:
            for discrepancy in campaign.run(over):
                write(discrepancy)
        except KeyboardInterrupt:
            interrupted = True
            for discrepancy in tally.discrepancies:
                if not discrepancy.fully_shrunk:
                    write(discrepancy)
        seconds = time.monotonic() - began
    return FuzzOutcome(tally, seconds, interrupted, tally.cases * len(oracles))


def _oracles(plan: FuzzPlan, display: CampaignListener, stack: ExitStack) -> Sequence[Oracle]:
    if not plan.targets:
        newest_of_lines = {version.line: version for version in releases()}
        return [comparison.ModelOracle(version) for version in newest_of_lines.values()]
    options = plan.options
    runtime = stack.enter_context(open_runtime(options.runtime, options.work))
    stores: list[StateStore | None] = [StateStore.named(name) for name in dict.fromkeys(options.state_stores)] or [None]
    pairs = [(target, store) for target in plan.targets for store in stores if not store or store.on(target.version)]

    def oracle(target: Target, store: StateStore | None) -> EngineOracle:
        limits = options.concurrency.limits(len(pairs), store=store)
        return EngineOracle(runtime, target, limits, display, settings=store.name if store else "")

    return [*starmap(oracle, pairs)]


@contextmanager
def _stopped_by_signals() -> Iterator[Callable[[], bool]]:
    """Whether a signal has come that stops the campaign.

    Nothing is raised where the program happens to be: hypothesis swallows what is raised in its callbacks, and a discrepancy
    that is being written would be lost.
    """
    came = False

    def stop(*_: object) -> None:
        nonlocal came
        came = True

    with on_stop(stop):
        yield lambda: came


class EngineOracle:
    """Answers with the observation of a Spark. A name for ``settings`` other than the defaults follows that of the target."""

    def __init__(
        self, runtime: Runtime, target: Target, limits: Limits, listener: EngineListener, *, settings: str = ""
    ) -> None:
        self.name = f"{target.name} with {settings}" if settings else target.name
        self.version, self.conf, self.at_once = target.version, limits.conf, limits.side_by_side
        self._limits = limits
        self._slot = EngineSlot(runtime, target, listener, width=limits.side_by_side, memory_limit=limits.engine_memory)
        self._numbers = count(1)

    def answers(self, cases: Sequence[Case]) -> Sequence[OracleAnswer]:
        with ThreadPoolExecutor(self.at_once, thread_name_prefix=self.name) as pool:
            return list(pool.map(self._answer, cases))

    def _answer(self, case: Case) -> OracleAnswer:
        # An engine identifies a case by its id, and a case being shrunk runs in several variants at once.
        alone = case.model_copy(update={"id": f"{case.id}-{next(self._numbers)}"})
        run = run_cell(alone, self._slot, self._limits, allow_code=False)
        return OracleAnswer(next(iter(run.observations), None) if run.failure is None else None, run.failure or "")

    def close(self) -> None:
        self._slot.close()


_TICKET = re.compile(r"SPARK-\d+|https?://\S+")


def written_into(folder: Path, discrepancy: Discrepancy, command: str) -> Path:
    """Write a discrepancy to a new file named after it, in a folder made if missing; ``command`` finds it again.

    Raises CannotWriteFile, BeingWritten: the file cannot be written.
    """
    number, file = 1, folder / f"{discrepancy.name}.yaml"
    while file.exists():
        number += 1
        file = folder / f"{discrepancy.name}-{number}.yaml"
    write_file(file, text_of(discrepancy, command, file), FileKind("a discrepancy", any_content))
    return file


def text_of(discrepancy: Discrepancy, command: str, file: Path) -> str:
    head = "".join(f"# {line}\n" for line in _head(discrepancy, command, file))
    return head + printed(as_case(discrepancy))


def as_case(discrepancy: Discrepancy) -> dict[str, Json]:
    """The discrepancy as a case: it expects the answer of the newer version; the other answer is under ``differs`` if possible."""
    difference = discrepancy.difference
    expected_answer, other_answer = sorted(
        (difference.one, difference.other),
        key=lambda answer: (len(answer.observation.steps), answer.version, not answer.oracle.startswith("model-")),
        reverse=True,
    )
    case = case_from(discrepancy.written, discrepancy.name)
    base = {
        "title": f"{difference.what.capitalize()}: {difference.one.oracle} and {difference.other.oracle} differ",
        "strength": "observed",
        **{key: value for key, value in discrepancy.written.items() if key not in ("title", "steps")},
    }
    bare = {**base, "steps": list(discrepancy.written["steps"])}
    seen = {step.number: _expectation(step, case, expected_answer) for step in expected_answer.observation.steps}
    steps = (
        step | ({"expect": seen[number]} if number in seen else {}) for number, step in enumerate(bare["steps"], 1)
    )
    expected = {**base, "steps": [*steps]}
    entry = _entry(case, expected_answer, other_answer, difference.rules)
    for candidate in ([{**expected, "differs": [entry]}] if entry else []) + [expected]:
        # An error of one oracle alone cannot always be expressed: a case ends at the first error.
        with suppress(InvalidCase):
            case_from(candidate, discrepancy.name)
            return candidate
    return bare


def _expectation(step: StepSeen, case: Case, answer: comparison.NamedAnswer) -> dict[str, Json]:
    return observed_expectation(step, OutputSchema.of(answer.observation.columns_of(step)), case)


def _entry(
    case: Case, expected: comparison.NamedAnswer, other: comparison.NamedAnswer, rules: RuleNames
) -> dict[str, Json] | None:
    """The ``differs`` entry of the other answer; None if both are of one version, which a case cannot distinguish."""
    if expected.version == other.version:
        return None
    steps: dict[int, Json] = {}
    for mine, theirs in zip(expected.observation.steps, other.observation.steps, strict=False):
        if change := _changed(_expectation(mine, case, expected), _expectation(theirs, case, other)):
            steps[mine.number] = change
    if not steps:
        return None
    because = "not explained by any rule of the reference model"
    if rules:
        because = f"explained by the rules of the reference model: {' and '.join(name for name, _ in rules)}"
    links = [source for _, source in rules if _TICKET.fullmatch(source)]
    return {"spark": f"=={other.version}", "because": because, **({"link": links[0]} if links else {}), "steps": steps}


def _changed(expected: dict[str, Json], other: dict[str, Json]) -> dict[str, Json]:
    change = {key: value for key, value in other.items() if expected.get(key, ...) != value}
    if "error" in expected and "error" not in other:
        return {"error": None, **change}
    missing = [key for key in expected if key not in other and key not in ("rows", "error")]
    return {**change, "unchecked": missing} if missing and "error" not in other else change


def _head(discrepancy: Discrepancy, command: str, file: Path) -> Iterator[str]:
    difference = discrepancy.difference
    if not discrepancy.fully_shrunk:
        yield "Shrinking was interrupted; a smaller case may exist."
    for answer in (difference.one, difference.other):
        yield f"{answer.oracle}:"
        case = case_from(discrepancy.written, discrepancy.name)
        for step in answer.observation.steps:
            yield f"  step {step.number}: {inline(_expectation(step, case, answer))}"
    for name, source in difference.rules:
        yield f"Explained by the rule {name} ({source})"
    if not difference.rules:
        yield "No single rule of the reference model explains the difference."
    for line in _replays(difference, file):
        yield f"Reproduce:  {line}"
    yield f"Find again: {command}"


def _replays(difference: AnswerDifference, file: Path) -> Iterator[str]:
    by_kind: dict[bool, list[str]] = {True: [], False: []}
    for answer in (difference.one, difference.other):
        by_kind[answer.oracle.startswith("model-")].append(f"--spark {answer.version}")
    if specs := dict.fromkeys(by_kind[False]):
        store = " --state-store rocksdb" if "rocksdb" in f"{difference.one.oracle}{difference.other.oracle}" else ""
        yield f"conformance run {file} {' '.join(specs)}{store}"
    yield from (f"conformance explain {file} {spec}" for spec in by_kind[True])
