"""State schema files: the three formats, long schemas in pieces, and what is not one."""

import struct
from pathlib import PurePosixPath

import pytest

from conformance.checkpoints.files import DamagedCheckpoint
from conformance.checkpoints.state import StateField, parse_state_schema
from tests.support.checkpoints import schema, schema_v2, utf

PATH = PurePosixPath("state/0/0/_metadata/schema")
KEY = schema(("id", "string", False))
VALUE = schema(
    ("window", {"type": "struct", "fields": [{"name": "end", "type": "timestamp", "nullable": True}]}, False)
)
WINDOW = (StateField("window", "struct", False, (0,)), StateField("window.end", "timestamp", True, (0, 0)))


def test_format_1_has_no_pieces() -> None:
    (read,) = parse_state_schema(PATH, utf("v1") + utf(KEY) + utf(VALUE))
    assert (read.format, read.key, read.value) == (1, (StateField("id", "string", False, (0,)),), WINDOW)


def test_format_2_has_schemas_in_pieces() -> None:
    pieces = struct.pack(">i", 2) + utf(KEY[:10]) + utf(KEY[10:])
    (read,) = parse_state_schema(PATH, utf("v2") + pieces + struct.pack(">i", 1) + utf(VALUE))
    assert (read.format, read.key, read.value) == (2, (StateField("id", "string", False, (0,)),), WINDOW)


@pytest.mark.parametrize("ids", [b"", struct.pack(">h", 0), struct.pack(">h", 1)])
def test_format_3_has_a_schema_for_each_column_family_in_newer_releases_after_its_id(ids: bytes) -> None:
    def piece(text: str) -> bytes:
        return struct.pack(">i", 1) + utf(text)

    family = (
        ids
        + piece(KEY)
        + ids
        + piece(VALUE)
        + piece('{"keyStateEncoderType":"NoPrefixKeyStateEncoderSpec"}')
        + piece("{    }")
    )
    content = utf("v3") + struct.pack(">i", 2) + utf("count") + family + utf("$procTimers") + family
    assert [(read.format, read.family, read.value) for read in parse_state_schema(PATH, content)] == [
        (3, "count", WINDOW),
        (3, "$procTimers", WINDOW),
    ]


def test_text_is_modified_utf_8() -> None:
    """A character beyond U+FFFF is a pair of three bytes: java.io.DataInput."""
    modified = schema(("aMARK", "string", True)).encode().replace(b"MARK", b"\xed\xa0\xb4\xed\xb4\x9e")
    content = utf("v1") + struct.pack(">H", len(modified)) + modified + utf(VALUE)
    assert parse_state_schema(PATH, content)[0].key[0].name == "a𝄞"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00",
        utf("v2"),
        utf("v2") + struct.pack(">i", -1),
        utf("v2") + struct.pack(">i", 2**31 - 1),
        utf("v1") + utf("{}") + utf("{}"),
        utf("v1") + utf("[" * 20000) + utf("{}"),
        utf("v1") + struct.pack(">H", 500) + b"{",
        schema_v2(KEY, VALUE)[:-5],
    ],
)
def test_the_error_names_a_file_that_is_not_a_schema(content: bytes) -> None:
    with pytest.raises(
        DamagedCheckpoint, match=r"state/0/0/_metadata/schema: this is not a state schema, or it is incomplete"
    ):
        parse_state_schema(PATH, content)


def test_the_error_names_a_newer_format() -> None:
    with pytest.raises(DamagedCheckpoint, match="the format of this state schema is 'v4'; known are v1 to v3"):
        parse_state_schema(PATH, utf("v4"))
