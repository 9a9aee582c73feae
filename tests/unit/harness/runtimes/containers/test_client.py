"""Where the packages that speak to a container engine are missing, one line says so; everything else works."""

import os
import subprocess
import sys

import pytest

WITHOUT = """
import sys

sys.modules[{missing!r}] = None
from conformance.cli.main import main

for arguments in {commands!r}:
    try:
        main(arguments)
    except SystemExit as ended:
        if ended.code:
            raise
"""


def call(missing: str, *commands: list[str]) -> subprocess.CompletedProcess[str]:
    """The commands in one process, up to the first that fails."""
    program = WITHOUT.format(missing=missing, commands=commands)
    environ = {**os.environ, "COLUMNS": "300"}
    return subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("missing", ["docker", "requests", "testcontainers"])
def test_which_extra_has_them(missing: str) -> None:
    done = call(missing, ["targets", "clean"])
    assert (done.returncode, done.stdout) == (3, "")
    assert f"Containers need the package {missing}" in done.stderr
    assert "pip install 'watermark-conformance[containers]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_what_needs_no_container_works() -> None:
    done = call("docker", ["run", "--help"], ["targets"])
    assert done.returncode == 0, done.stderr
    assert "Usage: conformance run" in done.stdout
    assert "spark-4" in done.stdout
