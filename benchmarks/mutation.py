"""Whether the suite can see: how many deliberately wrong models some case tells from the right one, and which cases do.

    python benchmarks/mutation.py            the score, a line per wrong model
    python benchmarks/mutation.py --cases    and the cases that kill each, and how many each case kills

No Spark runs: each wrong model stands in for one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from conformance.model.wrong_models import WRONG_MODELS
from conformance.oracle.cross_check import detects
from conformance.suite import discovery


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--cases", action="store_true", help="list the killers too")
    listed = arguments.parse_args().cases
    began = time.monotonic()
    cases = discovery.load().cases
    killers = {wrong: [case.id for case in cases if detects(case, wrong)] for wrong in WRONG_MODELS}
    seconds = time.monotonic() - began
    alive = [wrong for wrong, ids in killers.items() if not ids]
    for wrong, ids in sorted(killers.items(), key=lambda item: len(item[1])):
        print(f"{'✓' if ids else '✗'} {len(ids):4} kill   {wrong.name}")
        if listed:
            print("".join(f"             {id}\n" for id in ids), end="")
    if listed:
        counted = Counter(id for ids in killers.values() for id in ids)
        print("\nwrong models killed by each case")
        for id, count in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
            print(f"{count:6}  {id}")
        idle = sorted({case.id for case in cases} - counted.keys())
        print(f"\ncases that kill none ({len(idle)}):", *idle, sep="\n        ")
    share = (len(killers) - len(alive)) / len(killers)
    print(
        f"{len(killers) - len(alive)} of {len(killers)} wrong models killed ({share:.0%}) by {len(cases)} cases in {seconds:.0f} s"
    )
    sys.exit(1 if alive else 0)


if __name__ == "__main__":
    main()
