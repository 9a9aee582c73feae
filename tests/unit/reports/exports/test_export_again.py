"""An export replaces an earlier export of its format, and no file of another kind."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner

from conformance.cli.export import Format
from conformance.cli.main import app

RESULTS = Path(__file__).parents[3] / "browser" / "sample" / "results.jsonl"
CASE = "late-drops/window-still-open"


@pytest.mark.parametrize("format", get_args(Format))
def test_an_export_replaces_an_earlier_one_and_nothing_else(format: str, tmp_path: Path) -> None:
    output, of = tmp_path / "exported", CASE if format in ("script", "streamtest") else str(RESULTS)

    def export() -> int:
        return CliRunner().invoke(app, ["export", format, of, "-o", str(output)]).exit_code

    assert export() == 0
    first = output.read_bytes()
    assert first
    assert export() == 0
    assert output.read_bytes() == first
    output.write_text("mine", encoding="utf-8")
    assert export() == 2
    assert output.read_text(encoding="utf-8") == "mine"
