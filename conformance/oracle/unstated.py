"""What cases leave unstated: the error by which a version lacks a feature, and the micro-batch in which rows come out.

Both are warnings of cases. Without ``error``, an entry that calls a feature unsupported counts only a missing method
(docs/case-language/versions-that-differ.md). A step that says which rows come out, but not in which of its micro-batches, passes if they
come out a micro-batch too early or too late. The reference model says what a version does.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion, releases
from conformance.judging.expected import Steps, Unsupported, expected
from conformance.judging.verdict import lacks_the_feature
from conformance.language import Problem
from conformance.model.errors import Unpredictable
from conformance.oracle.prediction import predict


def unstated_errors(cases: Iterable[Case]) -> Iterator[Problem]:
    """Judge the entries that name no error by the newest version of each; a case that the model cannot predict there is left out."""
    for case in cases:
        for number, entry in enumerate(case.differs, 1):
            versions = [
                release for release in releases() if case.applies_to(release) and case.differs_on(release) is entry
            ]
            if entry.unsupported is None or entry.error is not None or not versions:
                continue
            with suppress(Unpredictable):
                error = predict(case, versions[-1]).observation.error
                if not lacks_the_feature(Unsupported(entry.unsupported, entry), error):
                    message = (
                        f"without `error`, `unsupported` means that a method is missing, and on {versions[-1]} none is "
                        f"({'it runs' if error is None else error.behaviour}): add `error: {{class, message}}`, the error by "
                        "which the version shows that it lacks the feature"
                    )
                    yield Problem(case.path, case.lines.get(f"differs.{number}", 1), 0, message)


def unstated_moments(cases: Iterable[Case]) -> Iterator[Problem]:
    """The steps of these cases that do not say which micro-batch emits, by what the model predicts.

    Looks at the newest version for which each expectation applies: the newest of all, and the newest of each ``differs`` entry. A case
    that the model cannot predict there is left out; ``conformance case validate --model`` names these. Cases of one file that share the
    step are named once.
    """
    by_line: dict[tuple[Path, int], Problem] = {}
    for case in cases:
        for version in _versions(case):
            # Most steps emit nothing, or say where: ask the model only about the rest.
            if not _open_steps(case, version):
                continue
            with suppress(Unpredictable):
                for moment in unstated_in(case, version, predict(case, version).observation):
                    by_line.setdefault((moment.path, moment.line), moment)
    yield from by_line.values()


def unstated_in(case: Case, version: SparkVersion, observation: Observation) -> Iterator[Problem]:
    open_steps = _open_steps(case, version)
    for seen in observation.steps:
        several = len(seen.batches) > 1 and any(batch.rows for batch in seen.batches)
        if seen.number in open_steps and seen.error is None and several:
            kinds = ", ".join(batch.kind for batch in seen.batches)
            message = (
                f"step {seen.number} has {len(seen.batches)} micro-batches on {version} ({kinds}), and does not say which "
                "of them emits its rows: replace `rows` by `batches`"
            )
            yield Problem(case.path, _line(case, version, seen.number), 0, message)


def _line(case: Case, version: SparkVersion, step: int) -> int:
    """The line of what a case expects of a step on a version."""
    lines, entry = case.lines, case.differs_on(version)
    if entry is None or step not in entry.steps:
        return lines.get(f"steps.{step}.expect", lines.get(f"steps.{step}", 1))
    number, name = case.differs.index(entry) + 1, case.steps[step - 1].name
    changed = (f"differs.{number}.steps.{key}" for key in (step, name))
    return next((lines[key] for key in changed if key in lines), lines.get(f"differs.{number}", 1))


def _open_steps(case: Case, version: SparkVersion) -> frozenset[int]:
    """The steps that expect rows, but would not say in which of several micro-batches; no rows come out of none.

    In real time rows come out as they arrive, and how many empty micro-batches run on meanwhile is a matter of the machine's speed.
    """
    if case.in_real_time:
        return frozenset()
    wanted = expected(case, version)
    steps = wanted.steps if isinstance(wanted, Steps) else ()
    emitting = (step for step in steps if "rows" in step.checked and step.expectation.rows != ())
    return frozenset(
        step.step.number
        for step in emitting
        if step.expectation.batches is None
        or not all("rows" in batch.model_fields_set for batch in step.expectation.batches)
    )


def _versions(case: Case) -> list[SparkVersion]:
    """The newest version that each ``differs`` entry covers, and the newest that none does."""
    newest: dict[int | None, SparkVersion] = {}
    for version in releases():
        if case.applies_to(version):
            entry = case.differs_on(version)
            newest[None if entry is None else case.differs.index(entry)] = version
    return sorted(newest.values(), reverse=True)
