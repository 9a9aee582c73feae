"""The directory of a case: restored before its steps run, saved or removed afterwards."""

from __future__ import annotations

import os
import shutil

from .backend import ReadableFiles
from .request import CaseRequest


def prepare(request: CaseRequest) -> None:
    """Remove directories that are no longer needed, and restore the one that the steps continue from."""
    for path in request.discard:
        shutil.rmtree(path, ignore_errors=True)
    if request.restore:
        shutil.rmtree(request.directory, ignore_errors=True)
        # With modification times, which are the order of the files.
        shutil.copytree(request.restore, request.directory)


def finish(files: ReadableFiles, request: CaseRequest) -> None:
    """Move the case's directory to where the request wants it saved, or remove it."""
    if request.save:
        shutil.rmtree(request.save, ignore_errors=True)
        os.rename(request.directory, request.save)
    else:
        files.discard(request.directory)
