"""How many cases a campaign runs in a minute, and how much of that time is ours.

``python benchmarks/fuzz_share.py [--spark 3.5] [--cases 200] [--seed 7]`` runs a campaign on one engine against the reference model. It
prints, from that one campaign, cases a minute, micro-batches a second, and the harness's share of the wall time: when no micro-batch of
any case ran, by the engine's own clock. That share contains drawing, the model's answers, comparing, and starting queries. The engine's
start is left out.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

from micro_batches import covered, intervals
from watching import Watching

from conformance.core.case import Case
from conformance.fuzzing.campaign import Campaign, EngineOracle
from conformance.fuzzing.comparison import ByTheModel, OracleAnswer
from conformance.fuzzing.coverage import Drawing
from conformance.runner.resources import Concurrency, choose_targets, open_runtime
from harness.runtimes.options import RuntimeOptions


class Noting(EngineOracle):
    """Keeps what it answered."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.noted: list[OracleAnswer] = []

    def answers(self, cases: Sequence[Case]) -> Sequence[OracleAnswer]:
        given = super().answers(cases)
        self.noted += given
        return given


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spark", default="3.5")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    watching = Watching()
    (target,) = choose_targets([options.spark]).targets
    with open_runtime(RuntimeOptions()) as runtime:
        limits = Concurrency(jobs=1).limits(1)
        oracle = Noting(runtime, target, limits, watching)
        campaign = Campaign([oracle], ByTheModel(alone=True), Drawing((), options.seed))
        try:
            finds = list(campaign.run(lambda: campaign.tally.cases >= options.cases))
            ended = time.time()
        finally:
            oracle.close()
    answered = [one.observation for one in oracle.noted if one.observation is not None]
    work = sorted(interval for observation in answered for interval in intervals(observation))
    wall, busy = ended - watching.ready_at, covered(work, watching.ready_at, ended)
    print(f"target                 {target.name}, {limits.side_by_side} cases side by side, seed {options.seed}")
    print(
        f"cases                  {campaign.tally.cases}, {campaign.tally.cases / wall * 60:.0f} a minute; {len(finds)} finds"
    )
    print(f"micro-batches          {len(work)}, {len(work) / wall:.1f} a second")
    print(f"some micro-batch runs  {busy:.1f} s of {wall:.1f} s")
    print(f"harness share of wall  {1 - busy / wall:.1%}")


if __name__ == "__main__":
    main()
