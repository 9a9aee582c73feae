"""Whether settings of an engine's own explain a violation: the case runs again with Spark's defaults of all, then of fewer."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from conformance.judging.verdict import Verdict
from harness.scheduling.cell_run import CellRun
from reports.results.errors import first_of


def _search(names: tuple[str, ...]) -> Generator[tuple[str, ...], bool, tuple[str, ...]]:
    """Narrow settings down to those that a case needs at Spark's defaults to conform; none if all of them do not help.

    Yields the settings to try at their defaults, and is sent whether the case then conforms.
    """
    if not (names and (yield names)):
        return ()
    size, at = len(names) // 2, 0
    while size:
        others = names[:at] + names[at + size :]  # without a part, from the first to the last
        if others and (yield others):
            names = others
        else:
            at += size
        if at >= len(names):
            size, at = size // 2, 0
    return names


def search(run: CellRun, conformed: Sequence[bool]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The settings with whose defaults the case runs next, and those that explain a violation: all that it does not set itself may.

    ``conformed``: whether it did as expected in each of ``run.tried``."""
    names = (text.partition("=")[0] for text in run.identity.settings) if run.identity is not None else ()
    searching = _search(tuple(name for name in names if name not in run.case.conf))
    try:
        wanted = next(searching)
        for conforms in conformed:
            wanted = searching.send(conforms)
    except StopIteration as end:
        return (), end.value
    return wanted, ()


def explained(verdict: Verdict, run: CellRun, conformed: Sequence[bool]) -> Verdict:
    """Say which settings explain a violation, or what else of the engine's own may be its cause."""
    own, blame = run.identity, "the engine is probably wrong"
    if own is None or not (own.settings or own.fixed):
        return verdict
    _, causes = search(run, conformed)
    said = tuple(text.split(" (by default ")[0] for text in own.settings if text.partition("=")[0] in causes)
    notes, instead = [], "these settings are the cause"
    if said:
        notes.append(f"explained by {' and '.join(said)}: with Spark's default the case conforms, as was tried")
    else:
        answered = any(run.tried)
        instead = blame if answered and not own.fixed else "what the engine has of its own or Spark is the cause"
        if run.tried:
            did = "violates as well" if answered else "gives no answer"
            notes.append(f"with Spark's defaults of the engine's own settings, the case {did}")
        if own.fixed:
            notes.append(f"not tried, as no session changes it: {first_of(own.fixed, 5)}; --conf changes settings")
    changed = (note.replace(blame, instead) for note in verdict.notes)
    return replace(verdict, explained_by=said, notes=(*notes, *changed))
