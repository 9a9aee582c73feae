"""The versions a workflow runs: ``versions.py TARGETS.json [HOW_MANY]`` says ``spark=["3.5.9", …]``, the newest release of each line.

``HOW_MANY`` keeps the newest so many. ``--without-image`` lists, one a line, the versions Apache publishes no image of.
"""

import json
import sys
from pathlib import Path


def newest_of_each_line(targets: list[dict]) -> list[str]:
    lines = {}
    for target in targets:
        if target["target"].startswith("spark-"):
            lines[target["spark"].rpartition(".")[0]] = target["spark"]
    return list(lines.values())


def main(path: str, wish: str = "") -> None:
    with Path(path).open(encoding="utf-8") as file:
        targets = json.load(file)
    if wish == "--without-image":
        print("\n".join(target["spark"] for target in targets if target["image"] is None))
        return
    newest = newest_of_each_line(targets)
    print("spark=" + json.dumps(newest[-int(wish) :] if wish else newest))


main(*sys.argv[1:])
