"""The list of what the model does not predict is complete, and says what each construct is."""

import re
from pathlib import Path

import pytest

from conformance.model.source_text import VARIES, constructs_in, unpredicted

ROOT = Path(__file__).parents[4]


def test_each_place_that_raises_is_in_the_list():
    listed = unpredicted()
    assert len(listed) > 100
    names = {name: {one.name for one in listed if one.module == name} for name in {one.module for one in listed}}
    for path in sorted((ROOT / "conformance").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if re.search(r"raise Unpredictable\(", text):
            found = names[path.relative_to(ROOT).as_posix()]
            assert found == {*constructs_in(text)}
            assert {*re.findall(r'raise Unpredictable\(\s*"([^"\\]*)"', text)} <= found


def test_a_placeholder_stands_for_what_depends_on_the_query():
    source = 'raise Unpredictable("a gap")\nraise Unpredictable(f"{kind} of {a + b} kinds")\nraise Refused("no")'
    assert [*constructs_in(source)] == ["a gap", f"{VARIES} of {VARIES} kinds"]


@pytest.mark.parametrize("argument", ["name", 'f"{name}"', 'f"{name} {other}"'])
def test_a_construct_without_words_is_an_error(argument):
    with pytest.raises(ValueError, match=r"line 2: .* names no construct"):
        [*constructs_in(f"name = other = 1\nraise Unpredictable({argument})")]
