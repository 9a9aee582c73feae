"""Hypothesis strategies for the case language: cases nobody has thought of, valid by construction.

``cases`` draws whole cases in the shape of the YAML, without expectations: ``conformance.language.case_from`` reads one, and
``conformance.language.printing.printed`` writes it down. ``schemas``, ``delays``, ``pipelines`` and ``traces`` draw their parts.

    >>> from hypothesis import given
    >>> from conformance.language import case_from
    >>> from conformance.strategies import cases
    >>> @given(cases(families=["joins"]))
    ... def test_my_model(written):
    ...     case = case_from(written, "generated")

Nothing here knows the model, an engine or the suite's cases. Needs ``hypothesis``: ``pip install 'watermark-conformance[fuzz]'``.
"""

from conformance.strategies.cases import cases
from conformance.strategies.delays import delays
from conformance.strategies.families import FAMILIES, NoSuchFamily
from conformance.strategies.pipelines import pipelines
from conformance.strategies.schemas import schemas
from conformance.strategies.traces import traces

__all__ = ["FAMILIES", "NoSuchFamily", "cases", "delays", "pipelines", "schemas", "traces"]
