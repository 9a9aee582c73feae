"""Some generated cases of every family, on the reference model and on a real Spark: no discrepancy.

``CONFORMANCE_SEED=17 pytest tests/engine/test_model_agrees.py`` draws other cases, and ``CONFORMANCE_CASES`` says how many cases.
"""

import os

from tests.engine.typed import conformance
from tests.support.effort import number

SEED = os.environ.get("CONFORMANCE_SEED") or "5"
CASES = os.environ.get("CONFORMANCE_CASES") or str(number(8, 200))


def test_the_model_and_spark_do_not_disagree(tmp_path, capsys):
    command = ["maintain", "fuzz", "--spark", "3.5", "--model", "--side-by-side", "4", "--time", "20m", "--seed"]
    done = conformance(tmp_path, *command, SEED, "--max-cases", CASES)
    with capsys.disabled():
        print(f"\n{done.stdout.strip()}")
    finds = [path.read_text(encoding="utf-8") for path in (tmp_path / "found").glob("*.yaml")]
    assert done.returncode == 0, "\n".join([*finds, done.stderr])
