"""What the gate reads and writes: the version that is asked for, and drafts of acceptances."""

from dataclasses import replace
from pathlib import Path

import pytest

from reports.results.published import NoSuchVersion, find
from reports.results.reading import Results
from tests.support import cells as a
from tests.unit.reports.analysis.test_gate import ANSWERS, PAIR, gate


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    a.results(tmp_path / "results.jsonl", ANSWERS)


def test_a_version_that_several_targets_have(tmp_path) -> None:
    found = Results.read(tmp_path / "results.jsonl")
    builds = tuple(target.model_copy(update={"spark": "4.4.0"}) for target in found.header.targets)
    found = replace(found, header=found.header.model_copy(update={"targets": builds}))
    with pytest.raises(
        NoSuchVersion, match=r"^4\.4\.0 is ambiguous: spark-3\.5\.9 or spark-4\.3\.0; available: 4\.4\.0, "
    ):
        find(found, "4.4.0")


def test_a_draft_replaces_a_draft_and_no_reason_that_somebody_wrote(capsys) -> None:
    assert [gate(capsys, *PAIR, "--draft", "accepted.yaml")[0] for _ in range(2)] == [1, 1]
    written = Path("accepted.yaml").read_text().replace("because:", "because: looked at", 1)
    for text in (written, "\n".join(written.splitlines()[1:])):
        Path("accepted.yaml").write_text(text)
        assert gate(capsys, *PAIR, "--draft", "accepted.yaml")[0] == 2
        assert Path("accepted.yaml").read_text() == text
