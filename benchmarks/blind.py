"""Whether the fuzzer finds what is there: wrong models, and two changes of Spark, from a random seed, without the suite's cases.

    python benchmarks/blind.py                     the wrong models, and both changes between models: no Spark runs
    python benchmarks/blind.py --engines           both changes between real engines too
    python benchmarks/blind.py --seed 7 --most 60  the same again, at most 60 s for each

The generator never reads the catalogue of cases, so nothing that pins a behaviour can help it. Nothing is recognised as known between
two versions here: the rule has to be found, not looked up.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from conformance.core.case import Case
from conformance.core.versions import SparkVersion
from conformance.fuzzing.campaign import Campaign, EngineOracle
from conformance.fuzzing.comparison import (
    AnswerJudgement,
    ByTheModel,
    Discrepancy,
    ModelOracle,
    Oracle,
    OracleAnswer,
)
from conformance.fuzzing.coverage import Drawing
from conformance.language.printing import printed
from conformance.model.catalogue import rules_of
from conformance.model.wrong_models import WRONG_MODELS
from conformance.runner.resources import Concurrency, choose_targets, open_runtime
from harness.engine.engine import Runtime
from harness.runtimes.options import RuntimeOptions
from tests.support.each_other import ByEachOther

CHANGES = {
    "late rows against the watermark before": ("late_watermark", "3.3.4", "3.4.4"),
    "SPARK-49829, rows that go at once": ("stores_rows_that_go_at_once", "3.5.3", "3.5.9"),
}
"""What is to be found → its rule, and the versions it parts."""
WANTED = 20
"""So many wrong models at least."""


@dataclass(frozen=True)
class Search:
    """One thing to be found."""

    what: str
    oracles: Callable[[], Sequence[Oracle]]
    judge: ByTheModel


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seed", type=int, default=random.randrange(10_000))
    arguments.add_argument("--most", type=float, default=1200.0, help="seconds for each search, at most")
    arguments.add_argument("--engines", action="store_true", help="the changes of Spark between real engines too")
    arguments.add_argument("--only", default="", help="only what has this in its name")
    arguments.add_argument("--cases", action="store_true", help="print the shrunk cases")
    given = arguments.parse_args()
    print(f"seed {given.seed}\n{'s':>7} {'cases':>6} {'steps':>5} {'rows':>4}")
    began = time.monotonic()
    wrong = [_wrong_model(number) for number in range(len(WRONG_MODELS))]
    found = [_searched(one, given) for one in wrong if given.only in one.what]
    changes = [_searched(_between_models(name), given) for name in CHANGES if given.only in name]
    if given.engines:
        with open_runtime(RuntimeOptions()) as runtime:
            for name in CHANGES:
                if given.only in name:
                    changes.append(_searched(_between_engines(name, runtime), given))
    there = [one for one in (*found, *changes) if one is not None]
    killed = sum(one is not None for one in found)
    print(
        f"{killed} of {len(found)} wrong models and {sum(one is not None for one in changes)} of {len(changes)} changes found",
        end="",
    )
    print(f" in {time.monotonic() - began:.0f} s, seed {given.seed}")
    if there:
        steps, rows = [one.steps for one in there], [one.rows for one in there]
        print(f"median of the shrunk cases: {statistics.median(steps):g} steps, {statistics.median(rows):g} rows")
        print(f"largest: {max(steps)} steps, {max(rows)} rows")
    sys.exit(0 if killed >= min(WANTED, len(found)) and None not in changes else 1)


def _searched(search: Search, given: argparse.Namespace) -> Discrepancy | None:
    oracles = search.oracles()
    campaign = Campaign(oracles, search.judge, Drawing((), given.seed))
    began = time.monotonic()
    try:
        for find in campaign.run(lambda: time.monotonic() - began > given.most):
            seconds, cases = time.monotonic() - began, campaign.tally.cases
            _progress_callback(f"{seconds:7.1f} {cases:6} {find.steps:5} {find.rows:4}", search.what)
            if given.cases:
                print(printed(find.written))
            return find
    finally:
        for oracle in oracles:
            oracle.close()
    _progress_callback(
        f"{time.monotonic() - began:7.1f} {campaign.tally.cases:6}     -    -", f"NOT FOUND: {search.what}"
    )
    return None


def _progress_callback(numbers: str, what: str) -> None:
    print(f"{numbers}  {what}", flush=True)


def _wrong_model(number: int) -> Search:
    wrong = WRONG_MODELS[number]
    misread = wrong.of(rules_of(wrong.version))
    return Search(wrong.name, lambda: [ModelOracle(wrong.version, misread, wrong.name)], ByTheModel())


class _Only(ByEachOther):
    """Leaves aside what else parts the two, so that the time is that of the thing itself."""

    def __init__(self, rule: str) -> None:
        self._rule = rule

    def judge(self, case: Case, answers: Mapping[str, OracleAnswer], oracles: Mapping[str, Oracle]) -> AnswerJudgement:
        said = super().judge(case, answers, oracles)
        wanted = (one for one in said.differences if self._rule in dict(self.explained(case, one).rules))
        return AnswerJudgement(tuple(wanted), not_predicted=said.not_predicted)


def _between_models(name: str) -> Search:
    rule, here, there = CHANGES[name]
    oracles = [ModelOracle(SparkVersion.parse(version)) for version in (here, there)]
    return Search(f"{name}: models of {here} and {there}", lambda: oracles, _Only(rule))


def _between_engines(name: str, runtime: Runtime) -> Search:
    rule, here, there = CHANGES[name]
    targets = choose_targets([here, there]).targets
    limits = Concurrency(jobs=2).limits(2)
    return Search(
        f"{name}: engines {here} and {there}",
        lambda: [EngineOracle(runtime, target, limits, _Silent()) for target in targets],
        _Only(rule),
    )


class _Silent:
    """Hears of engines and says nothing."""

    def engine_says(self, target: object, line: str) -> None:
        pass

    def engine_ready(self, target: object, identity: object, place: object) -> None:
        pass


if __name__ == "__main__":
    main()
