"""Text of strangers on a terminal and in a log: seen, never obeyed."""

import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.core.wording import printable, printable_json, without_commands

HOSTILE = "\x1b]8;;http://x\x07\x9b31m\u202eevil\u2066\u2028\ufeff\ud800\U000e0041\x7f"


def test_what_acts_is_written_as_its_number() -> None:
    assert printable("a\x1b[31m\u202eb\x9b\U000e0041\ud800") == r"a\x1b[31m\u202eb\x9b\U000e0041\ud800"
    assert printable("a\nb\tc\r") == r"a\nb\tc\r"
    assert printable("a\nb\r", keep="\n") == "a\nb\\r"


def test_what_is_seen_stays() -> None:
    assert printable("größer ● 日本 🙂\u00a0→") == "größer ● 日本 🙂\u00a0→"


@given(st.text())
def test_nothing_that_acts_is_left(text: str) -> None:
    shown = printable(text + HOSTILE)
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    shown.encode()


@given(st.text())
def test_json_means_the_same(text: str) -> None:
    document = json.dumps({text: text + HOSTILE}, ensure_ascii=False, indent=1)
    shown = printable_json(document)
    assert json.loads(shown) == json.loads(document)
    assert printable(shown, keep="\n") == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::a", r"\::error::a"),
        ("a\n  ::set-output name=x::1", "a\n\\  ::set-output name=x::1"),
        ("a\r::stop-commands::x", "a\r\\::stop-commands::x"),
        ("a\n\n\u3000::b", "a\n\n\\\u3000::b"),
        ("a ::error:: b", "a ::error:: b"),
        ("a ##[error]b", r"a #\#[error]b"),
        ("std::string", "std::string"),
    ],
)
def test_no_line_is_a_workflow_command(text: str, shown: str) -> None:
    assert without_commands(text) == shown


@given(st.text(alphabet=":#[ \n\r\tx"))
def test_no_line_is_a_workflow_command_ever(text: str) -> None:
    assert not [
        line for line in re.split(r"[\r\n]", without_commands(text)) if line.strip().startswith("::") or "##[" in line
    ]
