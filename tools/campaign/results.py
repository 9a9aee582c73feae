"""Results files that say what no engine said, and whether any command calls them green, the same or without change.

A try takes published answers of two versions that are the same and as their cases say, and falsifies them in one way. Beside each
falsification stands which commands must not call the result green; this module compares no answers itself.
"""

from __future__ import annotations

import copy
import functools
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from conformance.core.observation import Observation
from reports.results.compression import open_results
from reports.results.published import published
from reports.results.records import RECORD, Cell, cells_digest
from tools.campaign.tries import Answer, Try, answer, drawn

Record: TypeAlias = dict[str, Any]
Lines: TypeAlias = list[Record]
Draw: TypeAlias = random.Random

BEFORE, AFTER = "3.5.9", "4.3.0"
PAIR = ("--from", BEFORE, "--to", AFTER)
FEW = 4
"""The number of cases in a file."""


# What is falsified.


@functools.cache
def _published() -> tuple[str, Mapping[str, tuple[str, str]]]:
    """Return the header of the published results, and the lines of both versions of each case that answers the same on both."""
    header, pairs = "", {}
    cells: dict[str, list[Record]] = {}
    for path in published():
        with open_results(path) as file:
            for line in file:
                record = json.loads(line)
                if record["record"] == "header":
                    header = header or line.decode()
                elif record["record"] == "cell" and record["target"] in (f"spark-{BEFORE}", f"spark-{AFTER}"):
                    cells.setdefault(record["case"], []).append(record)
    for case, both in cells.items():
        same = len({json.dumps([cell["behaviour"], (cell["observation"] or {}).get("columns")]) for cell in both}) == 1
        whole = all(
            cell["status"] == "conforms" and _emits(cell) and _digest(cell) == cell["behaviour"] for cell in both
        )
        if len(both) == 2 and same and whole:
            older, newer = sorted(both, key=lambda cell: str(cell["target"]))
            pairs[case] = json.dumps(older), json.dumps(newer)
    return header, pairs


def _emits(cell: Record) -> bool:
    return cell["observation"] is not None and any(batch["rows"] for batch in _batches(cell))


def _digest(cell: Record) -> str:
    return Observation.model_validate(cell["observation"]).behaviour_digest


def _batches(cell: Record) -> list[Record]:
    return [batch for step in cell["observation"]["steps"] for batch in step["batches"]]


def base(draw: Draw, cases: int = FEW) -> Lines:
    """Return the lines of a file whose two versions are the same, and as every case says."""
    header, pairs = _published()
    names = draw.sample(sorted(pairs), cases)
    first = json.loads(header) | {"cases": names, "pairs": [], "cuts": {}}
    first["targets"] = [target for target in first["targets"] if target["spark"] in (BEFORE, AFTER)]
    cells = [json.loads(text) for name in names for text in pairs[name]]
    return sealed([first, *cells, {"record": "footer", "counts": {}, "finished": first["started"], "digest": ""}])


def sealed(lines: Lines) -> Lines:
    """Return the lines with every digest and count that a forger would compute again."""
    for cell in cells_of(lines):
        if cell["observation"] is not None and cell["behaviour"] is not None:
            cell["behaviour"] = _digest(cell)
    known = [record for line in cells_of(lines) if isinstance(record := RECORD.validate_python(line), Cell)]
    counts = Counter(cell.status for cell in known)
    return [*lines[:-1], lines[-1] | {"counts": counts, "digest": cells_digest(known)}]


def cells_of(lines: Lines) -> Lines:
    return [line for line in lines if line["record"] == "cell"]


def one_cell(lines: Lines, draw: Draw) -> Record:
    return draw.choice(cells_of(lines))


def written(path: Path, lines: Lines) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


# Behaviour: one version did something else.

_TWINS = r"""
double; 0.0; -0.0             double; "NaN"; null          double; "Infinity"; "-Infinity"     double; 1e-11; 2e-11
double; 1.0; 1.000000001      float; 0.0; -0.0             array<double>; [0.0]; [-0.0]        struct<d:double>; [0.0]; [-0.0]
bigint; 0; null               int; 1; 2                    boolean; false; null                boolean; true; false
decimal(3,1); "1.0"; "1.1"    string; ""; null             string; "null"; null                string; "NaN"; "nan"
string; "1.0"; "1.00"         string; "0.0"; "-0.0"        string; "a"; "A"                    string; "a"; "a "
string; "a"; "a\u200b"        string; "\u00e9"; "e\u0301"  string; "true"; "True"              string; "[1]"; "[1 ]"
array<int>; []; null          array<int>; [null]; []       array<int>; [1, 2]; [2, 1]          array<string>; ["a", "b"]; ["a,b"]
array<string>; ["1"]; ["1.0"]  struct<a:int>; [null]; null  struct<s:string>; ["0"]; ["0.0"]    map<string,int>; []; null
binary; "AA=="; "AQ=="        binary; ""; null             date; "2026-03-01"; "2026-03-02"    date; "20513500 d"; "20513501 d"
map<string,double>; [["a", 0.0]]; [["a", -0.0]]    map<int,string>; [[1, "1.0"]]; [[1, "1.00"]]
map<string,int>; [["a", 1]]; [["a", null]]         bigint; 9007199254740992; 9007199254740993
timestamp; "2026-03-01T12:00:00.000000Z"; "2026-03-01T12:00:00.000001Z"
timestamp_ntz; "2026-03-01T12:00:00.000000"; "2026-03-01T13:00:00.000000"
decimal(38,0); "99999999999999999999999999999999999999"; "99999999999999999999999999999999999998"
"""
TWINS = [
    (type, json.loads(one), json.loads(other))
    for type, one, other in re.findall(r"([\w<>:,()]+); (.+?); (.+?)(?:  +|\n)", _TWINS)
]
"""A type, and two values of it that are not the same."""


def twins(lines: Lines, draw: Draw) -> None:
    """A column of another type on both versions, whose value in one row is not the same."""
    type, one, other = draw.choice(TWINS)
    cell = one_cell(lines, draw)
    both = [each for each in cells_of(lines) if each["case"] == cell["case"]]
    at = next(at for at, batch in enumerate(_batches(cell)) if batch["rows"])
    for each, value in zip(both, draw.sample([one, other], 2), strict=True):
        each["observation"]["columns"].append({"name": "twin", "type": type})
        for step in each["observation"]["steps"]:
            step["columns"] = [*step["columns"], {"name": "twin", "type": type}] if step["columns"] else []
        for number, batch in enumerate(_batches(each)):
            batch["rows"] = [
                [*row, value if number == at and not place else one] for place, row in enumerate(batch["rows"])
            ]


def _other(value: Any) -> Any:
    match value:
        case None:
            return 0
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value.swapcase() if value.swapcase() != value else f"{value} "
        case [first, *rest]:
            return [_other(first), *rest]
    return None


def _with_rows(cell: Record, draw: Draw) -> Record:
    return draw.choice([batch for batch in _batches(cell) if batch["rows"]])


def row_less(cell: Record, draw: Draw) -> None:
    rows = _with_rows(cell, draw)["rows"]
    rows.pop(draw.randrange(len(rows)))


def row_more(cell: Record, draw: Draw) -> None:
    rows = _with_rows(cell, draw)["rows"]
    rows.append(draw.choice(rows))


def row_later(cell: Record, draw: Draw) -> None:
    batch = _with_rows(cell, draw)
    others = [other for other in _batches(cell) if other is not batch]
    draw.choice(others or [{"rows": []}])["rows"].append(batch["rows"].pop())


def value(cell: Record, draw: Draw) -> None:
    row = draw.choice(_with_rows(cell, draw)["rows"])
    at = draw.randrange(len(row))
    row[at] = _other(row[at])


def null(cell: Record, draw: Draw) -> None:
    row = draw.choice(_with_rows(cell, draw)["rows"])
    at = draw.randrange(len(row))
    row[at] = None if row[at] is not None else 0


def count(cell: Record, draw: Draw) -> None:
    batch = draw.choice(_batches(cell))
    name = draw.choice(
        [name for name in ("watermark", "next_watermark", "dropped") if batch[name] is not None] or ["id"]
    )
    batch[name] += draw.choice([1, 1000, -1])


def state(cell: Record, draw: Draw) -> None:
    batch = draw.choice(_batches(cell))
    batch["state"] = [draw.choice([0, 1, 7]) + sum(batch["state"]) + 1, *batch["state"][1:]]


def kind(cell: Record, draw: Draw) -> None:
    batch = draw.choice(_batches(cell))
    batch["kind"] = "data" if batch["kind"] == "no-data" else "no-data"


def batch_less(cell: Record, draw: Draw) -> None:
    step = draw.choice([step for step in cell["observation"]["steps"] if step["batches"]])
    step["batches"].pop()


def step_less(cell: Record, draw: Draw) -> None:  # noqa: ARG001 — as the others
    cell["observation"]["steps"].pop()


def of_step(cell: Record, draw: Draw) -> None:
    draw.choice(cell["observation"]["steps"])["watermark"] += draw.choice([1, -1, 86_400_000])


def error(cell: Record, draw: Draw) -> None:
    if cell["target"] == f"spark-{BEFORE}":  # a query that fails before and runs after passes the gate
        return row_less(cell, draw)
    seen = {"stage": draw.choice(["start", "run"]), "classes": ["SparkException"], "message": "it failed"}
    cell["observation"]["steps"][-1]["error"] = seen | {"own_code": None}
    return None


def columns(cell: Record, draw: Draw) -> None:
    every = [cell["observation"], *(step for step in cell["observation"]["steps"] if step["columns"])]
    how = draw.choice(["name", "case", "type", "order", "less", "more", "none"])
    for place in every:
        listed = place["columns"]
        match how:
            case "name" | "case":
                name = listed[0]["name"]
                listed[0]["name"] = name.swapcase() if how == "case" else f"{name}_"
            case "type":
                listed[-1]["type"] = "int" if listed[-1]["type"] != "int" else "bigint"
            case "order" if len(listed) > 1 and listed[0] != listed[-1]:
                listed[0], listed[-1] = listed[-1], listed[0]
            case "less" if len(listed) > 1:
                listed.pop()
            case "none":
                listed.clear()
            case _:
                listed.append({"name": "more", "type": "int"})


OF_CELL = (
    row_less,
    row_more,
    row_later,
    value,
    null,
    count,
    state,
    kind,
    batch_less,
    step_less,
    of_step,
    error,
    columns,
)


def behaviour(lines: Lines, draw: Draw) -> str:
    """Change what one version did."""
    changed = draw.choice((*OF_CELL, twins))
    if changed is twins:
        twins(lines, draw)
    else:
        changed(one_cell(lines, draw), draw)  # type: ignore[arg-type]
    return changed.__name__


# Statuses: a version violates its case, or has no answer.


def status(lines: Lines, draw: Draw) -> str:
    """Say that a cell is not as its case says."""
    cell = one_cell(lines, draw)
    cell["status"] = draw.choice(["violates", "flaky"])
    return str(cell["status"])


def silence(lines: Lines, draw: Draw) -> str:
    """Take the answer of a cell."""
    cell = one_cell(lines, draw)
    cell |= {"status": draw.choice(["broken", "not-run"]), "observation": None, "behaviour": None}
    return str(cell["status"])


def empty(lines: Lines, draw: Draw) -> str:
    """Take every answer: of one version, or of both."""
    targets = draw.choice([[BEFORE], [AFTER], [BEFORE, AFTER]])
    status = draw.choice(["broken", "not-run", "not-applicable"])
    notes = ["no such source here"] if status == "not-applicable" else []
    for cell in cells_of(lines):
        if cell["target"].removeprefix("spark-") in targets:
            cell |= {"status": status, "observation": None, "behaviour": None, "notes": notes}
    return f"{status} on {' and '.join(targets)}"


def other_text(lines: Lines, draw: Draw) -> str:
    """Let one version have run another text of a case."""
    cell = one_cell(lines, draw)
    cell["case_digest"] = "f" * 64
    return "other text"


# Damage: nothing is computed again.


def damage(lines: Lines, draw: Draw) -> str:
    """Change, remove or add lines, as an editor or a merge does."""
    header, footer = lines[0], lines[-1]
    cell, case = one_cell(lines, draw), draw.choice(header["cases"])
    what = draw.choice(
        [
            "cell",
            "case",
            "target",
            "case kept",
            "footer",
            "no footer",
            "twice",
            "status",
            "digest",
            "order",
            "rows",
            "unheard",
        ]
    )
    match what:
        case "cell":
            lines.remove(cell)
        case "case" | "case kept":
            if what == "case":
                header["cases"].remove(case)
            lines[:] = [line for line in lines if line.get("case") != case]
        case "target":
            name = draw.choice(header["targets"])["name"]
            header["targets"] = [target for target in header["targets"] if target["name"] != name]
            lines[:] = [line for line in lines if line.get("target") != name]
        case "footer":
            footer["counts"] = {"conforms": footer["counts"]["conforms"] + draw.choice([-1, 1])}
        case "no footer":
            lines.pop()
        case "twice":
            lines.insert(draw.randrange(1, len(lines)), draw.choice([cell, header, footer]))
        case "status":
            cell["status"] = draw.choice(
                ["violates", "bug", "differs", "unsupported", "flaky", "broken", "not-applicable"]
            )
        case "digest":
            cell["behaviour"] = "".join(draw.sample(cell["behaviour"], 64)) + "0"
        case "order":
            lines.remove(cell)
            lines.append(cell)
        case "rows":
            value(cell, draw)
        case "unheard":
            header["cases"].append("late-drops/unheard")
    return what


# Doors: what a command says of a file.

Door: TypeAlias = Callable[[Path, Path, Draw], tuple[Answer, bool]]
"""Asks about the falsified file; with the file as it was, and whether what it says is green."""


def _by_code(*arguments: str) -> Door:
    """Return a door that says green with its exit code; ``X`` and ``R`` are the falsified file and the one before."""

    def asked(x: Path, r: Path, draw: Draw) -> tuple[Answer, bool]:  # noqa: ARG001 — as the other doors
        said = answer(*({"X": x, "R": r}.get(part, part) for part in arguments))
        return said, said.code == 0

    return asked


def _by_text(*arguments: str, green: Callable[[str], bool]) -> Door:
    def asked(x: Path, r: Path, draw: Draw) -> tuple[Answer, bool]:
        said, ended_well = _by_code(*arguments)(x, r, draw)
        return said, ended_well and green(said.out)

    return asked


def dossier(x: Path, r: Path, draw: Draw) -> tuple[Answer, bool]:  # noqa: ARG001
    said = answer("report", x, *PAIR, "-o", x.parent / "dossier")
    pages = [path.read_text(encoding="utf-8") for path in (x.parent / "dossier").glob("*.html")]
    return said, said.code == 0 and not any(re.search(r"[Ee]xit [13]: ", page) for page in pages)


def accepted(x: Path, r: Path, draw: Draw) -> tuple[Answer, bool]:
    """The gate, with a file that accepts something else, or without a reason."""
    case = draw.choice(json.loads(x.read_text(encoding="utf-8").split("\n", 1)[0])["cases"])
    reasons = ["", "''", "' '", "'\u200b'", "null", "[]", "{}", "~", "'\u00ad\u2060'", "!!str"]
    entries = [
        *(f"{{case: {case}, because: {reason}}}" for reason in reasons),
        *(
            f"{{case: {name}, because: ok}}"
            for name in (case.upper(), f"{case}x", "'*'", f"{case}\u200b", "late-drops/none")
        ),
        *(
            f"{{case: {case}, because: ok, {more}}}"
            for more in ("from: 3.5.8", "to: 4.2.0", "change: accepted", "link: X-1")
        ),
        *("{link: '', because: ok}", "{because: ok}", "{case: ~, because: ok}", "{case: [], because: ok}", case),
    ]
    listed = x.with_name("accepted.yaml")
    listed.write_text(f"accepted:\n  - {draw.choice(entries)}\n", encoding="utf-8")
    return _by_code("gate", "X", *PAIR, "--accept", str(listed))(x, r, draw)


def _no_failures(text: str) -> bool:
    return re.search(r'<testsuites [^>]*failures="0" errors="0"', text) is not None


def _says_no_change(text: str) -> bool:
    return "No change in" in text and "without a result" not in text


def _nothing_changes(text: str) -> bool:
    pairs = [
        pair
        for pair in json.loads(text)["pairs"]
        if (pair["before"], pair["after"]) == (f"spark-{BEFORE}", f"spark-{AFTER}")
    ]
    return not any(pair["changes"] or pair["silent"] or not pair["compared"] for pair in pairs)


EXPORT = ("case", "export")
COMPARE: Mapping[str, Door] = {
    "gate": _by_code("gate", "X", *PAIR),
    "gate --fail-on any": _by_code("gate", "X", *PAIR, "--fail-on", "any"),
    "gate --baseline": _by_code("gate", "X", *PAIR, "--baseline", "R"),
    "gate --accept": accepted,
    "maintain diff": _by_code("maintain", "diff", "R", "X"),
    "export summary": _by_text(*EXPORT, "summary", "X", *PAIR, green=_says_no_change),
    "export json, pairs": _by_text(*EXPORT, "json", "X", green=_nothing_changes),
    "report, dossier": dossier,
}
JUDGE: Mapping[str, Door] = {
    "maintain combine": _by_code("maintain", "combine", "X"),
    "export junit": _by_text(*EXPORT, "junit", "X", green=_no_failures),
    "export badge": _by_text(*EXPORT, "badge", "X", green=lambda text: json.loads(text)["color"] == "brightgreen"),
    "export annotations": _by_text(*EXPORT, "annotations", "X", green=lambda text: not text.strip()),
    "export json": _by_text(*EXPORT, "json", "X", green=lambda text: json.loads(text)["exit_code"] == 0),
}
EVERY: Mapping[str, Door] = {**COMPARE, **JUDGE, "report": _by_code("report", "X", "--single-file", "-o", "site")}

KINDS: Mapping[Callable[[Lines, Draw], str], tuple[int, bool, Mapping[str, Door]]] = {
    behaviour: (10, True, COMPARE),
    status: (3, True, JUDGE),
    silence: (3, True, {**JUDGE, **{name: door for name, door in COMPARE.items() if name != "report, dossier"}}),
    empty: (
        2,
        True,
        {name: COMPARE[name] for name in ("gate", "gate --fail-on any", "export json, pairs", "report, dossier")},
    ),
    other_text: (1, True, {name: COMPARE[name] for name in ("gate", "gate --fail-on any", "maintain diff")}),
    damage: (6, False, EVERY),
}
"""What falsifies, with how often it is drawn, whether digests and counts are computed again, and which doors must not be green."""


def attempt(seed: int, number: int) -> Iterator[Try]:
    """Falsify a file and ask one door about it."""
    draw = drawn(seed, number)
    [falsify] = draw.choices([*KINDS], [often for often, _, _ in KINDS.values()])
    _, again, doors = KINDS[falsify]
    lines = base(draw)
    before = copy.deepcopy(lines)
    what = falsify(lines, draw)
    if lines == before:
        return
    door = draw.choice([*doors])
    with tempfile.TemporaryDirectory() as folder:
        r = written(Path(folder) / "r.jsonl", before)
        x = written(Path(folder) / "x.jsonl", sealed(lines) if again else lines)
        said, green = EVERY[door](x, r, draw)
    fell = said.last if green or said.unforeseen else ""
    yield Try(number, door, f"{falsify.__name__}: {what}", fell)
