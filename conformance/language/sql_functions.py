"""The functions of Spark SQL by name, from ``sql_functions.yaml``: those that a case may call, and those that need permission."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from conformance.core.data import read_data
from conformance.language.sql_tokens import Token, words

CALLING_WORDS = words(
    "all as between by cross delay distinct else end escape except filter from group having inner intersect interval is join lateral "
    "limit minus of offset on order outer over partition select sets then union using values where within xor "
    "dec numeric float real double decimal varchar character char string binary"
)
"""Words of the grammar, and types, that may stand before ``(``; none of them calls anything."""


@dataclass(frozen=True)
class Functions:
    allowed: frozenset[str]
    needs_code: Mapping[str, str]
    """Function → why a case may call it only with ``--allow-code``."""

    @property
    def known(self) -> frozenset[str]:
        return self.allowed | frozenset(self.needs_code)


@cache
def functions() -> Functions:
    written: dict[str, Any] = read_data("conformance.language", "sql_functions.yaml")
    return Functions(frozenset(written["allowed"]), written["needs_code"])


def calls(tokens: tuple[Token, ...]) -> Iterator[int]:
    """The indices of the names that are called: words and quoted names before ``(`` that are neither grammar nor an alias."""
    for index, token in enumerate(tokens[:-1]):
        if not token.name or not tokens[index + 1].is_mark("(") or token.keyword in CALLING_WORDS:
            continue
        if index == 0 or tokens[index - 1].keyword != "as" or not _names_only(tokens, index + 2):
            yield index


def _names_only(tokens: tuple[Token, ...], index: int) -> bool:
    """Whether only names and numbers stand before the next ``)``: the columns of an alias, or the arguments of a type."""
    while tokens[index].name or tokens[index].kind == "number" or tokens[index].is_mark(","):
        index += 1
    return tokens[index].is_mark(")")
