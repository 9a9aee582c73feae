#!/usr/bin/env bash
# Installs the versions of uv.lock, whose hashes uv compares, into .venv, and puts that first on the PATH of the next steps. uv itself
# comes with known hashes too. Its arguments are those of uv sync: .github/install.sh --extra dev
set -euo pipefail

grep '^uv==' harness/environments/hashes.txt > "$RUNNER_TEMP/uv.txt"
pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$RUNNER_TEMP/uv.txt"
# The Python that is first on PATH, by its file: uv would pass over one of a virtual environment and take another.
python=$(python -I -c 'import os, sys; print(os.path.realpath(sys.executable))')
sync=(uv sync --locked --no-python-downloads --python "$python")
# First what builds the suite's own wheel: in a build environment, uv would install whatever the index has.
"${sync[@]}" --only-group wheel
"${sync[@]}" --inexact --no-build-isolation-package watermark-conformance "$@"
echo "$PWD/.venv/bin" >> "$GITHUB_PATH"
