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
from typing import Any, NamedTuple, TypeAlias

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
        if len(both) == 2 and same and all(map(_conforms, both)):
            older, newer = sorted(both, key=lambda cell: str(cell["target"]))
            pairs[case] = json.dumps(older), json.dumps(newer)
    return header, pairs


def _conforms(cell: Record) -> bool:
    """Whether it is as its case says, with rows and under their digest."""
    emits = cell["observation"] is not None and any(batch["rows"] for batch in _batches(cell))
    return emits and cell["status"] == "conforms" and _digest(cell) == cell["behaviour"]


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


def value(cell: Record, draw: Draw) -> None:
    """Change a value of a cell."""
    row = draw.choice(_with_rows(cell, draw)["rows"])
    at = draw.randrange(len(row))
    row[at] = _other(row[at])


def _with_rows(cell: Record, draw: Draw) -> Record:
    return draw.choice([batch for batch in _batches(cell) if batch["rows"]])


def rows(cell: Record, draw: Draw, how: str) -> None:
    """Change the rows of a cell."""
    batch = _with_rows(cell, draw)
    row = draw.choice(batch["rows"])
    match how:
        case "row less":
            batch["rows"].remove(row)
        case "row more":
            batch["rows"].append(row)
        case "row later":
            others = [other for other in _batches(cell) if other is not batch]
            draw.choice(others or [{"rows": []}])["rows"].append(batch["rows"].pop())
        case "null":
            at = draw.randrange(len(row))
            row[at] = None if row[at] is not None else 0
        case "value":
            value(cell, draw)


def steps(cell: Record, draw: Draw, how: str) -> None:
    """Change what a cell says of its micro-batches and steps."""
    step = draw.choice([step for step in cell["observation"]["steps"] if step["batches"]])
    batch = draw.choice(step["batches"])
    match how:
        case "watermark" | "next_watermark" | "dropped":
            batch["id" if batch[how] is None else how] += draw.choice([1, 1000, -1])
        case "state":
            batch["state"] = [draw.choice([0, 1, 7]) + sum(batch["state"]) + 1, *batch["state"][1:]]
        case "kind":
            batch["kind"] = "data" if batch["kind"] == "no-data" else "no-data"
        case "batch less":
            step["batches"].pop()
        case "step less":
            cell["observation"]["steps"].pop()
        case "watermark of the step":
            step["watermark"] += draw.choice([1, -1, 86_400_000])
        case "error" if cell["target"] == f"spark-{AFTER}":  # a query that fails before and runs after passes the gate
            error = {"stage": draw.choice(["start", "run"]), "classes": ["SparkException"], "message": "it failed"}
            cell["observation"]["steps"][-1]["error"] = error | {"own_code": None}


def columns(cell: Record, draw: Draw, how: str) -> None:  # noqa: ARG001 — as the others
    """Change the columns that a cell has wherever they are listed."""
    for place in (cell["observation"], *(step for step in cell["observation"]["steps"] if step["columns"])):
        listed = place["columns"]
        match how:
            case "name" | "case of a name":
                name = listed[0]["name"]
                listed[0]["name"] = name.swapcase() if how != "name" else f"{name}_"
            case "type":
                listed[-1]["type"] = "int" if listed[-1]["type"] != "int" else "bigint"
            case "order of columns" if len(listed) > 1 and listed[0] != listed[-1]:
                listed[0], listed[-1] = listed[-1], listed[0]
            case "column less" if len(listed) > 1:
                listed.pop()
            case "no columns":
                listed.clear()
            case _:
                listed.append({"name": "more", "type": "int"})


OF_CELL: Mapping[Callable[[Record, Draw, str], None], str] = {
    rows: "row less, row more, row later, null, value",
    steps: "watermark, next_watermark, dropped, state, kind, batch less, step less, watermark of the step, error",
    columns: "name, case of a name, type, order of columns, column less, no columns, column more",
}
"""What changes a cell, and in which ways."""


def behaviour(lines: Lines, draw: Draw) -> str:
    """Change what one version did."""
    changes = {how: change for change, ways in OF_CELL.items() for how in ways.split(", ")}
    how = draw.choice([*changes, "twins"])
    if how == "twins":
        twins(lines, draw)
    else:
        changes[how](one_cell(lines, draw), draw, how)
    return how


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
    ways = "cell, case, case kept, target, footer, no footer, twice, status, digest, order, rows, unheard"
    what = draw.choice(ways.split(", "))
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
            others = "violates, bug, differs, unsupported, flaky, broken, not-applicable"
            cell["status"] = draw.choice(others.split(", "))
        case "digest":
            cell["behaviour"] = "".join(draw.sample(cell["behaviour"], len(cell["behaviour"]) - 1)) + "0"
        case "order":
            lines.remove(cell)
            lines.append(cell)
        case "rows":
            value(cell, draw)
        case "unheard":
            header["cases"].append("late-drops/unheard")
    return what


# Doors: what a command says of a file.


class Door(NamedTuple):
    arguments: tuple[str, ...]
    """``X`` is the falsified file, ``R`` the file as it was, ``A`` a file of reasons, and ``D`` a folder that a report is written to."""
    green: Callable[[str, Path], bool] = lambda _text, _folder: True
    """Whether what the command says, with an exit code of 0, is green: of its output and of the folder."""


def reasons(lines: Lines, draw: Draw) -> str:
    """Draw the text of a file of reasons that accepts something else, or gives no reason."""
    case = draw.choice(lines[0]["cases"] or ["none"])
    without = ["", "''", "' '", "'\u200b'", "null", "[]", "{}", "~", "'\u00ad\u2060'", "!!str"]
    others = [case.upper(), f"{case}x", "'*'", f"{case}\u200b", "late-drops/none"]
    elsewhere = ["from: 3.5.8", "to: 4.2.0", "change: accepted", "link: X-1"]
    entries = [f"{{case: {case}, because: {reason}}}" for reason in without]
    entries += [f"{{case: {name}, because: ok}}" for name in others]
    entries += [f"{{case: {case}, because: ok, {more}}}" for more in elsewhere]
    entries += ["{link: '', because: ok}", "{because: ok}", "{case: ~, because: ok}", "{case: [], because: ok}", case]
    return f"accepted:\n  - {draw.choice(entries)}\n"


def _says_no_exit(_text: str, folder: Path) -> bool:
    pages = (path.read_text(encoding="utf-8") for path in (folder / "upgrade").glob("*.html"))
    return not any(re.search(r"[Ee]xit [13]: ", page) for page in pages)


def _nothing_changes(text: str, _folder: Path) -> bool:
    wanted = f"spark-{BEFORE}", f"spark-{AFTER}"
    pairs = [pair for pair in json.loads(text)["pairs"] if (pair["before"], pair["after"]) == wanted]
    return not any(pair["changes"] or pair["silent"] or not pair["compared"] for pair in pairs)


def _export(*arguments: str, green: Callable[[str], bool]) -> Door:
    return Door(("case", "export", *arguments), lambda text, _folder: green(text))


GATE = ("gate", "X", *PAIR)
COMPARE: Mapping[str, Door] = {
    "gate": Door(GATE),
    "gate --fail-on any": Door((*GATE, "--fail-on", "any")),
    "gate --baseline": Door((*GATE, "--baseline", "R")),
    "gate --accept": Door((*GATE, "--accept", "A")),
    "maintain diff": Door(("maintain", "diff", "R", "X")),
    "export summary": _export(
        "summary", "X", *PAIR, green=lambda text: "No change in" in text and "without a result" not in text
    ),
    "export json, pairs": Door(("case", "export", "json", "X"), _nothing_changes),
    "report, one upgrade": Door(("report", "X", *PAIR, "-o", "D"), _says_no_exit),
}
JUDGE: Mapping[str, Door] = {
    "maintain combine": Door(("maintain", "combine", "X")),
    "export junit": _export(
        "junit", "X", green=lambda text: ' failures="0" errors="0"' in text.partition("<testsuite ")[0]
    ),
    "export badge": _export("badge", "X", green=lambda text: json.loads(text)["color"] == "brightgreen"),
    "export annotations": _export("annotations", "X", green=lambda text: not text.strip()),
    "export json": _export("json", "X", green=lambda text: json.loads(text)["exit_code"] == 0),
}
EVERY: Mapping[str, Door] = {**COMPARE, **JUDGE, "report": Door(("report", "X", "--single-file", "-o", "D"))}
OF_SILENCE = {name: door for name, door in EVERY.items() if not name.startswith("report")}
OF_TEXTS = {name: COMPARE[name] for name in ("gate", "gate --fail-on any", "maintain diff")}
OF_NOTHING = {
    name: COMPARE[name] for name in ("gate", "gate --fail-on any", "export json, pairs", "report, one upgrade")
}
KINDS: Mapping[Callable[[Lines, Draw], str], tuple[int, bool, Mapping[str, Door]]] = {
    behaviour: (10, True, COMPARE),
    status: (3, True, JUDGE),
    silence: (3, True, OF_SILENCE),
    empty: (2, True, OF_NOTHING),
    other_text: (1, True, OF_TEXTS),
    damage: (6, False, EVERY),
}
"""What falsifies, with how often it is drawn, whether digests and counts are computed again, and which doors must not be green."""


def asked(door: Door, x: Path, r: Path, accepted: str) -> tuple[Answer, bool]:
    """Ask a door about a file, and return whether its answer is green; ``accepted``: the text of the file of reasons."""
    (x.parent / "accepted.yaml").write_text(accepted, encoding="utf-8")
    places = {"X": x, "R": r, "A": x.parent / "accepted.yaml", "D": x.parent / "upgrade"}
    said = answer(*(places.get(part, part) for part in door.arguments))
    return said, said.code == 0 and door.green(said.out, x.parent)


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
        said, green = asked(EVERY[door], x, r, reasons(lines, draw))
    fell = said.last if green or said.unforeseen else ""
    yield Try(number, door, f"{falsify.__name__}: {what}", fell)
