"""Prints the answer of the gate: what changes in a sentence, then checkpoints, rows, bugs, what was not tried, and the verdict."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text

from conformance.core.wording import counted
from conformance.core.wrapping import fitted
from conformance.judging.comparison import MEANINGS
from conformance.judging.finding import INDENT
from conformance.suite.conditions import KINDS
from reports.analysis.gate import WORDS, Gate, Ruling
from reports.analysis.tally import TallyRow, tally_of_cases, tally_of_checkpoints
from reports.results.known_bug import KnownBug
from reports.results.status import MARKS, final_style
from reports.terminal.upgrades import group_lines

PASSING_STYLES = {
    "fails": "bold red",
    "fixed": "bold red",
    "accepted": "green",
    "known": "dim",
    "tolerated": "dim",
    "unrelated": "dim",
}
_VERDICTS = {0: "● passes", 1: "✗ fails", 3: "? no answer"}


@dataclass(frozen=True)
class _Detail:
    """How much of an answer is shown."""

    most: int | None = None
    """The number of changes that any job can meet, by default settings; None for all."""
    others: int | None = None
    """The number of changes under each other condition, and of reasons for what becomes of checkpoints."""
    reasons: bool = True
    """Whether each change comes with its reasons and workarounds."""


_SHORTER = (
    *(_Detail(most, most) for most in (10, 4, 2)),
    *(_Detail(4, others, reasons=False) for others in (2, 1)),
    *(_Detail(most, 0, reasons=False) for most in (4, 3, 2, 1)),
)


def lines(
    answer: Gate, titles: Mapping[str, str], notes: Iterable[Text] = (), *, verbose: bool, width: int
) -> list[Text]:
    """Return the answer, no line longer than ``width`` characters; as much of it as fits ``MOST_ROWS``, unless ``verbose``.

    ``titles``: maps the id of a case to its title, where that is at hand; ``notes``: what to say before the verdict.
    """
    noted = [*notes]

    def lines_of(detail: _Detail) -> list[Text]:
        *about, verdict = _lines(answer, titles, detail)
        return [*about, *noted, verdict]

    return fitted(lines_of, (_Detail(),) if verbose else _SHORTER, width)


def tallies(answer: Gate) -> list[TallyRow]:
    return [tally_of_cases(answer.compared, answer.rulings, answer.left_out), tally_of_checkpoints(answer.checkpoints)]


def _lines(answer: Gate, titles: Mapping[str, str], detail: _Detail) -> Iterator[Text]:
    style, related = final_style(answer.exit_code), [one for one in answer.rulings if one.passing != "unrelated"]
    yield Text(f"{_VERDICTS[answer.exit_code]}: {answer.headline()}", style=style)
    yield from _checkpoints(answer, detail)
    yield from _rows(answer, [ruling for ruling in related if ruling.change.of_rows], titles, detail)
    if others := [ruling for ruling in related if not ruling.change.of_rows]:
        failing = f", {count} of them failing the gate" if (count := _failing(others)) else ""
        yield _heading("OTHER", f"{counted(len(others), 'change')} of what Spark accepts or reports{failing}")
        yield from _changes(others, titles, detail, detail.others)
    yield from _bugs(answer, detail)
    if detail.most is None:
        for tally in tallies(answer):
            yield from (Text(f"{INDENT * depth}{row.count} {row.name}") for depth, row in tally.rows())
    yield from _your_query(answer)
    yield from _not_tried(answer, detail)
    for entry in answer.stale:
        yield Text(f"stale: {entry}: no such change any more, remove the entry", style="bold red")
    yield Text(answer.verdict(), style=style)


def _heading(name: str, text: str) -> Text:
    return Text.assemble((name, "bold"), f"  {text}")


def _checkpoints(answer: Gate, detail: _Detail) -> Iterator[Text]:
    yield _heading("CHECKPOINTS", answer.checkpoints.summary(conditions=detail.reasons))
    groups = answer.checkpoints.located_groups
    most = detail.others if detail.others is None else max(1, detail.others)
    for group, where in groups[:most]:
        yield from group_lines(group, where, cases=detail.most is None)
    if most is not None and groups[most:]:
        hidden = answer.checkpoints.groups[most:]
        checkpoints = counted(sum(group.count for group in hidden), "checkpoint")
        parts = [f"{checkpoints} for {counted(len(hidden), 'other reason')}"] if hidden else []
        parts += ["what is documented without a run"] if answer.checkpoints.documented_groups else []
        yield Text(f"{INDENT}{', '.join(parts)}; --verbose lists them", style="dim")


def _rows(answer: Gate, rulings: Sequence[Ruling], titles: Mapping[str, str], detail: _Detail) -> Iterator[Text]:
    """Yield the changes of rows by condition: what any job can meet first."""
    if not rulings:
        return
    verb = "changes rows or fails" if len(rulings) == 1 else "change rows or fail"
    yield _heading("ROWS", f"of {counted(answer.compared.compared, 'case')} compared, {len(rulings)} {verb}")
    rest = list[str]()
    for kind, words in KINDS.items():
        own = [ruling for ruling in rulings if ruling.condition.kind == kind]
        most = detail.most if kind in ("default settings", "unknown") else detail.others
        if own and most == 0:
            rest.append(f"{len(own)} {words}")
        elif own:
            yield Text(f"{INDENT}{len(own)} {words}")
            yield from _changes(own, titles, detail, most)
    if rest:
        yield Text(f"{INDENT}{', '.join(rest)}; --verbose lists them")


def _changes(rulings: Sequence[Ruling], titles: Mapping[str, str], detail: _Detail, most: int | None) -> Iterator[Text]:
    meanings, order = [*MEANINGS], [*PASSING_STYLES]
    rulings = sorted(rulings, key=lambda one: (order.index(one.word), meanings.index(one.change.meaning)))
    for ruling in rulings[:most]:
        yield from _change(ruling, titles, detail)
    if most and len(rulings) > most:
        yield Text(f"{INDENT * 2}{len(rulings) - most} more; --verbose lists all", style="dim")


def _failing(rulings: Iterable[Ruling]) -> int:
    return sum(ruling.passing == "fails" for ruling in rulings)


def _change(ruling: Ruling, titles: Mapping[str, str], detail: _Detail) -> Iterator[Text]:
    change = ruling.change
    because = f": {ruling.because}" if ruling.because else ""
    said = f"  [{WORDS[ruling.word]}{because}]"
    if not detail.reasons and ruling.passing == "fails":
        said = "  [a known bug is fixed]" if ruling.word == "fixed" else ""
    passing = said, PASSING_STYLES[ruling.word]
    titled = titles.get(change.case, change.case)
    tickets = "" if detail.reasons else "".join(dict.fromkeys(reason.ticket for reason in change.reasons))
    name = ("" if titled == change.case else f"  {change.case}", "dim")
    glyph = MEANINGS[change.meaning].glyph
    yield Text.assemble(INDENT * 2, f"{glyph} {titled}: ", (change.what, "bold"), tickets, passing, name)
    if not detail.reasons:
        return
    if ruling.condition.needs:
        yield Text(f"{INDENT * 4}{ruling.condition}")
    for reason in change.reasons:
        known = (f"{MARKS['bug'].glyph} {reason.bug}: ", MARKS["bug"].style) if reason.bug else ""
        yield Text.assemble(f"{INDENT * 4}{reason.spark}: ", known, f"{reason.text}{reason.ticket}")
        if reason.bug is not None:
            yield from _workaround(reason.bug)
    if not change.reasons:
        why = f"explained by {' and '.join(own)}" if (own := change.after.explained_by) else "no case gives a reason"
        yield Text(f"{INDENT * 4}{why}; {change.where}", style="yellow")


def _workaround(bug: KnownBug) -> Iterator[Text]:
    if bug.workaround is not None:
        yield Text(f"{INDENT * 4}workaround: {bug.workaround}")


_MOST_TICKETS = 7


def _bugs(answer: Gate, detail: _Detail) -> Iterator[Text]:
    bugs, named = (*answer.bugs, *answer.new_bugs), answer.bugs_of_both
    if not bugs:
        return
    if not detail.reasons:
        tickets = [standing.bug.link for standing in bugs if standing.bug.link]
        without = [f"{count} without a ticket"] if (count := len(bugs) - len(tickets)) else []
        tickets[_MOST_TICKETS:] = [f"{count} more"] if (count := len(tickets) - _MOST_TICKETS) > 0 else []
        yield _heading("BUGS", f"{named}: {', '.join((*tickets, *without))}")
        return
    yield _heading("BUGS", named)
    for standing in bugs:
        where = f", only in {answer.compared.after.title}" if standing in answer.new_bugs else ""
        said = f"{standing.bug}{where}: {standing.because}{standing.bug.ticket}"
        yield Text.assemble(f"{INDENT}{MARKS['bug'].glyph} {said}", (f"  {standing.cases[0]}", "dim"))
        yield from _workaround(standing.bug)


def _your_query(answer: Gate) -> Iterator[Text]:
    """Yield the commands that narrow it down to a query, where something changes."""
    before, after = answer.compared.before.spark, answer.compared.after.spark
    asked = f"--from {before} --to {after}"
    commands = [] if answer.uses else [f"gate {asked} --uses inner-join"]
    commands += [f"checkpoint inspect CHECKPOINT --to {after}", f"check JOB.py {asked} --sample NAME=FILE"]
    if answer.rulings or answer.checkpoints.groups:
        for number, command in enumerate(commands):
            yield Text.assemble(("            " if number else "YOUR QUERY  ", "bold"), f"conformance {command}")


def _not_tried(answer: Gate, detail: _Detail) -> Iterator[Text]:
    yield _heading("NOT TRIED", answer.untried)
    silent = answer.compared.missing
    for cell in silent[: detail.most]:
        yield Text(f"{INDENT}no answer: {cell.case} on {cell.target} ({cell.why})", style="bold yellow")
    if detail.most is not None and len(silent) > detail.most:
        yield Text(
            f"{INDENT}{counted(len(silent) - detail.most, 'more cell')}; --verbose lists all", style="bold yellow"
        )
    if answer.left_out:
        before, other = answer.compared.before.spark, answer.compared.after.spark
        yield Text(
            f"{INDENT}{counted(len(answer.left_out), 'case')} left out: no published answer of {before} or {other} to them as they "
            f"are now; conformance run --all --spark {before} --spark {other} runs them: pass its results",
            style="yellow",
        )
