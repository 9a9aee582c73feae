"""Finds the ScalaTest tests in Scala source: the suite, name and text of each, with simple loops over names written out.

It reads text, not syntax trees. A test is a call of a method named like ``test…`` or ``assert…Plan`` whose first argument is a
string; Spark's suites keep to that. A name is written out for each value of a loop around it if the loop runs over a literal
``Seq(…)``, and for each test that a helper of the same file makes of it; what else varies stays a ``$placeholder``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

_DECLARES = re.compile(
    r"(?<![\w.$])((?:test|assertPass|assertFail|assertSupported|assertNotSupported|assertOutputModeNotSupported)\w*)\s*\("
)
_LITERAL = r's?"""(?:.|\n)*?"""|s"(?:\$\{[^}\n]*\}|[^"\\\n]|\\.)*"|"(?:[^"\\\n]|\\.)*"'
_STRING = re.compile(_LITERAL)
_STRING_OR_NAME = re.compile(_LITERAL + r"|\w+")
_NOT_CODE = re.compile(r"//[^\n]*|/\*(?:.|\n)*?\*/|" + _LITERAL + r"|'(?:[^'\\\n]|\\.)'")
_SUITE = re.compile(r"^(?:[\w@()\".]+\s+)*?(?:class|trait|object)\s+(\w+)", re.MULTILINE)
_HELPER = re.compile(r"\bdef\s+(\w+)\s*\(\s*(\w+)\s*:\s*String\b")
_SEQ = r"Seq(?:\[[^\]]*\])?(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))"
_FOREACH = re.compile(r"\b" + _SEQ + r"\s*\.foreach\s*\{\s*(?:case\s*)?(\([^)]*\)|\w+)\s*=>")
_FOR = re.compile(r"\bfor\s*\(\s*(\w+)\s*<-\s*" + _SEQ + r"\s*\)\s*\{")
_PLACEHOLDER = re.compile(r"\$(?:\{(\w+)([^}]*)\}|(\w+))")
_REPLACE = re.compile(r'\.replace\("([^"]*)",\s*"([^"]*)"\)')
_SPACE = re.compile(r"\s*")
_PACKAGE = re.compile(r"^package ([\w.]+)", re.MULTILINE)
_METHOD = re.compile(r"^( *)(?:[\w\[\]]+ )*def\s+(\w+)", re.MULTILINE)
_STARTS_QUERY = re.compile(r"\.writeStream\b|\b(testStream|start|toTable|runStreamingQuery)\(")


@dataclass(frozen=True)
class ScalaTest:
    suite: str
    """The class or trait that declares it."""
    name: str
    """The name that ScalaTest prints, where the file says it."""
    text: str
    package: str = ""
    starts_query: bool = False
    """Whether it starts a streaming query, itself or through methods of its file."""


@dataclass(frozen=True)
class _Loop:
    begin: int
    end: int
    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class _Helper:
    """A method that declares a test for a name it is given."""

    name: str
    parameter: str
    begin: int
    end: int


def scala_tests(source: str) -> Iterator[ScalaTest]:
    """The tests of one Scala file, in order."""
    code = _NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)
    suites = [(match.start(), match[1]) for match in _SUITE.finditer(code)]
    helpers = tuple(_helpers(code))
    package = next((match[1] for match in _PACKAGE.finditer(source)), "")
    starts_query = _starts_query(code)
    loops = tuple(_loops(source, code))
    made: dict[str, list[str]] = {}
    declared = []
    for call, name in _calls(source, code):
        helper = next((helper for helper in helpers if helper.begin < call.start() < helper.end), None)
        declared.append((call, name, helper))
        if helper is not None:
            made.setdefault(helper.name, []).extend(_templates(_written_out(name, _loops_around(call, loops)), helper))
    for call, name, helper in declared:
        if helper is not None and helper.parameter in _placeholders(name):
            continue
        suite = next((suite for at, suite in reversed(suites) if at < call.start()), "")
        end = _end_of_call(code, call.end(1))
        text, starts = source[call.start() : end], bool(starts_query.search(code, call.start(), end))
        for written in dict.fromkeys(_written_out(name, _loops_around(call, loops))):
            for template in made.get(call[1]) or ["{}"]:
                yield ScalaTest(suite, template.replace("{}", written), text, package, starts)


def _starts_query(code: str) -> re.Pattern[str]:
    """What source contains that starts a streaming query: methods of Spark, and methods of this file that call one of these."""
    methods = list(_METHOD.finditer(code))
    ends = [re.compile(rf"\n {{0,{len(method[1])}}}[^\s)}}]").search(code, method.end()) for method in methods]
    texts = [
        (method[2], code[method.end() : end.start() if end else len(code)])
        for method, end in zip(methods, ends, strict=True)
    ]
    starts, known = _STARTS_QUERY, 0
    while len(names := {name for name, text in texts if starts.search(text)}) > known:
        known = len(names)
        starts = re.compile("|".join((_STARTS_QUERY.pattern, *(rf"\b{name}\(" for name in sorted(names)))))
    return starts


def _calls(source: str, code: str) -> Iterator[tuple[re.Match[str], str]]:
    """Each call of a method that declares a test, and the name it gives; a path is no name."""
    for call in _DECLARES.finditer(code):
        if re.search(r"\bdef\s+$", code[max(0, call.start() - 40) : call.start()]):
            continue
        name, after = _name(source, _skip_space(source, call.end()))
        if name.strip("/") == name != "" and source[after : after + 1] in (",", ")"):
            yield call, name


def _name(source: str, at: int) -> tuple[str, int]:
    """A string, or several joined by ``+``, and where what follows it begins."""
    parts: list[str] = []
    while match := (_STRING if not parts else _STRING_OR_NAME).match(source, at):
        parts.append(_unquoted(match[0]) if match[0].endswith('"') else f"${match[0]}")
        at = _skip_space(source, match.end())
        if source[at : at + 1] != "+":
            break
        at = _skip_space(source, at + 1)
    return " ".join(re.sub(r"\\(.)", r"\1", "".join(parts)).split()), at


def _unquoted(literal: str) -> str:
    quotes = 3 if '"""' in literal else 1
    return literal.removeprefix("s")[quotes:-quotes]


def _skip_space(source: str, at: int) -> int:
    space = _SPACE.match(source, at)
    return space.end() if space else at


def _end_of_call(code: str, opening: int, brackets: str = "({") -> int:
    """Behind the argument lists and the block that follow the name of a method."""
    at = opening
    while (following := _skip_space(code, at)) < len(code) and code[following] in brackets:
        at = _closing(code, following) + 1
    return at


def _closing(code: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(code)):
        depth += (code[at] in "({[") - (code[at] in ")}]")
        if depth == 0:
            return at
    return len(code)


def _helpers(code: str) -> Iterator[_Helper]:
    for match in _HELPER.finditer(code):
        body = code.find("{", _end_of_call(code, match.end(1), "("))
        if body >= 0:
            yield _Helper(match[1], match[2], body, _closing(code, body))


def _templates(names: Iterator[str], helper: _Helper) -> Iterator[str]:
    """What the helper makes of a name ``{}``, where nothing else in it varies."""
    for name in names:
        if _placeholders(name) == {helper.parameter}:
            yield _PLACEHOLDER.sub("{}", name)


def _placeholders(name: str) -> set[str]:
    return {match[1] or match[3] for match in _PLACEHOLDER.finditer(name)}


def _loops(source: str, code: str) -> Iterator[_Loop]:
    foreach = [(match, match[2], match[1]) for match in _FOREACH.finditer(source)]
    fors = [(match, match[1], match[2]) for match in _FOR.finditer(source)]
    for match, names, values in (*foreach, *fors):
        opening = code.rfind("{", match.start(), match.end())
        if opening >= 0:
            listed = tuple(map(_parts, _parts(values)))
            yield _Loop(opening, _closing(code, opening), tuple(name.split(":")[0] for name in _parts(names)), listed)


def _loops_around(call: re.Match[str], loops: Sequence[_Loop]) -> list[_Loop]:
    return [loop for loop in loops if loop.begin < call.start() < loop.end]


def _parts(text: str) -> tuple[str, ...]:
    """What a literal ``(a, b)`` lists; of text without parentheses, the text."""
    text = text.strip()
    if not text.startswith("("):
        return (text.strip('"'),)
    parts, depth, begin = [], 0, 1
    for at, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if (letter == "," and depth == 1) or (letter == ")" and depth == 0):
            parts.append(text[begin:at].strip())
            begin = at + 1
    return tuple(part.strip('"') for part in parts if part)


def _written_out(name: str, loops: Sequence[_Loop]) -> Iterator[str]:
    around = [loop for loop in loops if _placeholders(name) & set(loop.names)]
    for chosen in product(*(loop.values for loop in around)):
        pairs = zip(around, chosen, strict=True)
        known = {key: value for loop, values in pairs for key, value in zip(loop.names, values, strict=False)}
        yield _PLACEHOLDER.sub(lambda match: _value(match, known), name)  # noqa: B023


def _value(match: re.Match[str], known: Mapping[str, str]) -> str:
    value = known.get(match[1] or match[3])
    if value is None:
        return match[0]
    for old, new in _REPLACE.findall(match[2] or ""):
        value = value.replace(old, new)
    return value
