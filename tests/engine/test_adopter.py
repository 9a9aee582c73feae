"""A repository of somebody else, with the wheel installed beside it: from nothing to answers, as the documentation says."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.environments import provision
from harness.targets.targets import Targets
from reports.results.reading import Results
from tests.engine.typed import contents
from tests.support.effort import full_run_only
from tests.support.transcript import File, transcript

CI_PAGE = Path(__file__).parents[2] / "docs" / "ci.md"
ADOPTER = Path(__file__).parents[1] / "adopter"
ORDERS = "orders=order_time TIMESTAMP, who STRING, amount INT"
CLICKS = "clicks=click_time TIMESTAMP, who STRING, page STRING"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shutil.copytree(ADOPTER, tmp_path_factory.mktemp("acme") / "acme-jobs")


@pytest.fixture
def call(installed: Path, repository: Path):
    """A program of the environment with the wheel, in the repository."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTEST_ADDOPTS")}

    def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(installed / program), *arguments]
        return subprocess.run(command, cwd=repository, env=clean, capture_output=True, text=True, check=False)

    return run


def test_its_own_tests_run_with_its_own_harness(call) -> None:
    done = call("pytest", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


@full_run_only
@pytest.mark.parametrize("page", [".github/workflows/watermarks.yml", ".gitlab-ci.yml"])
def test_the_workflows_to_copy_work_here(page: str, installed: Path, repository: Path) -> None:
    (written,) = [one for one in transcript(CI_PAGE) if isinstance(one, File) and one.path == page]
    summary = repository / "summary.md"
    path = f"{installed}{os.pathsep}{os.environ['PATH']}"
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTEST_ADDOPTS")}
    for script in scripts(yaml.safe_load(written.content)):
        done = subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=repository,
            env={**clean, "PATH": path, "GITHUB_STEP_SUMMARY": str(summary)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, script + done.stdout + done.stderr
    assert Results.read(repository / "results.jsonl").footer.counts == {"conforms": 2}
    if "github" in page:
        assert "2 conform" in summary.read_text()
        assert (repository / "report" / "index.html").is_file()


def scripts(workflow: dict[str, Any]) -> Iterator[str]:
    """What the jobs run, for each version, without what installs the wheel."""
    jobs = workflow.get("jobs") or {name: workflow[name] for name in workflow["stages"]}
    for job in jobs.values():
        steps = job.get("script") or [step["run"] for step in job["steps"] if "run" in step]
        if "strategy" in job:
            versions = job["strategy"]["matrix"]["spark"]
        else:
            versions = job["parallel"]["matrix"][0]["SPARK"] if "parallel" in job else [""]
        for version in versions:
            for step in steps:
                if not step.startswith("pip install"):
                    yield step.replace("${{ matrix.spark }}", version).replace("$SPARK", version)


@full_run_only
def test_its_checkpoint_resumes_with_the_workaround_and_stays_as_it_is(call, repository: Path) -> None:
    (target,) = Targets.load().select(["3.5.9"])
    environment = provision.prepare(target)
    production = repository / "production"
    written = [str(environment.python), str(repository / "plain_pyspark.py"), str(production)]
    subprocess.run(written, env=environment.environ(), check=True, capture_output=True)
    before = contents(production)
    resume = ("checkpoint", "resume", "production/checkpoint", "--call", "acme_jobs.clicked:build", "--to", "4.3")
    refused = call("conformance", *resume, "--schema", ORDERS, "--schema", CLICKS)
    assert refused.returncode == 1, refused.stdout + refused.stderr
    assert "the checkpoint is refused on 4.3.0: STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE" in refused.stdout
    unchecked = ("--conf", "spark.sql.streaming.stateStore.stateSchemaCheck=false")
    resumed = call("conformance", *resume, "--schema", ORDERS, "--schema", CLICKS, *unchecked)
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert "the checkpoint resumes on 4.3.0" in resumed.stdout
    assert contents(production) == before


@full_run_only
def test_a_job_that_writes_delta(call) -> None:
    package = ("--package", "3.5=io.delta:delta-spark_2.12:3.2.0")
    extension = ("--conf", "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension")
    catalog = ("--conf", "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog")
    done = call("conformance", "run", "delta/lake.yaml", "--allow-code", *package, *extension, *catalog)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 conforms" in done.stdout
