"""What a shard of the whole suite on every line costs, beside what ``--plan`` estimates: ``python -m benchmarks.shard 3/8``.

The CPU time is that of the command and of everything that it starts; half of it is the time by the clock on two processors that do nothing
else and are always busy. Without cached answers.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.check_job import Watched

COMMAND = [sys.executable, "-m", "conformance.cli.main", "run", "--spark", "lines", "--shard"]
EVERY_S = 1.0


def main() -> int:
    shard = sys.argv[1]
    planned = json.loads(subprocess.check_output([*COMMAND, shard, "--plan", "json"]))
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "results.jsonl")
        began = time.monotonic()
        process = subprocess.Popen([*COMMAND, shard, "--fresh", "-o", str(output)])
        watched = Watched(process.pid, EVERY_S)
        code = process.wait()
        wall = (time.monotonic() - began) / 60
        broken = sum(json.loads(line).get("status") == "broken" for line in output.open(encoding="utf-8"))
    cpu = watched.cpu.total() / 60
    print(
        f"shard {shard}: {planned['cells']:,} cells, {broken} broken, {cpu:.1f} min of CPU time, so {cpu / 2:.1f} min on two quiet "
        f"processors; {wall:.1f} min by the clock here, {planned['minutes']} planned"
    )
    return 0 if code in (0, 1, 3) else code


if __name__ == "__main__":
    sys.exit(main())
