"""The built wheel, installed alone outside the checkout, has the suite and the driver in it and runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.environments.installer import search_path
from tests.support.effort import full_run_only

ROOT = Path(__file__).parents[2]


def environ():
    """Nothing of ours but the program itself: no path into the checkout, no options for another pytest."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTEST_ADDOPTS")}


def call(installed, tmp_path, *arguments):
    return subprocess.run(
        [installed / "conformance", *arguments],
        cwd=tmp_path,
        env=environ(),
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_knows_the_suite(installed, tmp_path):
    done = call(installed, tmp_path, "case", "validate")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no problems" in done.stderr + done.stdout


def test_it_has_the_published_results(installed, tmp_path):
    done = call(installed, tmp_path, "gate", "--from", "3.5.9", "--to", "4.3.0")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "same rows on each with spark.sql.streaming.stateStore.stateSchemaCheck=false" in done.stdout


@full_run_only
def test_it_runs_the_suite_on_an_engine(installed, tmp_path):
    done = call(installed, tmp_path, "run", "--spark", "3.5", "--tag", "smoke")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 violate" in done.stdout
    assert '"status":"conforms"' in (tmp_path / "results.jsonl").read_text(encoding="utf-8")


def test_its_pytest_plugin_is_there(installed, tmp_path):
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "one.yaml").write_text((ROOT / "cases/late-drops/window-still-open.yaml").read_text())
    done = subprocess.run(
        [installed / "pytest", "cases", "--spark", "3.5", "--collect-only", "-q"],
        cwd=tmp_path,
        env=environ(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "cases/one.yaml::[spark-3.5." in done.stdout, done.stdout + done.stderr


def test_its_public_interface_is_there_and_typed(installed, tmp_path):
    look = "import conformance, pathlib; print(pathlib.Path(conformance.__file__).with_name('py.typed').is_file())"
    look += "; print([getattr(conformance, name).__name__ for name in conformance.__all__] == conformance.__all__)"
    done = subprocess.run(
        [installed / "python", "-c", look], cwd=tmp_path, env=environ(), capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_it_takes_little_room(installed):
    """Its files and those of all that it needs, with their byte code; pip and setuptools are the environment's."""
    look = (
        "import importlib.metadata as m, pathlib\n"
        "own = lambda one: one.metadata['Name'] not in ('pip', 'setuptools')\n"
        "files = {pathlib.Path(f.locate()) for one in m.distributions() if own(one) for f in one.files or ()}\n"
        "print(sum(f.stat().st_size for f in files if f.is_file()))"
    )
    done = subprocess.run([installed / "python", "-c", look], env=environ(), capture_output=True, text=True, check=True)
    assert 30_000_000 < int(done.stdout) <= 60_000_000


def test_a_command_that_needs_more_says_what(installed, tmp_path):
    for arguments, extra in (
        (("run", "--spark", "3.5", "--runtime", "container"), "containers"),
        (("targets", "clean"), "containers"),
        (("maintain", "fuzz", "--spark", "3.5"), "fuzz"),
        (("checkpoint", "inspect", "s3://bucket/checkpoint"), "storage"),
    ):
        done = call(installed, tmp_path, *arguments)
        assert done.returncode in (2, 3), done.stdout + done.stderr
        (line,) = [one for one in " ".join(done.stderr.split()).split("conformance: ") if "pip install" in one]
        assert f"pip install 'watermark-conformance[{extra}]'" in line, done.stderr


@full_run_only
@pytest.mark.parametrize(("version", "kind"), [("3.13", "*.whl"), ("3.12", "*.tar.gz")])
def test_it_installs_on_other_pythons_that_it_claims(built, kind, version, tmp_path):
    """The release workflow installs the wheel on all of them."""
    (file,) = built.glob(kind)
    uv = [sys.executable, "-m", "uv"]
    run = {"check": True, "capture_output": True, "env": environ() | {"PATH": search_path(os.environ)}}
    subprocess.run([*uv, "venv", "--python", version, tmp_path / "empty"], **run)
    programs = tmp_path / "empty" / "bin"
    subprocess.run([*uv, "pip", "install", "--python", programs / "python", file], **run)
    folder = tmp_path / "mine"
    folder.mkdir()
    for arguments, code in (
        (("gate", "--from", "3.5.9", "--to", "4.1.4"), 1),
        (("case", "new", "cases/mine.yaml"), 0),
        (("case", "validate", "cases"), 0),
        (("maintain", "columns"), 0),
    ):
        done = call(programs, folder, *arguments)
        assert done.returncode == code, done.stdout + done.stderr
