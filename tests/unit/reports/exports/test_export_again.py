"""An export replaces an earlier export of its format, and no file of another kind."""

from pathlib import Path
from typing import get_args

import pytest
from click.testing import Result
from typer.testing import CliRunner

from conformance.cli.export import Format
from conformance.cli.main import app

RESULTS = Path(__file__).parents[3] / "browser" / "sample" / "results.jsonl"
CASE = "late-drops/window-still-open"


@pytest.mark.parametrize("format", get_args(Format))
def test_an_export_is_what_is_printed_and_replaces_an_earlier_one_and_nothing_else(format: str, tmp_path: Path) -> None:
    output, of = tmp_path / "new" / "exported", CASE if format in ("script", "streamtest") else str(RESULTS)

    def export(*options: str) -> Result:
        return CliRunner().invoke(app, ["case", "export", format, of, *options])

    first = export()
    assert (first.exit_code, first.stdout_bytes != b"") == (0, True)
    for _ in range(2):
        assert export("-o", str(output)).exit_code == 0
        assert output.read_bytes() == first.stdout_bytes
    output.write_text("mine", encoding="utf-8")
    assert export("-o", str(output)).exit_code == 2
    assert output.read_text(encoding="utf-8") == "mine"
