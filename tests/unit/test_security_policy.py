"""The threats in SECURITY.md, and the tests that they name."""

from __future__ import annotations

import re
from pathlib import Path

UNIT = Path(__file__).parent
POLICY = (UNIT.parents[1] / ".github" / "SECURITY.md").read_text(encoding="utf-8")


def test_every_threat_names_a_test_that_exists() -> None:
    rows = [
        row.strip("|").split(" | ") for row in POLICY.partition("## Threats")[2].splitlines() if row.startswith("| ")
    ]
    head, *threats = rows
    assert [cell.strip() for cell in head] == ["input", "what an attacker wants", "what stops it", "test"]
    assert len(threats) >= 16
    for row in threats:
        assert len(row) == 4, row
        found = re.fullmatch(r"`([a-z_/]+\.py)::(test_\w+)`", row[3].strip())
        assert found is not None, row
        assert re.search(rf"^ *def {found[2]}\(", (UNIT / found[1]).read_text(encoding="utf-8"), re.MULTILINE), row
