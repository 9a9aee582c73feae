"""``upgrades``: what is otherwise where one version goes on from the checkpoint of another."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.core.case import Upgrade
from conformance.core.versions import VersionRange
from conformance.language.differing import BUG, CHANGES, bug_beside_link
from conformance.language.expectations import ERROR, expectation_change, expected_error
from conformance.language.links import LINK
from conformance.language.nested import Key, ListOf, Record, one_or_many
from conformance.language.node import Entries, Node, Scalar, child, entries_of, items_of
from conformance.language.problem import Report
from conformance.language.shape import Json, Text, Whole
from conformance.language.step_checks import step_number
from conformance.language.version_ranges import RANGE

WAYS = ("refused", "steps")
"""How an entry says what is otherwise: exactly one of these."""

UPGRADES = ListOf(
    Record(
        "an entry of upgrades",
        {
            "from": Key(RANGE, "The versions that wrote the checkpoint; any when absent."),
            "to": Key(RANGE, "The versions that go on from it; any when absent."),
            "cuts": Key(
                one_or_many(Whole(least=2), "the number of a step from 2 up, or a list of them"),
                "The steps before which the versions change; any when absent.",
            ),
            "because": Key(Text("a reason"), "why the answer is otherwise", required=True),
            "link": Key(LINK, "The ticket or page that says so."),
            "bug": BUG,
            "wayRound": Key(Text("a way round"), "What is documented to help."),
            "refused": Key(ERROR, "The resuming version refuses the checkpoint with this error."),
            "steps": Key(CHANGES, "Step number or name → the keys of its expectation that are otherwise."),
        },
        meaning="Pairs of versions of which the second answers otherwise, or refuses, when it resumes what the first wrote.",
    ),
    "a list of entries, each a pair of ranges with what is otherwise",
)


def upgrade(written: dict[str, Json], numbers: Mapping[str, int]) -> Upgrade:
    """The entry that a valid mapping describes.

    Args:
        written: the entry.
        numbers: name of a step → its number.
    """
    cuts = written.get("cuts", ())
    return Upgrade.model_validate(
        {
            "from": VersionRange.parse(written["from"]) if "from" in written else None,
            "to": VersionRange.parse(written["to"]) if "to" in written else None,
            "cuts": (cuts,) if isinstance(cuts, int) else tuple(cuts),
            "because": written["because"],
            "link": written.get("bug", written.get("link")),
            "bug": "bug" in written,
            "wayRound": written.get("wayRound"),
            "error": expected_error(written["refused"]) if "refused" in written else None,
            "steps": {
                reference if isinstance(reference, int) else numbers[reference]: expectation_change(change)
                for reference, change in written.get("steps", {}).items()
            },
        }
    )


def check_upgrades(case: Node, report: Report) -> None:
    """Entries that say nothing or two things, or that speak of steps that are not there or cannot come after a cut."""
    steps = items_of(child(case, "steps"))
    for entry in items_of(child(case, "upgrades")):
        if not isinstance(entry, Entries):
            continue
        bug_beside_link(entry, report)
        ways = [way for way in WAYS if entry.get(way) is not None]
        if not ways:
            report.add(entry, f"an entry of upgrades says what is otherwise: one of {', '.join(WAYS)}")
        for other in ways[1:]:
            report.add(entry.key(other), f"`{other}` beside `{ways[0]}`: an entry has one of {', '.join(WAYS)}")
        for change in entries_of(child(entry, "steps")):
            number = step_number(change.key.value, steps)
            if number is None:
                report.add(change.key, f"there is no step {change.key.value!r}")
            elif number == 1:
                report.add(change.key, "step 1 is never resumed: a cut is before step 2 at the earliest")
        cuts = child(entry, "cuts")
        for cut in [cuts] if isinstance(cuts, Scalar) else items_of(cuts):
            value = cut.plain()
            if isinstance(value, int) and value > len(steps):
                report.add(cut, f"there is no step {value}: they go from 1 to {len(steps)}")
