"""Options that several commands have: each has one name, one type and one help text here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.core.state_stores import Name as StoreName
from harness.runtimes.options import Name

STEP_TIMEOUT_S = 120.0
"""Seconds one step may take, where nobody says."""

Paths = Annotated[list[Path] | None, typer.Argument(help="Cases or folders of cases; the suite's own by default.")]
Tag = Annotated[list[str] | None, typer.Option(help="Only cases with this tag. Repeatable.")]
ResultsFile = Annotated[Path, typer.Option(help="Where every answer is kept.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Engines at the same time; by default what cores and memory allow, and never more than the memory allows.",
        show_default=False,
    ),
]
Variants = Annotated[
    list[str] | None,
    typer.Option(
        help="Run each case in other ways too, which must not change its answer: the name of a variant, or all. Repeatable.",
    ),
]
SideBySide = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=64,
        help="Cases at the same time in each engine; by default what the cores allow, 8 at most.",
        show_default=False,
    ),
]
StepTimeout = Annotated[float, typer.Option(min=1, help="Seconds one step may take.")]
Store = Annotated[
    StoreName | None,
    typer.Option(help="Where state is kept, where the case does not say it itself; only versions that have it run."),
]
RuntimeName = Annotated[Name, typer.Option(help="Where engines run: on this machine, or each in a container.")]
Images = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VERSION=IMAGE",
        help="The container image for a version, a line or `all`; {spark} in it is the version. Repeatable.",
    ),
]
Memory = Annotated[str | None, typer.Option(help="Of each container; 3g by default.", metavar="SIZE")]
Cpus = Annotated[float | None, typer.Option(help="Of each container; 2 by default.")]
Connect = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="The Spark Connect server that runs the cases: sc://host:15002, with parameters behind /;. 3.5 and newer.",
        envvar="CONFORMANCE_CONNECT",
        show_envvar=False,
    ),
]
SparkHome = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="An unpacked Spark of one's own: what `--spark installed` means then."),
]
Label = Annotated[
    str | None,
    typer.Option(metavar="NAME", help='What the column is called, such as "Databricks 17.3"; of one version only.'),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Run tasks in a cluster: spark://host:7077, yarn, k8s://… or local-cluster[2,1,1024]. The driver stays here.",
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE", help="A Spark setting of each engine, such as spark.executor.memory=2g. Repeatable."
    ),
]
Storage = Annotated[
    str | None,
    typer.Option(
        metavar="PLACE",
        help="Where input, checkpoints and state are: a folder that this machine and every other have at the same path, or a URL "
        "that Spark reaches, such as hdfs://host:8020/tests.",
    ),
]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Ask the engines everything, even what they have answered before.")
]
Plain = Annotated[
    bool, typer.Option("--plain", help="Leave Spark's defaults, without the settings that only save time.")
]
AllowCode = Annotated[bool, typer.Option("--allow-code", help="Let cases call Python code of their authors.")]
Work = Annotated[Path | None, typer.Option(help="Folder for engines' working files, kept; a temporary one by default.")]
