"""What is read of rows: nothing that a job changes in its process changes it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.environments.provision import prepare
from harness.targets.targets import Targets
from tests.support.effort import full_run_only

ROOT = Path(__file__).parents[2]
CHANGES = {
    "nothing": "",
    "zone": "import os, time; os.environ['TZ'] = 'Europe/Berlin'; time.tzset()",
    "decimal context": "import decimal; context = decimal.getcontext(); context.capitals, context.prec = 0, 2",
    "locale": "import locale; locale.setlocale(locale.LC_ALL, 'C.UTF-8')",
    "warnings": "import warnings; warnings.simplefilter('error')",
    "seed": "import random; random.seed(1)",
    "folder and environment": "import os; os.chdir('/'); os.environ.clear()",
    "output": "sys.stdout = sys.stderr",
}
READ = f"""
import os, sys
from decimal import Decimal
from pyspark.sql import types as t
from harness.driver.values import encode

instant, number = t.TimestampType(), t.DecimalType(20, 9)
# Two instants that a clock of Berlin calls 02:30, as Spark holds them, and as `collect` gives them.
held = 1792888200000001, 1792891800000001
for name, change in {CHANGES}.items():
    child = os.fork()  # what a change leaves in its process does not reach the next
    if child:
        os.waitpid(child, 0)
        continue
    before = sys.stdout
    exec(change)
    read = [encode(value, instant) for each in held for value in (each, instant.fromInternal(each))]
    print(name, *read, encode(Decimal("1E-9"), number), sep=";", file=before, flush=True)
    os._exit(0)
"""


@pytest.mark.parametrize("line", ["3.0.3", "4.3.0"])
def test_rows_are_read_alike_whatever_a_job_changes_in_its_process(line: str) -> None:
    environment = prepare(Targets.load().select([line])[0])
    command = [str(environment.python), "-c", READ]
    environ = {**environment.environ(), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    first, second = "2026-10-25T00:30:00.000001Z", "2026-10-25T01:30:00.000001Z"
    assert done.stdout.splitlines() == [f"{name};{first};{first};{second};{second};1E-9" for name in CHANGES], (
        done.stderr
    )


SETTINGS = {
    "spark.sql.session.timeZone": "Asia/Kolkata",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
    "spark.sql.shuffle.partitions": "7",
}
BETWEEN = f"""
from pyspark.sql import SparkSession
from harness.driver.values import collected

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.sql("SELECT timestamp_micros(1792888200000001) AS a, DATE '1582-10-04' AS b, 1E-9BD AS c, array(-0D) AS d, 'x' AS A")
first = collected(rows)
assert first[0][0] == "2026-10-25T00:30:00.000001Z", first
for name, value in {SETTINGS}.items():
    spark.conf.set(name, value)
    assert collected(rows) == first, name
print("alike")
"""


@full_run_only
@pytest.mark.parametrize("line", ["3.1.3", "4.3.0"])
def test_rows_are_read_alike_whatever_settings_of_its_session_a_job_changes_between_micro_batches(
    line: str, tmp_path: Path
) -> None:
    environment = prepare(Targets.load().select([line])[0])
    environ = {**environment.environ(), "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    command = [str(environment.python), "-c", BETWEEN]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert done.stdout == "alike\n", done.stderr[-3000:]
