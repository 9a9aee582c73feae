"""Reads cases: from a file, which holds a Spark case, a policy case or several cases (``matrix``), or from a mapping.

``matrix`` has the parameters of a file with several cases, of which each combination makes a document. ``$(how)`` stands for the value of a
parameter, ``$(join.kept)`` for a key of the value; ``$$(`` is a literal ``$(``. Text that consists of a placeholder becomes the value, of
any type; within longer text the value is inserted as text. A mapping entry or list item that consists of a placeholder is removed if the
value lacks the key.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count, product
from math import prod
from pathlib import Path
from typing import TypeAlias

from conformance.core.case import Case
from conformance.core.data import Json
from conformance.core.wording import unknown
from conformance.language import source as nodes
from conformance.language.case_file import case_of
from conformance.language.catalogue import Catalogue
from conformance.language.policy_file import is_policy_case, policy_case_of
from conformance.language.shape import CONF_VALUE, literal
from conformance.language.source import Entries, Node, ProblemReport, Scalar, entries_of, items_of, node_of, read_yaml
from conformance.language.streams import with_rows
from conformance.policies.case import PolicyCase


def read_any(path: Path, id: str, catalogue: Catalogue | None = None) -> tuple[Case | PolicyCase, ...]:
    """Read all cases in a YAML file, of either kind: one, or one per combination of its ``matrix``, with ids such as ``id.left-outer``.

    Nothing in it is executed. Raises `InvalidCase` with every problem. ``id``: the path of the file under the root of the suite without the
    suffix; ``catalogue``: that of the suite, whose rules the case must then follow; None outside a suite."""
    report = ProblemReport(path)
    node = read_yaml(path, report)
    if node is not None and is_policy_case(node):
        return (policy_case_of(node, report, id, catalogue),)
    if isinstance(node, Entries) and node.get(KEY) is not None:
        return _of_matrix(node, report, id, catalogue)
    return (case_of(node and with_rows(node, report), report, id, catalogue),)


def read_case(path: Path, id: str, catalogue: Catalogue | None = None) -> Case:
    """Read the only Spark case in a file, as ``read_any``."""
    report = ProblemReport(path)
    node = read_yaml(path, report)
    return case_of(node and with_rows(node, report), report, id, catalogue)


def case_from(written: Mapping[str, Json], id: str, *, steps_as_lines: bool = False) -> Case:
    """Return the Spark case that a mapping, structured like the YAML, describes; raise `InvalidCase` with every problem.

    All line numbers are 0; with ``steps_as_lines``, everything in a step has the number of the step, so that a problem says where it is.
    """
    node = node_of(written, nodes.SourceLocation(0, 0))
    if steps_as_lines:
        numbers = count(1)
        node = nodes.changed(
            node, ("steps", "*"), lambda step: node_of(step.plain(), nodes.SourceLocation(next(numbers), 0))
        )
    return case_of(node, ProblemReport(Path(f"{id}.yaml")), id, None)


def _of_matrix(node: Entries, report: ProblemReport, id: str, catalogue: Catalogue | None) -> tuple[Case, ...]:
    documents = expansions(node, report)
    if report.problems:
        raise nodes.InvalidCase(report.problems)
    cases: list[Case] = []
    wrong: dict[nodes.Problem, list[str]] = {}
    for name, document in documents.items():
        report = ProblemReport(report.path)
        try:
            case = case_of(with_rows(document, report), report, f"{id}.{name}", catalogue)
            cases.append(case.model_copy(update={"expansion": name}))
        except nodes.InvalidCase as invalid:
            for problem in invalid.problems:
                wrong.setdefault(problem, []).append(name)
    if wrong:
        # A problem of only some of the cases names them.
        where = [f" (in {', '.join(names)})" if len(names) < len(documents) else "" for names in wrong.values()]
        named = zip(wrong, where, strict=True)
        raise nodes.InvalidCase(replace(problem, message=problem.message + names) for problem, names in named)
    return tuple(cases)


KEY = "matrix"
EXCEPT = "except"
_PARAMETER = r"[A-Za-z_][A-Za-z0-9_]*"
_VALUE_NAME = r"[a-z0-9]+(-[a-z0-9]+)*"
MAX_CASES = 100
MAX_COMBINATIONS = 10_000
"""The most combinations, with those that ``except`` excludes."""


@dataclass(frozen=True, eq=False)
class ParameterValue:
    name: str
    """Its name in ids: ``left-outer``."""
    place: nodes.SourceLocation
    node: Node | None
    """What ``$(parameter)`` stands for; None if the value has keys, since it then stands for the name."""
    keys: Mapping[str, Node] = field(default_factory=dict)
    """What ``$(parameter.key)`` stands for."""


@dataclass(frozen=True, eq=False)
class Parameter:
    name: str
    place: nodes.SourceLocation
    values: tuple[ParameterValue, ...]

    @property
    def keys(self) -> Mapping[str, nodes.SourceLocation]:
        """Every key of any of its values, with its first position."""
        first: dict[str, nodes.SourceLocation] = {}
        for value in self.values:
            for key, node in value.keys.items():
                first.setdefault(key, node)
        return first


Combination: TypeAlias = Mapping[str, ParameterValue]
"""A value for each parameter."""


_VALUES = [
    {"type": "array", "items": {"type": ["string", "number", "boolean"]}, "minItems": 1},
    {"type": "object", "propertyNames": {"pattern": f"^{_VALUE_NAME}$"}, "minProperties": 1},
]
SCHEMA: Json = {
    "type": "object",
    "minProperties": 1,
    "properties": {
        EXCEPT: {
            "description": "Excluded combinations.",
            "type": "array",
            "items": {"type": "object", "minProperties": 1},
            "minItems": 1,
        }
    },
    "propertyNames": {"pattern": f"^{_PARAMETER}$"},
    "additionalProperties": {"anyOf": _VALUES},
    "description": "Parameters and their values: the file is one case per combination, in which $(parameter) stands for its value.",
}


def _read(node: Node, report: ProblemReport) -> tuple[tuple[Parameter, ...], list[Combination]] | None:
    """Return the parameters and their combinations; None after a problem, which is then in the report."""
    before = len(report.problems)
    if not isinstance(node, Entries):
        expected = "a mapping from parameter to its values (a list, or a mapping by name)"
        report.add(node, f"{literal(node)} is not {expected}")
        return None
    entries = (entry for entry in node.entries if entry.key.value != EXCEPT)
    parameters = tuple(_parameter(entry.key, entry.value, report) for entry in entries)
    if not parameters:
        report.add(node, "`matrix` needs at least one parameter")
    excluded = _excluded(node.get(EXCEPT), parameters, report)
    if len(report.problems) > before:
        return None
    # Counted before they are made: twelve parameters with ten values each would fill the memory.
    combinations = prod(len(parameter.values) for parameter in parameters)
    if combinations > MAX_COMBINATIONS:
        report.add(node, f"the matrix has {combinations:,} combinations, but at most {MAX_COMBINATIONS:,} are allowed")
        return None
    names = [parameter.name for parameter in parameters]
    kept: list[Combination] = []
    for values in product(*(parameter.values for parameter in parameters)):
        named = dict(zip(names, (value.name for value in values), strict=True))
        if not any(entry.items() <= named.items() for entry in excluded):
            kept.append(dict(zip(names, values, strict=True)))
    if not kept:
        report.add(node.key(EXCEPT), "`except` excludes every combination")
    if len(kept) > MAX_CASES:
        report.add(node, f"the matrix makes {len(kept)} cases, but at most {MAX_CASES} are allowed")
    return (parameters, kept) if len(report.problems) == before else None


def name_of(combination: Combination) -> str:
    """Return the suffix that a combination adds to the id of the file: ``left-outer.ntz``."""
    return ".".join(value.name for value in combination.values())


def _parameter(key: Scalar, node: Node, report: ProblemReport) -> Parameter:
    if not isinstance(key.value, str) or not re.fullmatch(_PARAMETER, key.value):
        report.add(key, f"{literal(key)} is not a parameter name: use letters, digits and _, not starting with a digit")
    values: tuple[ParameterValue, ...] = ()
    if isinstance(node, nodes.Items):
        values = tuple(_listed(item, report) for item in node.items)
    elif isinstance(node, Entries):
        values = tuple(_named(entry.key, entry.value, report) for entry in node.entries)
    else:
        report.add(node, f"{literal(node)} is not a list of values, or a mapping from name to value")
    if isinstance(node, nodes.Items | Entries) and not values:
        report.add(node, "must not be empty: a parameter needs at least one value")
    named: dict[str, ParameterValue] = {}
    for value in values:
        if value.name in named and value.name:
            line = named[value.name].place.line
            report.add(value.place, f"duplicate value name {value.name!r}, first used in line {line}")
        named[value.name] = value
    return Parameter(str(key.value), key, values)


def _listed(item: Node, report: ProblemReport) -> ParameterValue:
    if not isinstance(item, Scalar) or item.value is None:
        report.add(item, f"{literal(item)} cannot be used in an id: write a mapping from name to value")
        return ParameterValue("", item, item)
    # leftOuter becomes left-outer, TIMESTAMP_NTZ timestamp-ntz.
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", str(item.value))
    name = re.sub(r"[^a-z0-9]+", "-", apart.lower()).strip("-")
    if not name:
        report.add(item, f"{literal(item)} has no letter or digit to use in an id: write a mapping from name to value")
    return ParameterValue(name, item, item)


def _named(key: Scalar, node: Node, report: ProblemReport) -> ParameterValue:
    name = str(key.value).lower() if not isinstance(key.value, str) else key.value
    if not re.fullmatch(_VALUE_NAME, name):
        report.add(key, f"{literal(key)} cannot be part of an id: use lower-case letters and digits, separated by -")
    if not isinstance(node, Entries):
        return ParameterValue(name, key, node)
    for entry in node.entries:
        if not re.fullmatch(_PARAMETER, str(entry.key.value)):
            report.add(entry.key, f"{literal(entry.key)} is not a valid key: use letters, digits and _")
    return ParameterValue(name, key, None, {str(entry.key.value): entry.value for entry in node.entries})


def _excluded(node: Node | None, parameters: tuple[Parameter, ...], report: ProblemReport) -> list[dict[str, str]]:
    """Return for each entry of ``except``: parameter → name of the excluded value."""
    if node is not None and not items_of(node):
        report.add(node, "`except` must be a list of combinations, each a mapping from parameter to value name")
    known = {parameter.name: [value.name for value in parameter.values] for parameter in parameters}
    excluded: list[dict[str, str]] = []
    for item in items_of(node):
        excluded.append({})
        if not any(entries_of(item)):
            report.add(item, f"{literal(item)} is not a combination: a mapping from parameter to value name")
        for entry in entries_of(item):
            parameter, name = str(entry.key.value), str(entry.value.plain())
            if parameter not in known:
                report.add(entry.key, unknown("parameter", parameter, known))
            elif name not in known[parameter]:
                report.add(entry.value, unknown("value", name, known[parameter], where=f" of {parameter}"))
            else:
                excluded[-1][parameter] = name
    return excluded


_PLACEHOLDER = re.compile(rf"\$(?P<literal>\$\()|\$\((?P<parameter>{_PARAMETER})(?:\.(?P<key>{_PARAMETER}))?\)|\$\(")


def expansions(node: Entries, report: ProblemReport) -> dict[str, Node]:
    """Return the documents of a document with a ``matrix``, by the names of their combinations; none after a problem."""
    matrix = node.get(KEY)
    assert matrix is not None
    body = Entries(node.line, node.column, tuple(entry for entry in node.entries if entry.key.value != KEY))
    parts = _read(matrix, report)
    for scalar in _scalars(matrix):
        for at in _placeholders(scalar):  # a value is inserted unchanged, so nobody would replace it
            report.add(scalar.at(at.start()), f"{at[0]}… in a value of the matrix: values cannot contain placeholders")
    if parts is None or report.problems:
        return {}
    parameters, combinations = parts
    _check_use(body, parameters, report)
    if report.problems:
        return {}
    documents = {name_of(values): _Replacement(values, report).replaced(body) or body for values in combinations}
    return {} if report.problems else documents


def _check_use(body: Node, parameters: tuple[Parameter, ...], report: ProblemReport) -> None:
    """Report placeholders that name no parameter, and parameters and keys that are not used."""
    known = {parameter.name: parameter for parameter in parameters}
    used: set[str] = set()
    for scalar in _scalars(body):
        for placeholder in _placeholders(scalar):
            place = scalar.at(placeholder.start())
            parameter = known.get(placeholder["parameter"] or "")
            if placeholder["parameter"] is None:
                advice = "write `$$(` for a literal `$(`"
                report.add(place, f"`$(` must be part of $(parameter) or $(parameter.key); {advice}")
            elif parameter is None:
                report.add(place, unknown("placeholder", placeholder["parameter"], known))
            elif placeholder["key"] is not None and placeholder["key"] not in parameter.keys:
                report.add(place, unknown("key", placeholder["key"], parameter.keys, where=f" of {parameter.name}"))
            else:
                used.add(placeholder[0][2:-1])
    for parameter in parameters:
        keys = parameter.keys
        if not keys and parameter.name not in used:
            report.add(parameter.place, f"unused parameter: the case does not contain $({parameter.name})")
        for key, place in keys.items():
            if f"{parameter.name}.{key}" not in used:
                report.add(place, f"unused key: the case does not contain $({parameter.name}.{key})")


def _scalars(node: Node) -> Iterator[Scalar]:
    if isinstance(node, Entries):
        for entry in node.entries:
            yield entry.key
            yield from _scalars(entry.value)
    elif isinstance(node, nodes.Items):
        for item in node.items:
            yield from _scalars(item)
    else:
        yield node


def _placeholders(scalar: Scalar) -> Iterator[re.Match[str]]:
    if isinstance(scalar.value, str) and "$(" in scalar.value:
        yield from (match for match in _PLACEHOLDER.finditer(scalar.value) if match["literal"] is None)


@dataclass(frozen=True)
class _Replacement:
    combination: Combination
    report: ProblemReport

    def replaced(self, node: Node) -> Node | None:
        """Return the node with placeholders replaced; None if it is removed."""
        if isinstance(node, nodes.Items):
            items = (self.replaced(item) for item in node.items)
            return nodes.Items(node.line, node.column, tuple(item for item in items if item is not None))
        if isinstance(node, Scalar):
            return self._scalar(node)
        entries: dict[object, nodes.Entry] = {}
        for entry in node.entries:
            key, value = self._scalar(entry.key), self.replaced(entry.value)
            if key is None or value is None:
                continue
            if not isinstance(key, Scalar):
                self.report.add(entry.key, f"{literal(key)} cannot be a key")
            elif key.value in entries:
                line = entries[key.value].key.line
                where = f"in {name_of(self.combination)}, first used in line {line}"
                self.report.add(entry.key, f"duplicate key {key.value!r} {where}")
            else:
                entries[key.value] = nodes.Entry(key, value)
        return Entries(node.line, node.column, tuple(entries.values()))

    def _scalar(self, node: Scalar) -> Node | None:
        if not isinstance(node.value, str) or "$(" not in node.value:
            return node
        whole = _PLACEHOLDER.fullmatch(node.value)
        if whole is not None and whole["parameter"] is not None:
            return self._value(whole)
        return Scalar(node.line, node.column, _PLACEHOLDER.sub(lambda match: self._text(match, node), node.value), None)

    def _value(self, match: re.Match[str]) -> Node | None:
        value = self.combination[match["parameter"]]
        if match["key"] is not None:
            return value.keys.get(match["key"])
        return value.node or Scalar(value.place.line, value.place.column, value.name)

    def _text(self, match: re.Match[str], node: Scalar) -> str:
        if match["literal"] is not None:
            return match["literal"]
        value = self._value(match)
        if isinstance(value, Scalar):
            return "null" if value.value is None else str(CONF_VALUE.value(value.value))
        what = "the value has no such key" if value is None else f"{literal(value)} cannot be inserted into text"
        self.report.add(node.at(match.start()), f"{match[0]} in {name_of(self.combination)}: {what}")
        return ""
