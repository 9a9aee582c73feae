"""Whose mistake an error is that a Python worker reports as text. The texts are those of Spark 3.0.3, 3.5.9 and 4.3.0."""

import os
from pathlib import Path

import pytest

from harness.driver.jobs.own_code import mistake_in_text

OLD = """\
Writing job aborted.
Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times: org.apache.spark.api.python.PythonException: \
Traceback (most recent call last):
  File "/opt/lib/python3.8/site-packages/pyspark/python/lib/pyspark.zip/pyspark/worker.py", line 605, in main
    process()
  File "{folder}/acme_jobs/totals.py", line 12, in shout
    return os.environ[name]
  File "{stdlib}/os.py", line 675, in __getitem__
    raise KeyError(key) from None
KeyError: 'MY_ENV_VAR'

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:503)
"""


THROUGH_CONNECT = """\
Traceback (most recent call last):
  File "python3.13/site-packages/pyspark/python/lib/pyspark.zip/pyspark/sql/connect/client/core.py", line 2443, in _handle_rpc_error
    raise convert_exception(
    ...<5 lines>...
    ) from None
  File "{folder}/acme_jobs/totals.py", line 12, in shout
    return {{}}[text]
      ^^^^^^^^^^^^^
pyspark.errors.exceptions.connect.PythonException:
  An exception was thrown from the Python worker. Please see the stack trace below.
[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "{folder}/acme_jobs/totals.py", line 12, in shout
    return {{}}[text]
           ~~^^^^^^
KeyError: 'MY_ENV_VAR'
 SQLSTATE: 38000
"""
"""As a server of 4.3.0 tells it."""


def text(folder, template=OLD):
    return template.format(folder=folder, stdlib=Path(os.__file__).parent)


@pytest.mark.parametrize("template", [OLD, THROUGH_CONNECT], ids=["3.0.3", "through Connect, what was raised first"])
def test_a_udf_that_raises_is_named_by_its_line(tmp_path, template):
    mistake = mistake_in_text(text(tmp_path, template), [str(tmp_path)])
    place = "acme_jobs/totals.py:12"
    assert (mistake.raised, mistake.at, mistake.during) == ("KeyError('MY_ENV_VAR')", place, "in a UDF")
    if template == OLD:
        assert mistake.traceback == (
            "File \"acme_jobs/totals.py\", line 12, in shout\n  return os.environ[name]\nKeyError: 'MY_ENV_VAR'"
        )


def test_other_errors_show_their_text(tmp_path):
    told = text(tmp_path, OLD).replace("KeyError: 'MY_ENV_VAR'", "acme_jobs.errors.Refused: no price: 0")
    assert mistake_in_text(told, [str(tmp_path)]).raised == "Refused('no price: 0')"


def test_a_file_elsewhere_is_not_the_authors(tmp_path):
    assert mistake_in_text(text("/opt/other"), [str(tmp_path)]) is None


def test_what_pyspark_raises_is_sparks_although_their_function_called_it(tmp_path):
    inner = '  File "/opt/pyspark/sql/types.py", line 3, in verify\n    raise TypeError(1)\nTypeError: 1'
    told = text(tmp_path).replace("KeyError: 'MY_ENV_VAR'", inner)
    assert mistake_in_text(told, [str(tmp_path)]) is None


def test_a_worker_that_ended_is_the_authors(tmp_path):
    said = "Job aborted: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"
    mistake = mistake_in_text(said, [str(tmp_path)])
    assert (mistake.raised, mistake.at) == ("SystemExit, or ended its Python worker in another way", None)


@pytest.mark.parametrize("told", ["", "x\n" * 10_000, 'File "a", line 1, in b'], ids=range(3))
def test_any_other_text_is_none(told, tmp_path):
    assert mistake_in_text(told, [str(tmp_path)]) is None
