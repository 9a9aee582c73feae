"""``python -m tools.campaign results --seed 7 --tries 1000``: attempts to get a green answer that is false, and faults.

``results``, ``calls``, ``bytes`` and ``two`` need no engine; ``jobs``, ``programs`` and ``engines`` run `conformance check`, ``platform``
also ``run`` and ``upgrade``, on a cluster or through Connect. A stopped campaign goes on with the same options. Exits with 1 if the
program fell once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from tools.campaign import engines, files, jobs, platform, results
from tools.campaign.tries import Try, carried_out, table

ATTEMPTS: Mapping[str, Callable[[int, int], Iterable[Try]]] = {
    "results": results.attempt,
    "jobs": partial(jobs.attempt, jobs.some_queries),
    "programs": partial(jobs.attempt, jobs.one_way),
    "calls": files.of_calls,
    "bytes": files.of_bytes,
    "two": files.of_two,
    "engines": engines.attempt,
    "platform": platform.attempt,
}


def main() -> None:
    """Carry out the tries, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.campaign", description=__doc__)
    parser.add_argument("what", choices=ATTEMPTS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first try")
    parser.add_argument("--tries", type=int, default=100)
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("campaign"), help="folder of the tries that have ended"
    )
    asked = parser.parse_args()
    output = asked.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    if asked.what in ("calls", "bytes", "two"):
        files.preload(output)
    file = output / f"{asked.what}-{asked.seed}.jsonl"
    numbers = range(asked.first, asked.first + asked.tries)
    tries = [*carried_out(file, numbers, partial(ATTEMPTS[asked.what], asked.seed))]
    print(table(tries))
    sys.exit(any(one.fell for one in tries))


if __name__ == "__main__":
    main()
