"""The upgrade gate: what changes between two versions, and whether that may pass.

Behaviour is compared, not status. A change passes if it is below the ``--fail-on`` threshold, is in the baseline already, or
is accepted with a reason. A missing result never passes.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from conformance.core.case import Case, Strength
from conformance.core.output_file import LOOKED_AT, FileKind
from conformance.core.wording import counted, unknown
from conformance.judging.comparison import MEANINGS, code_of_comparison
from conformance.language.source import Entries, InvalidCase, Items, Node, ProblemReport, Scalar, read_yaml
from conformance.suite.conditions import UNKNOWN, Condition, counts
from conformance.suite.features import relevance
from reports.analysis.change import NOTHING_COMPARED, Change, Changes, changes
from reports.analysis.checkpoints import Checkpoints, UpgradeMatrix, by_pair
from reports.analysis.equivalence import same_behaviour
from reports.analysis.matrix import Matrix, ShownBug
from reports.results.checkpoint_status import Colour, colour_of
from reports.results.published import find, find_both
from reports.results.reading import Results
from reports.results.records import Cell

KEYS = ("case", "link", "change", "from", "to", "because")
_FIELDS = {"from": "before", "to": "after"}
"""Maps a key of the file to the field of an acceptance, where they differ."""


@dataclass(frozen=True)
class Acceptance:
    """An entry of the file of accepted changes."""

    path: Path
    line: int
    because: str
    case: str | None = None
    link: str | None = None
    change: str | None = None
    before: str | None = None
    after: str | None = None

    def applies_to(self, before: str, after: str) -> bool:
        return self.before in (None, before) and self.after in (None, after)

    def covers(self, change: Change) -> bool:
        """Tell whether it accepts the change, if it applies to the versions."""
        links = {reason.link for reason in change.reasons}
        return (
            (self.case is None or self.case == change.case)
            and (self.link is None or self.link in links)
            and (self.change is None or self.change == change.meaning)
        )

    def __str__(self) -> str:
        what = [self.case, self.link, self.change and f"change: {self.change}"]
        return f"{self.path}:{self.line}: {', '.join(part for part in what if part)}"


def read_accepted(path: Path) -> tuple[Acceptance, ...]:
    """Read the file of accepted changes. Raises InvalidCase: the file is invalid; the error has every problem with its line."""
    report = ProblemReport(path)
    content = read_yaml(path, report)
    listed = content.get("accepted") if isinstance(content, Entries) else None
    if content is not None and not isinstance(listed, Items):
        report.add(content, "must be a mapping with one key, `accepted`: a list of entries, each with a reason")
    for entry in content.entries if isinstance(content, Entries) else ():
        if (key := entry.key.value) != "accepted":
            report.add(entry.key, unknown("key", str(key), ["accepted"]))
    entries = [_acceptance(item, path, report) for item in (listed.items if isinstance(listed, Items) else ())]
    if report.problems:
        raise InvalidCase(report.problems)
    return tuple(entry for entry in entries if entry is not None)


_HEAD = (
    "# Review each change and say why it is acceptable for your job. An entry that matches no change fails the gate."
)
_DRAFTED = re.compile(rb"accepted:( \[\])?|  - case: .*|    change: .*|    because:|")


def _has_no_reasons(start: bytes) -> bool:
    head, *lines = start.split(b"\n")
    return head == _HEAD.encode() and len(start) < LOOKED_AT and all(map(_DRAFTED.fullmatch, lines))


DRAFT = FileKind("a draft without reasons", _has_no_reasons)
"""What a draft may replace: reasons that somebody has written are never lost."""


def draft(changes: tuple[Change, ...]) -> str:
    """Return a file that accepts these changes once the reasons are filled in; without reasons it is invalid."""
    entries = [
        f"  - case: {change.case}\n    change: {change.meaning}    # {change.what}\n    because:" for change in changes
    ]
    return "\n".join([_HEAD, "accepted:" if changes else "accepted: []", *entries]) + "\n"


def _acceptance(node: Node, path: Path, report: ProblemReport) -> Acceptance | None:
    if not isinstance(node, Entries):
        report.add(node, "an entry must be a mapping with `case` or `link`, and `because`")
        return None
    before = len(report.problems)
    said: dict[str, str] = {}
    for entry in node.entries:
        key = str(entry.key.value)
        if key not in KEYS:
            report.add(entry.key, unknown("key", key, KEYS))
        elif (
            not isinstance(entry.value, Scalar)
            or entry.value.value is None
            or not _says_something(str(entry.value.value))
        ):
            reason = "an accepted change needs a reason" if key == "because" else f"`{key}` must be text"
            report.add(entry.value, reason)
        else:
            said[key] = str(entry.value.value).strip()
    if "case" not in said and "link" not in said and len(report.problems) == before:
        report.add(node, "an entry needs a `case`, or the `link` of a reason")
    if node.get("because") is None:
        report.add(node, "an accepted change needs a reason: add `because`")
    if "change" in said and said["change"] not in MEANINGS:
        report.add(node.get("change") or node, unknown("kind of change", said["change"], MEANINGS))
    if len(report.problems) > before:
        return None
    return Acceptance(path=path, line=node.line, **{_FIELDS.get(key, key): value for key, value in said.items()})


def _says_something(text: str) -> bool:
    """Whether a text has a letter, a digit or a sign that is seen: a space of no width is none."""
    return any(unicodedata.category(char)[0] in "LNPS" for char in text)


_REFUSED: tuple[Colour, ...] = ("refused", "unsupported")
"""The colours of checkpoints that `Checkpoints.summary` counts as refused, too."""
FailOn: TypeAlias = Literal["running", "any", "documented", "guaranteed"]
Passing: TypeAlias = Literal["fails", "accepted", "known", "tolerated", "unrelated"]

WORDS: Mapping[Passing | Literal["fixed"], str] = {
    "fails": "fails the gate",
    "fixed": "must be accepted: a known bug is fixed",
    "accepted": "accepted",
    "known": "in the baseline",
    "tolerated": "below the --fail-on threshold",
    "unrelated": "unrelated to --uses",
}


@dataclass(frozen=True)
class Ruling:
    change: Change
    strength: Strength | None
    """Whether the behaviour is documented; None if that was not needed."""
    passing: Passing
    because: str | None = None
    condition: Condition = UNKNOWN
    """Under which condition a job can meet the change."""

    @property
    def word(self) -> Passing | Literal["fixed"]:
        """How it passes; ``fixed`` if it fails only because a known bug of the earlier version is gone."""
        return "fixed" if self.passing == "fails" and self.change.fixes_a_bug else self.passing


@dataclass(frozen=True)
class Gate:
    compared: Changes
    fail_on: FailOn
    rulings: tuple[Ruling, ...]
    stale: tuple[Acceptance, ...]
    bugs: tuple[ShownBug, ...]
    new_bugs: tuple[ShownBug, ...]
    uses: frozenset[str]
    """The features of the query; none if any query is meant."""
    concerned: int
    """The number of compared cases that use one of them."""
    checkpoints: Checkpoints
    """What is known about the earlier version's checkpoints on the later one; they do not fail the gate."""
    left_out: tuple[str, ...] = ()
    """The cases that one of the versions has not run as they are now."""
    require_tried: bool = False
    """Whether the gate fails if something was not tried."""

    @property
    def failing(self) -> tuple[Ruling, ...]:
        return tuple(ruling for ruling in self.rulings if ruling.passing == "fails")

    @property
    def exit_code(self) -> int:
        """0 if everything passes, 1 if a change or a stale acceptance fails the gate, 3 if results are missing.

        1 takes precedence over 3: a change is certain even if something is missing.
        """
        if self.failing or self.stale:
            return 1
        compared = self.concerned if self.uses else self.compared.compared
        missing = len(self.compared.missing) or (self.require_tried and len(self.not_tried))
        return code_of_comparison(different=False, asked=compared + missing, compared=compared)

    @property
    def not_tried(self) -> tuple[str, ...]:
        """What a version could run and has no result, in words: ``16 checkpoints``."""
        missing, left_out = len(self.compared.missing), len(self.left_out)
        cells = f"{counted(missing, 'cell')} without a result" if missing else ""
        return tuple(
            filter(None, (cells, f"{counted(left_out, 'case')} left out" if left_out else "", self.checkpoints.untried))
        )

    @property
    def pair(self) -> str:
        return f"{self.compared.before.title} → {self.compared.after.title}"

    @property
    def untried(self) -> str:
        """What was not tried, and what could not be: ``16 checkpoints, 64 cases that only one version could run``; or ``nothing``."""
        one = len(self.compared.one_sided)
        parts = (*self.not_tried, f"{counted(one, 'case')} that only one version could run" if one else "")
        return ", ".join(filter(None, parts)) or "nothing"

    @property
    def bugs_of_both(self) -> str:
        wrong = f", {counted(count, 'case')} wrong on both" if (count := len(self.compared.wrong_on_both)) else ""
        new = f", {count} only in {self.compared.after.title}" if (count := len(self.new_bugs)) else ""
        return f"{counted(len(self.bugs), 'known bug')} in both{new}{wrong}"

    def headline(self) -> str:
        """Return ``3.5.9 → 4.3.0: 89 of 427 checkpoints are refused, a setting helps 85; with default settings 4 of …``."""
        known, compared = self.checkpoints, self.compared.compared
        groups = [group for group in known.groups if colour_of(group.status, group.outcome) in _REFUSED]
        refused = known.count(*_REFUSED)
        helped = sum(group.count for group in groups if group.entry is not None and group.entry.proven_workaround)
        other = sum(group.count for group in known.groups if group.outcome == "other rows")
        is_refused = f"{'is' if refused == 1 else 'are'} refused"
        parts = [f"{refused or 'none'} of {counted(known.tried, 'checkpoint')} {is_refused}"]
        parts += [f"a setting helps {helped}"] if helped else []
        parts += [f"{other} resumed with other rows"] if other else []
        handed = ", ".join(parts) if known.tried else "no checkpoint was tried"
        handed += f" ({known.answered_by} ran)" if known.answered_by and known.tried else ""
        if not compared:
            return f"{self.pair}: {handed}; {NOTHING_COMPARED}."
        conditions = [one.condition for one in self.rulings if one.passing != "unrelated" and one.change.of_rows]
        by_kind = counts(conditions)
        met = by_kind["default settings"] if conditions and "unknown" not in by_kind else len(conditions)
        where = "with default settings " if met != len(conditions) else ""
        verb = "changes rows or fails" if met < 2 else "change rows or fail"
        rows = f"{where}{met or 'none'} of {counted(compared, 'case')} {verb}"
        rows += f", {len(conditions) - met} more with a setting, RocksDB or damage" if met != len(conditions) else ""
        return f"{self.pair}: {handed}; {rows}."

    def verdict(self) -> str:
        """Return ``exit 1: 12 changes: 2 fail the gate, 10 accepted``."""
        ruled = Counter(ruling.word for ruling in self.rulings)
        words = {
            **WORDS,
            "fails": f"fail{'s' * (ruled['fails'] == 1)} the gate",
            "fixed": f"fix{'es' * (ruled['fixed'] == 1)} a known bug and must be accepted",
            "tolerated": "below --fail-on",
        }
        parts = [f"{ruled[passing]} {word}" for passing, word in words.items() if ruled[passing]]
        said = [f"{counted(len(self.rulings), 'change')}: {', '.join(parts)}" if parts else "no change"]
        said = said if self.compared.compared else [NOTHING_COMPARED]
        said += [counted(len(self.stale), "stale acceptance")] if self.stale else []
        concerned = counted(self.concerned, "compared case") if self.concerned else "no compared case"
        said += [f"{concerned} related to --uses"] if self.uses else []
        said += [f"no answer: {', '.join(self.not_tried)}"] if self.exit_code == 3 and self.not_tried else []
        return f"exit {self.exit_code}: {'; '.join(said)}"


@dataclass(frozen=True)
class KnownPair:
    """All that is known of two versions, before options say what may pass."""

    compared: Changes
    conditions: tuple[Condition, ...]
    """Under which condition a job can meet each change."""
    bugs: tuple[ShownBug, ...]
    """The known bugs that both versions have."""
    new_bugs: tuple[ShownBug, ...]
    """The known bugs that only the later version has."""
    checkpoints: Checkpoints
    left_out: tuple[str, ...] = ()
    """The cases that one of the versions has not run as they are now."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """The title of each case that changes and is at hand."""
    strengths: Mapping[str, Strength] = field(default_factory=dict)
    """Whether the behaviour of each such case is documented, as it is of a case that is not at hand."""
    needs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The features that each case needs, where that matters; another case may need any."""

    def ruled(
        self,
        fail_on: FailOn = "running",
        uses: frozenset[str] = frozenset(),
        accepted: Sequence[Acceptance] = (),
        earlier: Sequence[Mapping[str, Cell]] | None = None,
        require_tried: bool = False,
    ) -> Gate:
        """Decide on every change.

        Args:
            fail_on: changes that ``running`` queries can meet; ``any`` change, newly accepted queries and other errors of
                failing ones included; of the first, only changes of ``documented`` behaviour; or of those, only changes of
                ``guaranteed`` results: rows lost, added or altered, or the query refused. A known bug that only the later
                version has always fails.
            uses: features of the query; changes of cases that need none of them pass. Empty: any query.
            earlier: the cells of both versions in earlier results, by case; changes that are in them pass.
            require_tried: whether the gate fails if something that a version could run was not tried.
        """
        needs, compared = self.needs, self.compared
        by_strength = fail_on in ("documented", "guaranteed")
        about = [entry for entry in accepted if entry.applies_to(compared.before.spark, compared.after.spark)]
        rulings = []
        used: set[Acceptance] = set()
        for change, condition in zip(compared.changes, self.conditions, strict=True):
            strength = self.strengths.get(change.case, "documented") if by_strength else None
            covering = [entry for entry in about if entry.covers(change)]
            used.update(covering)
            passing: Passing = "fails"
            if not _concerns(change.case, uses, needs):
                passing = "unrelated"
            elif earlier is not None and _known(earlier, change):
                passing = "known"
            elif covering:
                passing = "accepted"
            elif not fails(change, strength, fail_on):
                passing = "tolerated"
            because = covering[0].because if passing == "accepted" else None
            rulings.append(Ruling(change, strength, passing, because, condition))
        both = (*compared.same, *(change.case for change in compared.changes))
        return Gate(
            compared,
            fail_on,
            tuple(rulings),
            tuple(entry for entry in about if entry not in used),
            tuple(bug for bug in self.bugs if any(_concerns(case, uses, needs) for case in bug.cases)),
            tuple(bug for bug in self.new_bugs if any(_concerns(case, uses, needs) for case in bug.cases)),
            uses,
            sum(_concerns(case, uses, needs) for case in both),
            self.checkpoints.of(lambda case: _concerns(case, uses, needs)),
            self.left_out,
            require_tried,
        )


def known_pair(
    results: Results,
    before: str,
    after: str,
    cases: Sequence[Case] = (),
    matrix: Matrix | None = None,
    left_out: Sequence[str] = (),
    upgrades: UpgradeMatrix | None = None,
) -> KnownPair:
    """Compare two versions, named as for ``find``.

    Args:
        cases: those that say under which condition a change is met, and what becomes of checkpoints, if they ran.
        matrix: the matrix of the results, if there is one already; ``upgrades``: the same for their checkpoints.
        left_out: cases that are not among the results because one of the versions has not run them as they are now.

    Raises WrongUsage: a version is not in the results, or both are one.
    """
    if upgrades is None:  # else a report has checked them
        results.check_with(cases)
    matrix = matrix or Matrix.of(results)
    pair = find_both(results, before, after)
    compared = changes(matrix, *pair)
    at_hand, ran = {case.id: case for case in cases}, set(matrix.cases)
    upgrades = upgrades or UpgradeMatrix(
        by_pair(results.upgrades), {id: case for id, case in at_hand.items() if id in ran}
    )
    changed = [at_hand[change.case] for change in compared.changes if change.case in at_hand]
    return KnownPair(
        compared,
        tuple(change.condition(at_hand.get(change.after.written)) for change in compared.changes),
        matrix.bugs_of_both(*pair),
        matrix.new_bugs(*pair),
        upgrades.between(*pair),
        tuple(left_out),
        {case.id: case.title for case in changed},
        {case.id: case.strength for case in changed},
    )


def in_baseline(baseline: Results | None, before: str, after: str) -> Sequence[Mapping[str, Cell]] | None:
    """Return the cells of both versions by case; None without a baseline. Raises as ``find``."""
    if baseline is None:
        return None
    names = [find(baseline, version).name for version in (before, after)]
    return [{cell.case: cell for cell in baseline.cells if cell.target == name} for name in names]


def default_rulings(compared: Changes, condition: Callable[[Change], Condition]) -> tuple[Ruling, ...]:
    """Return what the gate says of each change without options; ``condition``: under which a job can meet it."""
    words: Mapping[bool, Passing] = {True: "fails", False: "tolerated"}
    return tuple(
        Ruling(change, None, words[fails(change, None, "running")], condition=condition(change))
        for change in compared.changes
    )


def _concerns(case: str, uses: frozenset[str], needs: Mapping[str, Sequence[str]]) -> bool:
    return not uses or case not in needs or relevance(needs[case], uses) != "none"


def fails(change: Change, strength: Strength | None, fail_on: FailOn) -> bool:
    if fail_on == "any" or change.brings_a_bug:
        return True
    if fail_on == "running" or not change.met_by_running_queries:
        return change.met_by_running_queries
    return strength != "observed" and (fail_on == "documented" or change.meaning in ("rows", "refused"))


def _known(baseline: Sequence[Mapping[str, Cell]], change: Change) -> bool:
    """Tell whether both versions behaved the same in the baseline as now, with the same case; ``baseline``: their cells by case."""
    return all(
        (old := cells.get(change.case)) is not None and old.case_digest == new.case_digest and same_behaviour(old, new)
        for cells, new in zip(baseline, (change.before, change.after), strict=True)
    )
