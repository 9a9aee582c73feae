"""The playground: what the reference model says about a trace that a reader writes, and what its page is made of."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from conformance.core.versions import releases
from tools.playground.build import LINK, PLACE, RUNTIME, NotBuilt, _write_app, build, main
from tools.playground.trace import STARTS_WITH, drawn, first


def answer(**changes: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(drawn(json.dumps({**STARTS_WITH, **changes})))
    return found


def late(found: dict[str, Any]) -> int:
    return int(found["picture"].count('class="t-row f-late"') + found["picture"].count('class="t-row f-model-late"'))


class TestTrace:
    def test_at_first_a_row_is_late_and_a_window_closes(self) -> None:
        found = answer()
        assert found["problem"] is None
        # One in the picture, one in its legend.
        assert late(found) == 2
        assert "    ✗ late: window 12:00–12:10: 12:10 ≤ watermark 12:15" in found["told"]
        assert any("closed: window 12:00–12:10" in line for line in found["told"])

    def test_a_longer_delay_keeps_the_row(self) -> None:
        assert late(answer(delay="30 minutes")) == 0

    def test_the_output_mode_and_the_version_count(self) -> None:
        assert any(line.strip() == "← emits [12:00, 12:10, 1]" for line in answer(mode="update")["told"][:8])
        assert answer(mode="complete")["problem"] is None
        # Before 3.1 no metric counts late rows.
        assert "Spark 3.0.3" in answer(version="3.0.3")["picture"]

    def test_several_rows_of_a_micro_batch_with_their_numbers(self) -> None:
        assert any("[12:05, 1] [12:07, 3]" in line for line in answer(rows="12:05, 12:07 3")["told"])

    def test_a_line_without_rows_is_a_micro_batch_too(self) -> None:
        assert sum(line.startswith("step ") for line in answer(rows="12:05\n\n12:25")["told"]) == 3

    @pytest.mark.parametrize(
        ("key", "text", "problem"),
        [
            ("delay", "soon", "unknown unit 'soon'"),
            ("window", "1' x", "is no duration such as 10 minutes"),
            ("mode", "other", "other is no output mode: append, update, complete"),
            ("version", "9.9.9", "there is no Spark 9.9.9"),
            ("version", "new", "is not a Spark version"),
            ("rows", "", "must not be empty"),
            ("rows", "12:05\n12:0x", "is not an instant"),
            ("rows", "12:05 a", "line 1: '12:05 a' is no row"),
            ("rows", "12:05," * 300, "at most 200 rows"),
            ("rows", "12:05 --5", "line 1: '12:05 --5' is no row"),
            ("rows", "12:05 " + "9" * 5_000, "is no row"),
            ("rows", "12:05 " * 100_000, "at most 10,000 characters"),
            ("delay", "1 minute " * 50_000, "at most 10,000 characters"),
            ("version", "9" * 5_000, "is not a Spark version"),
        ],
    )
    def test_a_mistake_is_told_in_a_sentence(self, key: str, text: str, problem: str) -> None:
        found = answer(**{key: text})
        assert problem in found["problem"]
        assert found["picture"] == ""

    def test_a_link_that_somebody_sent_writes_no_html(self) -> None:
        found = answer(rows="<img src=x onerror=alert(1)>")
        assert found["picture"] == ""
        assert found["problem"] is not None

    def test_the_page_offers_every_release_newest_first(self) -> None:
        told = json.loads(first())
        assert told["versions"] == [str(one) for one in reversed(releases())]
        assert told["starts_with"] == STARTS_WITH


class TestBuild:
    def test_the_model_is_there_and_nothing_that_only_this_machine_runs(self, tmp_path: Path) -> None:
        _write_app(tmp_path / "app.zip", ())
        names = zipfile.ZipFile(tmp_path / "app.zip").namelist()
        for name in ("conformance/oracle/prediction.py", "conformance/model/rules.yaml", "tools/playground/trace.py"):
            assert name in names
        assert "reports/html/templates/timeline.html" in names
        assert not [name for name in names if name.endswith((".so", ".pyc", ".xz")) or "__pycache__" in name]
        before = (tmp_path / "app.zip").read_bytes()
        _write_app(tmp_path / "app.zip", ())
        assert (tmp_path / "app.zip").read_bytes() == before

    def test_it_needs_a_report(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(NotBuilt, match="is no report: run conformance report -o"):
            build(tmp_path)
        for arguments in ([], [str(tmp_path)]):
            with pytest.raises(SystemExit) as stopped:
                main(arguments)
            assert stopped.value.code not in (0, None)

    def test_the_report_has_a_place_for_the_link(self) -> None:
        template = Path(__file__).parents[3] / "reports" / "html" / "templates" / "understand.html"
        assert template.read_text().count(PLACE) == 1
        assert PLACE not in LINK
        assert "pyodide.asm.wasm" in RUNTIME
