"""Write ``harness/environments/hashes.txt``: the sha256 of each file of the packages that the suite installs itself.

    python -m tools.package_hashes [UV_VERSION]

It knows each pyspark of ``conformance/core/releases.yaml`` and the given uv, by default the one that is known already. The program uv
asks the index of this machine once, and downloads no package. Look at the difference before you commit it: a hash that exists never
changes, because PyPI replaces no file. To compare with another source, see "view hashes" on the page of a release on pypi.org.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from conformance.core.versions import releases
from harness.environments import installer

FILE = Path(installer.__file__).with_name(installer.FILE)
HEADER = """\
# What uv and pip compare with the files that an index sends. Written by: python -m tools.package_hashes
"""
# So that uv neither downloads nor builds a pyspark, of which PyPI has the sources only, to learn what it depends on.
_SETTINGS = '[[dependency-metadata]]\nname = "pyspark"\nrequires-dist = []\n'


def main(arguments: Sequence[str]) -> None:
    uv = f"uv=={arguments[0]}" if arguments else installer.uv()
    FILE.write_text(HEADER + "\n".join(lines(ask([*(f"pyspark=={release}" for release in releases()), uv]))) + "\n")


def ask(requirements: Sequence[str], environ: Mapping[str, str] = os.environ) -> str:
    """What uv says about the hashes of exact versions: a requirements file. Raises ``CalledProcessError`` if the index lacks one."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder, "uv.toml")
        settings.write_text(_SETTINGS, encoding="utf-8")
        # One answer cannot have two versions of a package, unless they are for different platforms.
        text = "".join(f"{exact} ; sys_platform == '{number}'\n" for number, exact in enumerate(requirements))
        Path(folder, "wanted.in").write_text(text, encoding="utf-8")
        command = [str(installer.find_uv()), "pip", "compile", "--quiet", "--universal", "--no-deps"]
        command += ["--generate-hashes", "--no-header", "--no-annotate", "--config-file", str(settings), "wanted.in"]
        environ = {**environ, **installer.for_uv(environ)}
        return subprocess.run(command, cwd=folder, env=environ, stdout=subprocess.PIPE, text=True, check=True).stdout


def lines(answer: str) -> list[str]:
    """One line for each version, without the platform that `ask` made up."""
    return [
        " ".join([requirement, *re.findall(r"--hash=sha256:[0-9a-f]{64}", rest)])
        for requirement, rest in re.findall(r"^(\w+==\S+)((?:.*\\\n)*.*)$", answer, re.MULTILINE)
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
