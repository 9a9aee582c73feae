"""Hypothesis strategies for the case language; the cases they generate are valid by construction.

``cases`` generates whole cases, structured like the YAML and without expectations: ``conformance.language.case_from`` reads
such a case, and ``conformance.language.printing.printed`` formats it. ``schemas``, ``delays``, ``pipelines`` and ``traces`` generate
parts of cases.

    >>> from hypothesis import given
    >>> from conformance.language import case_from
    >>> from conformance.strategies import cases
    >>> @given(cases(families=["joins"]))
    ... def test_my_model(written):
    ...     case = case_from(written, "generated")

Independent of the model, the engines and the cases of the suite. Requires ``hypothesis``: ``pip install 'watermark-conformance[fuzz]'``.
"""

from conformance.strategies.cases import cases
from conformance.strategies.draft import delays, schemas
from conformance.strategies.pipelines import FAMILIES, pipelines
from conformance.strategies.traces import traces

__all__ = ["FAMILIES", "cases", "delays", "pipelines", "schemas", "traces"]
