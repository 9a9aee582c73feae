"""The case language: reads a case from YAML, and knows all that can be wrong with it, by line and column.

One module per thing: ``source`` reads YAML into ``node``; ``shape`` and ``nested`` say what may stand where, for the
readers and for the JSON Schema at once; ``streams``, ``pipelines``, ``rows``, ``steps``, ``expectations``,
``differing`` and ``case_file`` are the language in these shapes; ``meaning`` and the ``…_checks`` are what shapes
cannot say. ``policy_shapes``, ``policy_checks`` and ``policy_file`` are the same for cases on watermark policies, and
``any_file`` reads either, and what a ``matrix`` makes of one file (``matrix``, ``expansion``). See ``docs/case-language.md``.
"""

from conformance.language.any_file import read_any
from conformance.language.case_file import read_case
from conformance.language.problem import InvalidCase, Problem

__all__ = ["InvalidCase", "Problem", "read_any", "read_case"]
