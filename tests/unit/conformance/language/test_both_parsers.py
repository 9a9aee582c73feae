"""PyYAML has two parsers, and a machine without libyaml has only the slow one: every file of the suite means the same to both."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.effort import sample

ROOT = Path(__file__).parents[4]
FILES = sorted(
    path for folder in ("cases", "conformance", "harness", "reports") for path in (ROOT / folder).rglob("*.yaml")
)
ONLY_LIBYAML = "{message: (?i)no such column}\n"
"""Both follow YAML 1.1 differently here: a plain scalar with `?` within braces."""
MEANING = ("value", "implicit", "tag", "anchor")
"""Attributes of an event."""


def events(text: str, parser: Any) -> list[tuple[str, object, object]]:
    found = yaml.parse(text, Loader=parser)
    return [(type(one).__name__, *(getattr(one, name, None) for name in MEANING)) for one in found]


def same_to_both(text: str) -> bool:
    try:
        return events(text, yaml.CSafeLoader) == events(text, yaml.SafeLoader)
    except yaml.YAMLError:
        return False


@pytest.mark.skipif(not hasattr(yaml, "CSafeLoader"), reason="PyYAML was built without libyaml, so there is one parser")
def test_every_file_means_the_same_to_both_parsers() -> None:
    asked = {*sample(FILES, 150), *(path for path in FILES if not path.is_relative_to(ROOT / "cases"))}
    different = [str(path.relative_to(ROOT)) for path in asked if not same_to_both(path.read_text(encoding="utf-8"))]
    assert len(FILES) > 500
    assert not different, f"quote the scalar that only one parser takes, in {', '.join(different)}"


@pytest.mark.skipif(not hasattr(yaml, "CSafeLoader"), reason="PyYAML was built without libyaml, so there is one parser")
def test_a_file_that_only_one_parser_takes_is_found() -> None:
    assert not same_to_both(ONLY_LIBYAML)
    assert same_to_both('{message: "(?i)no such column"}\n')
