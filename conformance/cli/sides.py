"""On which side of a comparison of two versions a cluster or a Connect server runs."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias

import typer

from conformance.cli import engine_options
from conformance.cli.options import ENGINES, shared
from conformance.runner.resources import EngineUse
from harness.runtimes.cluster import StorageUrl
from harness.runtimes.connect import Endpoint, NoConnect
from harness.targets.targets import Target

Side: TypeAlias = Literal["from", "to"]


@dataclass(frozen=True)
class ConnectSides:
    connect: Annotated[
        str | None,
        shared("One side runs through this Spark Connect server, on this machine: sc://host:15002.", "URL", ENGINES),
    ] = None
    connect_side: Annotated[
        Side | None,
        shared(
            f"The side of --connect; by default --to. The address may then be in {engine_options.CONNECT}.",
            "from|to",
            ENGINES,
        ),
    ] = None

    @property
    def address(self) -> str | None:
        """The Connect server of one side; BadParameter if there is none though a side is named, or if it is on another machine."""
        # Alone, the variable says nothing about a comparison: other commands use it too.
        address = self.connect or (os.environ.get(engine_options.CONNECT) if self.connect_side else None)
        if address is None and self.connect_side is not None:
            what = f"pass the address of the server, --connect or {engine_options.CONNECT}"
            raise typer.BadParameter(what, param_hint="--connect-side")
        if address is not None and not Endpoint.parse(address).on_this_machine:
            what = "run this on the machine of the server, with its address there, sc://localhost:15002"
            raise typer.BadParameter(f"both sides use the same files: {what}", param_hint="--connect")
        return address


@dataclass(frozen=True)
class Sides(ConnectSides):
    master_side: Annotated[
        Side | None,
        shared("The only side that uses the cluster of --master; by default both do.", "from|to", ENGINES),
    ] = None

    def placed(self, before: Target, after: Target, where: EngineUse) -> tuple[Target, Target, EngineUse]:
        """Both versions, and where their engines run; NoConnect if the version of the Connect server has no streaming queries there.

        Raises typer.BadParameter: a side is named without a cluster, or a checkpoint cannot move between the sides.
        """
        runtime = where.runtime
        if self.master_side is not None and runtime.cluster is None:
            raise typer.BadParameter("pass the cluster of this side, --master", param_hint="--master-side")
        if isinstance(runtime.storage, StorageUrl):
            what = "checkpoints are copied from one version to the other: pass a folder that all machines share"
            raise typer.BadParameter(what, param_hint="--storage")
        if runtime.endpoint is not None:
            runtime = replace(runtime, beside_connect=True)
            side = before if self.connect_side == "from" else after
            if not side.connect:
                raise NoConnect(side)
            through = replace(side, through_connect=True)
            before, after = (through, after) if self.connect_side == "from" else (before, through)
        elif self.master_side is not None:
            runtime = replace(runtime, cluster_of=(before if self.master_side == "from" else after).name)
        return before, after, replace(where, runtime=runtime)
