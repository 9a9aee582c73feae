"""A soak of the whole program: commands in random order, disturbed as machines disturb them, from one seed; miniature engines.

``python -m tests.support.command_soak --seed 7 --commands 200`` or ``--minutes 30``. After each command: the exit code is documented and
follows from how the engines answer, no results of a wrong engine are green, each complete results file is there as it was or replaced as
a whole, no process and no temporary folder is left, and nothing printed is a traceback. Moments of kills are random, so their outcome must
be right whenever they fall; all else follows from the seed.
"""

import argparse
import json
import lzma
import os
import random
import re
import resource
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from tests.support.miniature import program

ROOT = Path(__file__).parents[2]
CASE = ROOT / "tests" / "support" / "miniature" / "cases" / "late-drops" / "windows.yaml"
BEFORE, AFTER = "3.5.9", "4.0.5"
RIGHT = ("right", "takes-its-time", "is-busy-at-first", "loses-an-executor-at-first")
WRONG = ("forgets-state", "keeps-late-rows", "one-batch-late", "drops-a-column")
SILENT = (
    *("splits-a-batch", "sees-no-rows", "repeats-its-steps"),
    *("does-not-start", "dies", "babbles", "loses-its-jvm", "driver-fails"),
)
"""How engines answer: what the case expects, other rows or columns, or nothing that a harness may judge."""
SUITES = {"cases": ("w25", "w26"), "more": ("w25", "w26", "w27")}
EXPORTS = {"junit": "xml", "badge": "json", "summary": "md", "json": "all.json"}
DISTURBANCES = {
    "nothing": 10,
    "SIGKILL": 3,
    "SIGTERM": 2,
    "SIGINT": 2,
    "full disk": 3,
    "small files": 1,
    "read-only": 1,
    "damaged cache": 2,
}
PRELOADED = (
    *(
        f"conformance.cli.{name}"
        for name in ("run", "upgrade", "validate", "gate", "diff", "combine", "report", "export", "main")
    ),
    *("conformance.oracle.cross_check", "conformance.oracle.unstated", "tests.support.miniature.two_versions"),
)
STOPPED, SECONDS = 130, 600
DISK = 48 << 20


class SoakFailure(AssertionError):
    """Something that must never be; the text has the steps and the command that repeats them."""


class Answered(NamedTuple):
    """What a complete results file says, read without the program's own reader."""

    statuses: tuple[tuple[str, str], ...]
    """The version that answered (of an upgrade the newer one) and the status, of each cell."""
    serials: tuple[int, ...]
    upgrade: bool

    @property
    def code(self) -> int:
        statuses = {status for _, status in self.statuses}
        return 1 if "violates" in statuses else 3 if statuses - {"conforms"} or not statuses else 0

    def versions(self) -> frozenset[str]:
        return frozenset(version for version, _ in self.statuses)


@dataclass
class Asked:
    """A command, and what it may answer if nothing disturbs it."""

    arguments: list[str]
    codes: frozenset[int]
    writes: str | None = None
    modes: Mapping[str, str] = field(default_factory=dict)
    serial: int = 0
    disturbed: bool = False
    """Whether it met a disturbance, so that its engines may have given no answer, which other commands copy."""


@dataclass
class Command:
    asked: Asked
    process: subprocess.Popen[bytes] | ForkProcess
    said: Path

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def ended(self) -> int:
        if isinstance(self.process, ForkProcess):
            self.process.join(SECONDS)
            code = self.process.exitcode
        else:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(SECONDS)
            code = self.process.returncode
        if code is None:
            self.process.kill()
            raise SoakFailure(f"{shlex.join(self.asked.arguments)}: no end within {SECONDS} s")
        return code


def forked(command: list[str], folder: Path, environ: Mapping[str, str], said: Path) -> None:
    """The program in a process that has its modules already."""
    with said.open("wb") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    tempfile.tempdir = None
    sys.argv = command
    program.main()


class CommandSoak:
    def __init__(self, folder: Path, seed: int, printing: bool = False) -> None:
        self.seed, self.folder, self.printing = seed, folder, printing
        self.draw = random.Random(seed)
        self.mark = f"soak-{uuid.uuid4().hex}"
        self.steps: list[str] = []
        self.commands, self.serial = 0, 0
        self.counts: Counter[str] = Counter()
        self.asked: dict[int, Asked] = {}
        self.known: dict[str, Answered] = {}
        self.logs = folder / "logs"
        self.disk = folder / "disk"
        self.logs.mkdir()
        self.disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(self.disk)]
        self.mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
        for each in ("out", "tmp"):
            (self.disk / each).mkdir()
        text = CASE.read_text(encoding="utf-8")
        for suite, cases in SUITES.items():
            (self.disk / suite).mkdir()
            for case in cases:
                wanted = text.replace("25 minutes", f"{case[1:]} minutes")
                (self.disk / suite / f"{case}.yaml").write_text(wanted, encoding="utf-8")
        (self.disk / "invalid").mkdir()
        (self.disk / "invalid" / "case.yaml").write_text(text.replace("steps:", "stebs:"), encoding="utf-8")

    def close(self) -> None:
        for process in self.processes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.disk)], check=True)

    def step(self) -> None:
        """Draw one command or two at once, and what disturbs them; raises `SoakFailure`."""
        asked = [self.drawn()]
        if self.draw.random() < 0.25:
            asked.append(self.drawn(beside=asked[0]))
        [disturbance] = self.draw.choices([*DISTURBANCES], [*DISTURBANCES.values()])
        clock = self.draw.randrange(1000) if self.draw.random() < 0.25 else None
        moment = self.draw.uniform(0.0, 1.0)
        wanted = self.draw.randrange(1 << 30)
        described = " & ".join(shlex.join(each.arguments) + f" {json.dumps(each.modes)}" for each in asked)
        at = f" after {moment:.2f} s" if disturbance.startswith("SIG") else ""
        self.steps.append(f"{disturbance}{at}{'' if clock is None else f', clock {clock}'}: {described}")
        if self.printing:
            print(f"{len(self.steps)}. {self.steps[-1]}", flush=True)
        try:
            self.run(asked, disturbance, clock, moment, random.Random(wanted))
        except SoakFailure as failure:
            steps = "\n".join(f"{number}. {step}" for number, step in enumerate(self.steps, 1))
            again = f"python -m tests.support.command_soak --seed {self.seed} --commands {self.commands}"
            raise SoakFailure(f"{failure}\nseed {self.seed}, steps:\n{steps}\nAgain: {again}") from None
        self.counts.update(
            [disturbance, *(each.arguments[0] for each in asked)], clock=clock is not None, pairs=len(asked) - 1
        )

    def drawn(self, beside: Asked | None = None) -> Asked:
        runs = sorted(name for name, known in self.known.items() if not known.upgrade)
        both = [name for name in runs if len(self.known[name].versions()) == 2 and name != (beside and beside.writes)]
        choices = {"run": 6, "upgrade": 3, "validate": 1}
        if both:
            choices |= {"gate": 2, "diff": 2, "combine": 2, "report": 1, "export": 2}
        [command] = self.draw.choices([*choices], [*choices.values()])
        if command in ("run", "upgrade"):
            return self.engines(command, beside)
        if command == "validate":
            suite = self.draw.choice(["cases", "invalid"])
            return Asked(["case", "validate", suite], frozenset({0 if suite == "cases" else 2}))
        one, other = self.draw.choice(both), self.draw.choice(both)
        match command:
            case "gate":
                arguments = ["gate", f"out/{one}", "--from", BEFORE, "--to", AFTER, "--cases", self.suite_of(one)]
                changed = self.differ(one, BEFORE, one, AFTER)
                return Asked(arguments, frozenset({1, 3} if changed is None else {int(changed)}))
            case "diff":
                differ = [self.differ(one, version, other, version) for version in (BEFORE, AFTER)]
                known = {int(True in differ)} if True in differ or None not in differ else {0, 1}
                return Asked(["maintain", "diff", f"out/{one}", f"out/{other}"], frozenset(known))
            case "combine":
                output = self.output(self.draw.choice(["combined.jsonl", "combined.jsonl.xz"]), beside)
                return Asked(
                    ["maintain", "combine", f"out/{one}", "-o", f"out/{output}"],
                    frozenset({self.known[one].code}),
                    output,
                )
            case "report":
                return Asked(
                    ["report", f"out/{one}", "--cases", self.suite_of(one), "-o", self.output("site", beside)],
                    frozenset({0}),
                )
        format = self.draw.choice([*EXPORTS])
        output = f"exported.{format}.{EXPORTS[format]}"
        arguments = ["case", "export", format, f"out/{one}", "-o", self.output(output, beside)]
        return Asked(arguments + ["--cases", self.suite_of(one)] * (format == "json"), frozenset({0}))

    def engines(self, command: str, beside: Asked | None) -> Asked:
        self.serial += 1
        both = self.draw.random() < 0.7
        versions = [BEFORE, AFTER] if both or command == "upgrade" else [self.draw.choice([BEFORE, AFTER])]
        how = [self.draw.choice(self.draw.choices([RIGHT, WRONG, SILENT], [4, 2, 1])[0]) for _ in versions]
        output = self.output(self.draw.choice(["a.jsonl", "b.jsonl", "c.jsonl.xz"]), None)
        arguments = [command, self.draw.choice([*SUITES]), *self.draw.choice([[], [], ["--fresh"], ["--jobs", "2"]])]
        if command == "run":
            arguments += [part for version in versions for part in ("--spark", version)]
            arguments += self.draw.choice([[], [], ["--variant", "restart"], ["--repeat", "2"]])
            code = 1 if {*how} & {*WRONG} else 3 if {*how} & {*SILENT} else 0
        else:
            arguments += ["--from", BEFORE, "--to", AFTER]
            # What the older version does wrong may be nothing that a checkpoint shows.
            how = [
                self.draw.choice(RIGHT),
                self.draw.choice([*RIGHT, "forgets-on-resume", "keeps-late-rows", "does-not-start", "dies"]),
            ]
            output = f"upgrade-{output}"
            code = 0 if how[1] in RIGHT else 3 if how[1] in SILENT else 1
        arguments += ["--step-timeout", f"{60 + self.serial / 1e6:.6f}", "-o", f"out/{output}"]
        codes = {code, 2} if beside is not None and beside.writes == output else {code}
        modes = {f"spark-{version}": mode for version, mode in zip(versions, how, strict=True)}
        asked = Asked(arguments, frozenset(codes), output, modes, self.serial)
        if beside is not None and beside.writes == output:
            beside.codes |= {2}
        self.asked[self.serial] = asked
        return asked

    def output(self, name: str, beside: Asked | None) -> str:
        """A name that the command beside does not write."""
        taken = beside is not None and any(part.endswith(name) for part in beside.arguments)
        return f"other-{name}" if taken else name

    def suite_of(self, name: str) -> str:
        return self.asked[self.known[name].serials[0]].arguments[1]

    def differ(self, one: str, here: str, other: str, there: str) -> bool | None:
        """Whether the answers of two versions in different files differ; None if an answer is missing."""
        kinds = set()
        for name, version in ((one, f"spark-{here}"), (other, f"spark-{there}")):
            answered = self.known[name]
            if any(status == "broken" for of, status in answered.statuses if of == version):
                return None
            mode = self.asked[answered.serials[0]].modes[version]
            kinds.add("right" if mode in RIGHT else mode)
        return len(kinds) > 1

    def run(self, asked: list[Asked], disturbance: str, clock: int | None, moment: float, draw: random.Random) -> None:
        known = self.contents()
        if disturbance == "damaged cache":
            self.damage(draw)
        with self.disturbed(disturbance, draw):
            limit = draw.choice([256, 4096, 16384, 65536]) if disturbance == "small files" else None
            # Most programs have their modules already, so that more of them run; one in ten is started as users start it.
            whole = draw.random() < 0.1
            for each in asked:
                each.disturbed = disturbance != "nothing"
            commands = [self.start(each, clock, limit, whole) for each in asked]
            killed = getattr(signal, disturbance, None)
            if killed is not None:
                time.sleep(moment * (3 if whole else 1))
                with suppress(ProcessLookupError):
                    os.kill(commands[0].pid, killed)
            codes = [command.ended() for command in commands]
            self.check_processes(killed == signal.SIGKILL)
        self.commands += len(commands)
        codes = [
            self.check_ended(
                command,
                code,
                disturbance,
                killed if number == 0 else None,
                [other.asked.writes for other in commands if other is not command],
            )
            for number, (command, code) in enumerate(zip(commands, codes, strict=True))
        ]
        self.check_files(known, commands, codes, disturbance)
        self.check_left(killed)
        for command in commands:
            command.said.unlink()

    def start(self, asked: Asked, clock: int | None, limit: int | None, whole: bool) -> Command:
        said = self.logs / f"{len(self.steps)}-{asked.arguments[0]}-{uuid.uuid4().hex[:6]}"
        environ = {name: value for name, value in os.environ.items() if not name.startswith("CONFORMANCE_")}
        environ |= {
            "PYTHONPATH": str(ROOT),
            "CONFORMANCE_ANSWERS": str(self.disk / "answers.sqlite"),
            "SOAK": self.mark,
        }
        environ |= {
            "CONFORMANCE_CACHE": str(self.disk / "cache"),
            "TMPDIR": str(self.disk / "tmp"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        settings = json.dumps({"modes": asked.modes, "clock": clock, "largest_file": limit})
        said.touch()  # a process may be killed before it has begun
        command = [settings, *asked.arguments]
        if whole:
            with said.open("wb") as file:
                started = subprocess.Popen(
                    [sys.executable, "-m", program.__name__, *command],
                    cwd=self.disk,
                    env=environ,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                )
            return Command(asked, started, said)
        process = get_context("fork").Process(
            target=forked, args=([program.__file__, *command], self.disk, environ, said)
        )
        stopping = signal.SIGINT, signal.SIGTERM
        before = [signal.signal(number, signal.SIG_DFL) for number in stopping]
        process.start()
        for number, handler in zip(stopping, before, strict=True):
            signal.signal(number, handler)
        return Command(asked, process, said)

    @contextmanager
    def disturbed(self, disturbance: str, draw: random.Random) -> Iterator[None]:
        filler = self.disk / "filler"
        if disturbance == "full disk" and self.mounted:
            free = shutil.disk_usage(self.disk).free
            room = draw.choice([0, 0, 4096, 16384, 65536, 262144])
            with suppress(OSError), filler.open("wb") as file:
                file.write(b"\0" * max(0, free - room))
        if disturbance == "read-only" and self.mounted:
            remount = ["mount", "-o", "remount,ro", str(self.disk)]
            while subprocess.run(remount, capture_output=True, check=False).returncode:
                time.sleep(0.05)  # a process that is ending has its files open still
        elif disturbance == "read-only" and os.geteuid():
            (self.disk / "out").chmod(0o555)
        try:
            yield
        finally:
            if disturbance == "read-only" and self.mounted:
                subprocess.run(["mount", "-o", f"remount,rw,size={DISK}", str(self.disk)], check=True)
            (self.disk / "out").chmod(0o755)
            filler.unlink(missing_ok=True)

    def damage(self, draw: random.Random) -> None:
        """Cut answers or the file of answers off, or write zeros over a sector of it, as disks do."""
        file = self.disk / "answers.sqlite"
        if not file.exists():
            return
        kind = draw.choice(["answers", "end", "log", "sector"])
        if kind == "answers":
            with suppress(sqlite3.Error):
                connection = sqlite3.connect(file)
                with connection:
                    connection.execute("UPDATE answers SET answer = substr(answer, 1, length(answer) / 2)")
                connection.close()
        elif kind == "sector":
            with file.open("r+b") as opened:
                opened.seek(draw.randrange(max(1, file.stat().st_size // 512)) * 512)
                opened.write(b"\0" * 512)
        else:
            cut = file if kind == "end" else Path(f"{file}-wal")
            if cut.exists():
                os.truncate(cut, draw.randrange(cut.stat().st_size + 1))

    def check_ended(
        self, command: Command, code: int, disturbance: str, killed: signal.Signals | None, others: Sequence[str | None]
    ) -> int:
        """Returns the exit code; that of the signal if Python was still starting, which then says what it likes and exits with 1.

        ``others``: the files that commands beside it wrote."""
        asked, said = command.asked, command.said.read_text(encoding="utf-8", errors="replace")
        if killed == signal.SIGINT and "Traceback" in said and "conformance/cli/" not in said:
            return -killed
        allowed = set(asked.codes)
        if killed is not None:
            # Python ends with SIGINT, which shells call 130, if a KeyboardInterrupt comes when nothing handles it any more.
            allowed |= {-killed} if killed == signal.SIGKILL else {-killed, -signal.SIGINT, STOPPED}
        if disturbance in ("full disk", "small files", "read-only"):
            allowed |= {2, 3} if disturbance == "read-only" else {3}
            if 1 in allowed and asked.arguments[0] in ("run", "upgrade"):
                allowed.add(3)
        if any(name and f"{name}: the file changed while it was read" in said for name in others):
            allowed.add(3)
        if code not in allowed:
            self.fail(command, code, f"exit code {code} is none of {sorted(allowed)}")
        if "a defect of this program" in said or "Traceback (most recent call last)" in said:
            self.fail(command, code, "a traceback or a defect")
        return code

    def check_files(
        self, before: Mapping[str, bytes], commands: list[Command], codes: list[int], disturbance: str
    ) -> None:
        after = self.contents()
        written = {command.asked.writes for command in commands}
        for name in before.keys() | after.keys():
            old, new = before.get(name), after.get(name)
            if old == new or new is None:
                if name in self.known and new is None:
                    raise SoakFailure(f"{name} is lost")
                continue
            if name not in written:
                raise SoakFailure(f"{name} was changed by a command that does not write it")
            answered = read(new)
            if answered is None:
                if name in self.known:
                    raise SoakFailure(f"{name} was complete and is not any more")
                continue
            self.known[name] = answered
            for serial in answered.serials:
                asked = self.asked[serial]
                self.check_answers(name, answered, asked.modes, asked.disturbed or disturbance != "nothing")
        for command, code in zip(commands, codes, strict=True):
            output = command.asked.writes
            if output is None or code not in (0, 1):
                continue
            if output not in self.known or (self.known[output].code != code and written != {output}):
                self.fail(command, code, f"{output} is not what the exit code says")
            others = [each.asked.writes for each in commands if each is not command]
            if command.asked.serial and output not in others and command.asked.serial not in self.known[output].serials:
                self.fail(command, code, f"{output} is of another run")
        for path in (self.disk / "site").rglob("*.html"):
            if not path.read_bytes().rstrip().endswith(b"</html>"):
                raise SoakFailure(f"{path} is cut off")
        for path in self.disk.glob("*exported.*"):
            with suppress(ElementTree.ParseError, json.JSONDecodeError):
                if path.suffix == ".xml":
                    ElementTree.parse(path)
                elif path.suffix == ".json":
                    json.loads(path.read_bytes())
                continue
            if path.suffix in (".xml", ".json"):
                raise SoakFailure(f"{path} is cut off")

    def check_answers(self, name: str, answered: Answered, modes: Mapping[str, str], disturbed: bool) -> None:
        for version in answered.versions():
            mode = modes[version]
            statuses = {status for of, status in answered.statuses if of == version}
            good, silent = {"conforms"}, {"broken"}
            wanted = good if mode in RIGHT else silent if mode in SILENT else None
            if wanted is None and statuses <= good:
                raise SoakFailure(f"{name}: {version} with {mode} is green")
            if wanted is not None and not statuses <= (wanted | silent if disturbed else wanted):
                raise SoakFailure(f"{name}: {version} with {mode} is {statuses}")

    def check_processes(self, killed: bool) -> None:
        """Without SIGKILL, engines end before the program does; after it, when they notice."""
        limit = time.monotonic() + (30.0 if killed else 0.0)
        while left := self.processes():
            if time.monotonic() >= limit:
                raise SoakFailure(f"processes are left: {left}")
            time.sleep(0.02)

    def processes(self) -> dict[int, str]:
        found, mark = {}, f"SOAK={self.mark}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (folder / "environ").read_bytes():
                    found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return found

    def check_left(self, killed: signal.Signals | None) -> None:
        """Whatever ends a command except SIGKILL, which leaves temporary folders to the system, leaves none."""
        for path in (self.disk / "tmp").iterdir():
            # `tempfile` tries each folder with a file of its own, which a signal may leave.
            tried = killed is not None and re.fullmatch(r"[a-z0-9_]{8}", path.name) and path.is_file()
            if killed != signal.SIGKILL and not tried:
                raise SoakFailure(f"a temporary file is left: {path.name}")
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def contents(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (self.disk / "out").iterdir() if path.suffix != ".part"}

    def fail(self, command: Command, code: int, why: str) -> None:
        said = command.said.read_text(encoding="utf-8", errors="replace")[-4000:] if command.said.exists() else ""
        raise SoakFailure(f"{shlex.join(command.asked.arguments)} ({code}): {why}\n{said}")


def read(content: bytes) -> Answered | None:
    """None if the file is not complete."""
    try:
        text = lzma.decompress(content) if content.startswith(b"\xfd7zXZ") else content
        records = [json.loads(line) for line in text.splitlines()]
    except (lzma.LZMAError, json.JSONDecodeError):
        return None
    if not records or records[-1]["record"] != "footer":
        return None
    cells = [record for record in records if record["record"] == "cell"]
    upgrade = bool(records[0].get("pairs"))
    serials = re.findall(r"--step-timeout 60\.(\d{6})", records[0]["command"])
    statuses = tuple((cell["target"], cell["status"]) for cell in cells)
    return Answered(statuses, tuple(map(int, serials)), upgrade)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commands", type=int, default=sys.maxsize)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--print", action="store_true")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for module in PRELOADED:
        import_module(module)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="command-soak-") as folder:
        soak = CommandSoak(Path(folder), options.seed, options.print)
        try:
            while soak.commands < options.commands and (
                options.minutes is None or time.monotonic() - began < options.minutes * 60
            ):
                soak.step()
        except SoakFailure as failure:
            sys.exit(str(failure))
        finally:
            soak.close()
    seconds = time.monotonic() - began
    print(
        f"seed {options.seed}: {soak.commands} commands in {len(soak.steps)} steps, {seconds:.0f} s; {dict(soak.counts.most_common())}"
    )


if __name__ == "__main__":
    main()
