"""Answers of commands as files, which a review reads: one for each answer, with what a terminal of each width shows."""

from collections.abc import Mapping
from pathlib import Path

import pytest


def compare_with_golden(file: Path, parts: Mapping[str, str]) -> None:
    """Compare an answer with the file of it; a file that is missing is written, and the test fails once."""
    text = "".join(f"== {name}\n{part}" for name, part in parts.items())
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        pytest.fail(f"{file} was missing and is written: read it, and commit it")
    assert text == file.read_text(encoding="utf-8"), (
        f"if the new answer is right, remove {file} and run this test again"
    )
