"""The case language: reads cases from YAML and reports every problem by line and column. See ``docs/case-language.md``.

``source`` parses YAML into nodes. A ``shape`` states once what a place may hold: the reader,
the JSON Schema and the values of the model all come from it. ``case_file``, ``streams``, ``pipelines``, ``steps``,
``version_differences`` and ``policy_file`` are the grammar in shapes and the rules that relate several places to each other;
``query_checks`` is rules alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.language.reader import case_from, read_any, read_case
    from conformance.language.source import InvalidCase, Problem

__all__ = ["InvalidCase", "Problem", "case_from", "read_any", "read_case"]


def __getattr__(name: str) -> object:
    # The reader takes long to import; who asks for one of the modules below does without it.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{'source' if name in ('InvalidCase', 'Problem') else 'reader'}"), name)
