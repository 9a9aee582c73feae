"""What Kafka adds to a micro-batch: the same cases through files and through topics, by turns, in one engine.

python benchmarks/kafka.py --spark 3.5.9
python benchmarks/kafka.py --spark 3.5.9 --rounds 3 cases/window-eviction
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from contextlib import closing
from pathlib import Path

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.suite import discovery
from conformance.suite.selection import SMOKE, only_tagged
from conformance.variants.catalogue import KAFKA, varied
from harness.engine.alignment import check_alignment
from harness.engine.engine import Engine, EngineNeeds
from harness.engine.request import kills_its_engine, request_for
from harness.progress import ignore_progress
from harness.runtimes.local import LocalRuntime
from harness.targets.targets import Targets


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("paths", nargs="*", type=Path, help="cases and folders; by default the smoke cases")
    arguments.add_argument("--spark", default="newest")
    arguments.add_argument("--rounds", type=int, default=2)
    options = arguments.parse_args()
    (target,) = Targets.load().select([options.spark])
    found = discovery.load(options.paths or None).cases
    chosen = [case for case in found if case.applies_to(target.version) and not kills_its_engine(case)]
    pairs = [(one.original, one) for one in varied(chosen if options.paths else only_tagged(chosen, [SMOKE]), [KAFKA])]
    spent: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(LocalRuntime(Path(folder))) as runtime,
        closing(runtime.start(target, on_progress=ignore_progress, needs=EngineNeeds(topics=True))) as engine,
    ):
        if not isinstance(engine.kafka, str):
            raise SystemExit(str(engine.kafka))
        for pair in pairs[:3]:
            for case in pair:  # the first cases load classes
                observed(engine, case)
        for number in range(options.rounds):
            for pair in pairs:
                for case in pair if number % 2 else reversed(pair):
                    add(spent[case.source], observed(engine, case))
    show(spent, target.name, len(pairs), options.rounds)


def observed(engine: Engine, case: Case) -> Observation:
    assert engine.kafka is None or isinstance(engine.kafka, str)
    request = request_for(case, engine.new_directory(case.id), kafka=engine.kafka)
    seen = engine.observe(request, step_timeout=600)
    check_alignment(case, seen)
    return seen


def add(spent: list[float], seen: Observation) -> None:
    """Add micro-batches, their seconds, and the seconds of the steps."""
    batches = [batch for step in seen.steps for batch in step.batches]
    spent[0] += len(batches)
    spent[1] += sum(batch.duration_ms for batch in batches) / 1000
    spent[2] += sum(step.wall_ms for step in seen.steps) / 1000


def show(spent: dict[str, list[float]], target: str, cases: int, rounds: int) -> None:
    print(f"{target}: {cases} cases, {rounds} rounds")
    for source, (batches, inside, wall) in sorted(spent.items()):
        each = f"{inside / batches * 1000:.0f} ms for each, {wall / batches * 1000:.0f} ms with the steps around them"
        print(f"{source}: {batches:.0f} micro-batches, {each}")
    files, kafka = spent["files"], spent["kafka"]
    inside = (kafka[1] / kafka[0]) / (files[1] / files[0])
    print(
        f"kafka / files: {inside:.2f} inside micro-batches, {(kafka[2] / kafka[0]) / (files[2] / files[0]):.2f} with the steps"
    )


if __name__ == "__main__":
    main()
