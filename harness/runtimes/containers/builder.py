"""Builds an image of a Spark version from PyPI's pyspark, with ``harness/runtimes/containers/images/Dockerfile`` and its secrets."""

import os
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from importlib.resources import as_file, files
from pathlib import Path

from conformance.core.child_process import OUTSIDE, as_seen_from_here, every, run, run_streaming, which
from conformance.core.errors import WrongUsage
from conformance.core.temporary_folder import temporary_folder
from harness.environments import installer
from harness.environments.installer import specifier
from harness.errors import HarnessError
from harness.progress import ProgressCallback, ignore_progress
from harness.runtimes.containers.images import built
from harness.targets.targets import Target

_TAIL_LINES = 12
_LINE_WIDTH = 200
_PROGRESS = re.compile(r"#\d+ (sha256:|DONE|transferring|resolve )")
"""Lines of BuildKit that do not help to explain a failure."""
_CERTIFICATES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
"""Variables that name the CA bundle of a machine behind a proxy; the build needs it too."""
_INDEX_SETTINGS = ("index-url", "extra-index-url", "trusted-host")
_BUILDKIT_DEFAULT = 23
"""From this version on docker's client builds only with its plugin buildx."""


def find_builder(environ: Mapping[str, str] = os.environ) -> tuple[list[str], dict[str, str]]:
    """The command of the first docker client on PATH, else podman, that builds with secrets, and its variables. Raises ``HarnessError``."""
    environ = as_seen_from_here(environ)
    tried = []
    for docker in every("docker", environ):
        command = [docker, "build", "--progress=plain"]
        if run([docker, "buildx", "version"], cwd=OUTSIDE, environ=environ).returncode == 0:
            return command, environ
        version = run([docker, "version", "--format", "{{.Client.Version}}"], cwd=OUTSIDE, environ=environ)
        major = version.stdout.strip().partition(".")[0]
        if major.isdigit() and int(major) < _BUILDKIT_DEFAULT:
            return command, {**environ, "DOCKER_BUILDKIT": "1"}
        tried.append(f"{docker} without its plugin buildx")
    if podman := which("podman", environ):
        return [podman, "build"], environ
    programs = f"Found: {'; '.join(tried)}." if tried else "Neither is installed."
    raise HarnessError(
        f"Building an image requires docker with BuildKit, or podman. {programs}\n"
        "Install docker's plugin (docker-buildx-plugin, docker-buildx) or podman."
    )


def build(
    target: Target,
    *,
    base: str | None = None,
    ca: Path | None = None,
    index_url: str | None = None,
    requirements: Sequence[str] | None = None,
    tag: str | None = None,
    on_progress: ProgressCallback = ignore_progress,
    environ: Mapping[str, str] = os.environ,
) -> str:
    """Build the image of a target and return its name.

    Args:
        base: a Debian or Ubuntu image; missing Python and Java are installed from the distribution. By default the target's.
        ca: a CA bundle in PEM, by default the one that this machine's variables name.
        index_url: the package index, by default that of this machine's pip.
        requirements: by default the target's pyspark and the packages it needs.
        tag: the image's name, by default the one that runs use.

    Raises:
        WrongUsage: the target needs a base image and none was named, or there is no CA bundle at ``ca``.
        HarnessError: there is no program that builds images, or the build fails.
    """
    base = base or target.base
    if base is None:
        raise WrongUsage(
            f"no Debian or Ubuntu has both CPython {specifier(target.python)} and {target.java} for {target}:"
            " name an image that has them (--base IMAGE)"
        )
    builder, variables = find_builder(environ)
    name = tag or built(target)
    bundles = (Path(environ[variable]) for variable in _CERTIFICATES if environ.get(variable))
    with ExitStack() as stack:
        dockerfile = stack.enter_context(as_file(files("harness.runtimes.containers") / "images" / "Dockerfile"))
        context = str(stack.enter_context(temporary_folder()))
        secrets = stack.enter_context(temporary_folder())
        command = [
            *(*builder, "--file", str(dockerfile), "--tag", name),
            *_secrets(secrets, ca or next(filter(Path.is_file, bundles), None), _pip_settings(environ, index_url)),
            *("--build-arg", f"BASE_IMAGE={base}"),
            *("--build-arg", f"JAVA={target.base_java}"),
            *("--build-arg", f"REQUIREMENTS={' '.join(requirements or (target.requirement, *target.packages))}"),
            context,
        ]
        tail = run_streaming(command, variables, lambda line: _report(line, on_progress), keep=_TAIL_LINES)
    if tail is not None:
        lines = "\n".join(f"  {line}" for line in tail)
        raise HarnessError(f"Building {name} on {base} failed. The last lines:\n{lines}\n{_advice(lines)}")
    return name


def _report(line: str, on_progress: ProgressCallback) -> str | None:
    """Report the steps; returns what may explain a failure."""
    if not line.strip() or _PROGRESS.search(line):
        return None
    if "[" in line or "Collecting" in line or "Downloading" in line:
        on_progress(line.strip())
    return textwrap.shorten(line, _LINE_WIDTH, placeholder=" …")


def _secrets(folder: Path, ca: Path | None, pip: str) -> Iterator[str]:
    if ca is not None:
        if not ca.is_file():
            raise WrongUsage(f"no CA bundle at {ca}")
        yield from ("--secret", f"id=ca,src={ca.absolute()}")
    if pip:
        written = folder / "pip.conf"
        written.touch(mode=0o600)
        written.write_text(pip, encoding="utf-8")
        yield from ("--secret", f"id=pip,src={written}")


def _pip_settings(environ: Mapping[str, str], index_url: str | None) -> str:
    configured = {name: value for name, value in installer.index_settings(environ).items() if name in _INDEX_SETTINGS}
    if index_url:
        configured["index-url"] = index_url
    return "[global]\n" + "".join(f"{name} = {value}\n" for name, value in configured.items()) if configured else ""


def _advice(output: str) -> str:
    """What to do about a failure, guessed from the build's output: its exit code does not tell failures apart."""
    lowered = output.lower()
    if "certificate" in lowered:
        return "If a proxy uses its own CA, name its bundle: --ca bundle.pem"
    if "no matching distribution" in lowered or "could not find a version" in lowered:
        return "The index lacks a package, or this Spark does not support the base's Python: --index-url, --base"
    if "pull access denied" in lowered or "failed to resolve" in lowered or "failed to do request" in lowered:
        return "The base image cannot be pulled. Name one on this machine or your mirror: --base registry/debian:tag"
    return "Behind a mirror, name a base image with Python and Java (--base), a CA bundle (--ca) and an index (--index-url)."
