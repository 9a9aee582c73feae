"""Cases as pytest items: selection, workers and JUnit work as people expect."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.support.effort import full_run_only

CASE = """
title: Every row comes out
tags: [{tag}]
streams: {{a: n INT}}
query: [{{from: a}}]
steps:
  - add: {{a: [[1]]}}
    expect: {{rows: [[{expected}]]}}
"""


@pytest.fixture
def folder(tmp_path):
    cases = tmp_path / "cases"
    (cases / "group").mkdir(parents=True)
    (cases / "group" / "right.yaml").write_text(CASE.format(tag="smoke", expected=1))
    (cases / "group" / "wrong.yaml").write_text(CASE.format(tag="boundary", expected=2))
    (cases / "newer.yaml").write_text("spark: '>=4.0'" + CASE.format(tag="smoke", expected=1))
    (tmp_path / "other.yaml").write_text("not: a case")
    return tmp_path


def run(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "pytest", "cases", "-v", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def test_without_spark_no_yaml_is_touched(folder):
    assert "collected 0 items" in run(folder)


def test_an_invalid_case_is_a_collection_error_with_its_line(folder):
    (folder / "cases" / "bad.yaml").write_text("title: x\nsteps: []\n")
    assert re.search(r"cases/bad\.yaml:\d+:\d+: ", run(folder, "--spark", "3.5", "--collect-only"))


def test_results_and_selection(folder):
    said = run(folder, "--spark", "3.5", "--junitxml", "junit.xml")
    assert re.search(r"cases/group/right\.yaml::\[spark-3\.5\.\d+\] PASSED", said)
    assert re.search(r"cases/group/wrong\.yaml::\[spark-3\.5\.\d+\] FAILED", said)
    assert re.search(r"cases/newer\.yaml::\[spark-3\.5\.\d+\] SKIPPED \(the case is about Spark >=4\.0\)", said)
    assert "2   expected, not emitted" in said
    cases = list(ElementTree.parse(folder / "junit.xml").iter("testcase"))
    assert len({(case.get("classname"), case.get("name")) for case in cases}) == 3
    properties = {prop.get("name"): prop.get("value") for case in cases for prop in case.iter("property")}
    assert {"spark", "case", "status"} <= set(properties)
    assert "2 deselected" in run(folder, "--spark", "3.5", "-m", "boundary", "--collect-only")


@full_run_only
def test_each_version_stays_on_one_worker(folder):
    said = run(folder, "--spark", "3.4", "--spark", "3.5", "-n", "2", "--dist", "loadgroup")
    workers = {}
    for worker, version in re.findall(r"\[(gw\d)\] .*\[(spark-\S+?)\]", said):
        workers.setdefault(version, set()).add(worker)
    assert len(workers) == 2, said
    assert all(len(which) == 1 for which in workers.values()), said
