"""Ranges of Spark versions, whose bounds must be existing versions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from conformance.core.versions import NotARange, VersionRange, falling_into, releases
from conformance.language.compound_shapes import Definition, one_or_many
from conformance.language.node import Items, Node, Scalar
from conformance.language.problem import Report
from conformance.language.shape import Definitions, Json, Shape
from conformance.language.suggest import nearest


@dataclass(frozen=True)
class _OneRange(Shape):
    @property
    def expected(self) -> str:
        return "a quoted version range: '>=3.4,<3.4.4'"

    def validate(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            return self.reject(node, report)
        try:
            VersionRange.parse(node.value)
        except NotARange as wrong:
            report.add(node, str(wrong))
            return False
        unknown = list(_unknown_versions(node.value))
        for operator, version in unknown:
            known = f"known releases range from {releases()[0]} to {releases()[-1]}"
            near = nearest(version, [str(release) for release in releases()])
            hint = f"the nearest is {near}" if near and not _is_older(version) else known
            message = f"{version} in {node.value!r} is not a Spark release: {hint}"
            if _is_older(version) and operator in ("<", "<="):
                message = f"no known release is below {version}: {known}"
            report.add(node, message)
        return not unknown

    def schema(self, definitions: Definitions) -> Json:  # noqa: ARG002
        return {"type": "string", "pattern": r"^\s*(<=?|>=?|==|!=|~=)", "examples": [">=3.4,<3.4.4"]}


@dataclass(frozen=True)
class _Range(Shape):
    """One range, or a list of alternative ranges; each must contain a release."""

    either: Shape

    @property
    def expected(self) -> str:
        return self.either.expected

    def validate(self, node: Node, report: Report) -> bool:
        if not self.either.check(node, report):
            return False
        parts = node.items if isinstance(node, Items) else (node,)
        empty = [part for part in parts if not any(falling_into(VersionRange.parse(part.plain())))]
        for part in empty:
            report.add(part, f"{part.plain()!r} contains no Spark release")
        return not empty

    def schema(self, definitions: Definitions) -> Json:
        return self.either.schema(definitions)

    def value(self, written: Json) -> VersionRange:
        return VersionRange.parse(written)


_RANGE = _Range(one_or_many(_OneRange(), _OneRange().expected))
RANGE = Definition("versions", lambda: _RANGE)


def _is_older(version: str) -> bool:
    """Whether a version is older than every known release."""
    oldest = releases()[0]
    return Version(version.removesuffix(".*")) < Version(str(oldest))


@cache
def _known_versions() -> frozenset[tuple[str, ...]]:
    """The releases, and what they begin with: 3, 3.5 and 3.5.1, in their parts."""
    return frozenset(tuple(str(release).split("."))[:parts] for release in releases() for parts in (1, 2, 3))


def _unknown_versions(text: str) -> Iterator[tuple[str, str]]:
    """Operator and version of each bound that is not a release."""
    known = _known_versions()
    for specifier in sorted(SpecifierSet(text), key=str):
        if tuple(specifier.version.removesuffix(".*").split(".")) not in known:
            yield specifier.operator, specifier.version
