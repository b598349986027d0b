# SPDX-License-Identifier: Apache-2.0
"""What ``pccl capsule`` does."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from pccl import topology
from pccl._internal import whole_file
from pccl.bench import capsule_timeline
from pccl.bench import capsules as benchmark
from pccl.bench.sizes import bytes_of, sizes_between
from pccl.capsule import Capsule
from pccl.cli import program_files, terminal
from pccl.errors import Error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pccl.bench.capsule_recording import Recorded
    from pccl.results import table

__all__ = [
    "Sizes",
    "bench",
    "capsule_in",
    "check",
    "export_file",
    "import_file",
    "machine_of",
    "plot",
    "show",
    "sign",
    "simulate",
    "verify",
]

Device: TypeAlias = Literal["cpu", "cuda"]

_MOST_LINKS = 40  # characters


def check(files: Sequence[Path], picture: Path | None, *, as_json: bool) -> int:
    """Print a line for each file, or one object for all; return the exit status.

    The first that is wrong is drawn, where its steps are.
    """
    found: list[dict[str, Any]] = []
    for file in files:
        try:
            capsule = program_files.program_in(file)
        except Error as error:
            found.append({"file": str(file), "is_right": False, "error": str(error)})
            if not as_json:
                terminal.complain(str(error))
            if picture and (figure := program_files.drawn_conflict(file, str(error))):
                figure.savefig(picture, bbox_inches="tight")
                picture = None
            continue
        found.append(
            {
                "file": str(file),
                "is_right": True,
                "digest": capsule.digest,
                "protocol": capsule.protocol,
                "links": capsule.manifest.get("links", ""),
            }
        )
        if not as_json:
            print(f"{file}: right: {_in_short(capsule)}")
    if as_json:
        terminal.print_json({"capsules": found})
    return 0 if all(each["is_right"] for each in found) else 1


def _in_short(capsule: Capsule) -> str:
    protocol = f", by {capsule.protocol} between GPUs" if capsule.protocol else ""
    manifest = capsule.manifest
    programs = f", {_program(manifest)}" if len(capsule.ranks) == 1 else ""
    return (
        f"{capsule.name}, {manifest['collective']}, {manifest['ranks']} ranks{programs}{protocol}"
    )


def _program(manifest: Mapping[str, Any]) -> str:
    return f"{manifest['rounds']} rounds, {manifest['steps']} steps{_links(manifest)}"


def _links(manifest: Mapping[str, Any]) -> str:
    """Name the links where they are few."""
    links: str = manifest.get("links", "")
    if not links or len(links) > _MOST_LINKS:
        return ""
    return f", links {links}"


def capsule_in(file: Path, ranks: int | None) -> Capsule:
    """Return what a file has for so many ranks; None for its only number."""
    capsule = Capsule.load(file)
    if ranks is not None:
        return capsule.for_ranks(ranks)
    if len(capsule.ranks) > 1:
        numbers = capsule.manifest["ranks"]
        raise ValueError(
            f"{file} is for {numbers} ranks: choose one of them, --ranks {capsule.ranks[0]}"
        )
    return capsule


def show(file: Path, ranks: int | None, *, as_json: bool) -> None:
    """Print manifest, digest and steps; of several numbers of ranks, the manifests."""
    capsule = Capsule.load(file)
    if len(capsule.ranks) > 1 and ranks is None:
        _show_all(capsule, as_json=as_json)
        return
    capsule = capsule if ranks is None else capsule.for_ranks(ranks)
    if as_json:
        steps = [step.row() for step in capsule.schedule.steps]
        terminal.print_json(capsule.manifest | {"digest": capsule.digest, "all_steps": steps})
        return
    print(json.dumps(capsule.manifest, indent=1, ensure_ascii=True))
    print(f"sha256 {capsule.digest}\n{capsule.schedule}", end="")


def _show_all(capsule: Capsule, *, as_json: bool) -> None:
    programs = [capsule.for_ranks(ranks).manifest for ranks in capsule.ranks]
    if as_json:
        terminal.print_json(capsule.manifest | {"digest": capsule.digest, "all_programs": programs})
        return
    print(json.dumps(capsule.manifest, indent=1, ensure_ascii=True))
    print(f"sha256 {capsule.digest}")
    for manifest in programs:
        print(f"{manifest['ranks']} ranks: {_program(manifest)}")


def plot(file: Path, ranks: int | None, output: Path) -> None:
    """Write a picture."""
    capsule_in(file, ranks).plot().savefig(output, bbox_inches="tight")


def machine_of(load: Path | None, example: str | None) -> topology.Topology:
    """Return the requested host, by default this one."""
    if load and example:
        raise ValueError("--load and --example name two machines: leave one out")
    if load:
        return topology.load(load)
    return topology.example(example) if example else topology.detect()


def simulate(
    capsule: Capsule, size: str, machine: topology.Topology, hosts: int, *, as_json: bool
) -> None:
    """Print a prediction."""
    ranks = capsule.schedule.ranks
    if ranks % hosts:
        raise ValueError(f"{ranks} ranks do not divide among {hosts} hosts")
    each = ranks // hosts
    job = topology.Job.of(
        [(f"host{i}", range(each * i, each * (i + 1)), machine) for i in range(hosts)]
    )
    found = capsule.simulate(job, bytes_of(size))
    if not as_json:
        print(found)
        return
    figures = {
        "rounds": found.rounds,
        "messages": found.messages,
        "bytes_sent": found.bytes_sent,
        "bytes_reduced": found.bytes_reduced,
        "busiest": found.busiest,
    }
    terminal.print_json({"name": found.name, **figures, "ways": found.rows})


def import_file(
    file: Path, output: Path, name: str, collective: str, root: int, *, as_json: bool
) -> None:
    """Write a capsule."""
    if file.suffix == ".json":
        if collective:
            raise ValueError("--collective is for MSCCL's XML; a plan of MSCCL++ names its own")
        capsule = Capsule.from_mscclpp(file, name=name)
    else:
        capsule = Capsule.from_msccl(file, name=name, collective=collective, root=root)
    capsule.save(output)
    if as_json:
        terminal.print_json(capsule.manifest | {"digest": capsule.digest, "file": str(output)})
    else:
        print(f"{output}: {capsule}")


def export_file(file: Path, ranks: int | None, output: Path, form: str) -> None:
    """Write a program."""
    if form != "msccl-xml":
        raise ValueError(f"--format is {form!r}; there is msccl-xml")
    text = capsule_in(file, ranks).to_msccl()
    whole_file.write_whole(output, text.encode())
    print(f"{output}: {len(text)} bytes")


def sign(file: Path, key: Path, output: Path) -> None:
    """Write a signed capsule."""
    signed = Capsule.load(file).signed(key)
    signed.save(output)
    print(f"{output}: signed by {signed.signer}")


def verify(files: Sequence[Path], keys: Path | None) -> int:
    """Print a line for each file; return the exit status."""
    named = keys or os.environ.get("PCCL_TRUSTED_KEYS")
    if not named:
        raise ValueError("no keys: give --keys FILE, or set PCCL_TRUSTED_KEYS")
    status = 0
    for file in files:
        try:
            capsule = Capsule.load(file)
            capsule.check_signer(named)
            print(f"{file}: signed by {capsule.signer}")
        except Error as error:
            text = str(error)
            terminal.complain(text if text.startswith(str(file)) else f"{file}: {text}")
            status = 1
    return status


class Sizes(NamedTuple):
    """Sizes of a sweep, as they are written."""

    smallest: str
    largest: str
    factor: int

    def all(self) -> tuple[int, ...]:
        """Return them in bytes, ascending."""
        return sizes_between(bytes_of(self.smallest), bytes_of(self.largest), self.factor)


def bench(
    capsule: Capsule, sizes: Sizes, timeline: Path | None, device: Device, *, as_json: bool
) -> int:
    """Print a line for each size, and write a timeline; return the exit status."""
    rows = []
    if not as_json:
        print(f"# {capsule}")
    if device == "cpu":
        rows = _rows(capsule, sizes.all(), is_shown=not as_json)
    report: dict[str, Any] = {"name": capsule.name, "rows": [row.row() for row in rows]}
    if timeline:
        recorded = capsule_timeline.recorded(capsule.data, sizes.all()[-1], device)
        report["timeline"] = _written(recorded, timeline, is_shown=not as_json)
    if as_json:
        terminal.print_json(report)
    return 1 if any(row.wrong for row in rows) else 0


def _rows(capsule: Capsule, sizes: tuple[int, ...], *, is_shown: bool) -> list[benchmark.Row]:
    rows = []
    if is_shown:
        print(benchmark.Row.header())
    for row in benchmark.measured(capsule.data, sizes):
        rows.append(row)
        if is_shown:
            print(row.line(), flush=True)
    return rows


def _written(recorded: Recorded, file: Path, *, is_shown: bool) -> table.Fields:
    """Write the timeline of a call, and return its figures."""
    found = recorded.timeline
    if file.suffix == ".json":
        found.save_trace(file)
    else:
        found.plot().savefig(file, bbox_inches="tight")
    if is_shown:
        print(f"# {found}")
        print(
            f"# recording makes a call {recorded.cost:+.1%} longer: {recorded.recorded_us:.2f} us "
            f"against {recorded.us:.2f} us"
        )
        print(f"{file}: written")
    return found.row() | {"us": recorded.us, "recorded_us": recorded.recorded_us}
