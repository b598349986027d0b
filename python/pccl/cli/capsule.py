# SPDX-License-Identifier: Apache-2.0
"""``pccl capsule``: its options. ``pccl.cli.capsule_run`` runs it."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from pccl.cli import terminal

app = typer.Typer(
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)

EXAMPLES = terminal.examples(
    "pccl capsule check ring8.capsule",
    "pccl capsule show ring8.capsule",
    "pccl capsule simulate ring8.capsule --size 64M",
    "pccl capsule import ring.xml --output ring.capsule",
    "pccl capsule export ring.capsule --output ring.xml",
    "pccl capsule reproduce ring",
    "pccl capsule sign ring8.capsule --key private.pem",
    "pccl capsule bench ring8.capsule --max 16M",
)

_File = Annotated[Path, typer.Argument(metavar="FILE", help="A capsule.")]
_Ranks = Annotated[
    int | None,
    typer.Option(min=1, help="For how many, of a capsule for several numbers of ranks."),
]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


@app.callback()
def capsule() -> None:
    """Look at capsules: algorithms of collectives in files.

    pccl.lang writes them, pccl.capsule.load_capsule and PCCL_CAPSULES use them;
    docs/guide/capsules.md describes how. Programs are proven whenever a file is read.
    """


@app.command(
    "check",
    epilog=terminal.examples(
        "pccl capsule check *.capsule", "pccl capsule check ring.xml --plot wrong.svg"
    ),
)
def check(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="Capsules, MSCCL's XML (.xml) or plans of MSCCL++ (.json)."
        ),
    ],
    picture: Annotated[
        Path | None,
        typer.Option(
            "--plot", help="File for a picture of the first one's steps in conflict: .svg, .png."
        ),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Prove that programs are right; exit with 1 if one is not."""
    from pccl.cli import capsule_run

    raise typer.Exit(capsule_run.check(files, picture, as_json=as_json))


@app.command("show", epilog=terminal.examples("pccl capsule show ring8.capsule --json"))
def show(file: _File, ranks: _Ranks = None, as_json: _Json = False) -> None:
    """Print the manifest of a capsule, and its steps.

    For a capsule of several numbers of ranks, it prints a line for each instead of the steps.
    """
    from pccl.cli import capsule_run

    capsule_run.show(file, ranks, as_json=as_json)


@app.command("plot", epilog=terminal.examples("pccl capsule plot ring8.capsule --output ring.svg"))
def plot(
    file: _File,
    output: Annotated[Path, typer.Option(help="File for the picture: .svg, .png or .pdf.")],
    ranks: _Ranks = None,
) -> None:
    """Draw the messages of a capsule: ranks over rounds. Needs matplotlib."""
    from pccl.cli import capsule_run

    capsule_run.plot(file, ranks, output)


@app.command(
    "simulate",
    epilog=terminal.examples(
        "pccl capsule simulate ring8.capsule --size 1M --example h200_vm",
        "pccl capsule simulate ring8.capsule --load topo.xml --hosts 4",
    ),
)
def simulate(
    file: _File,
    size: Annotated[str, typer.Option(help="Of the largest buffer, bytes.")] = "64M",
    load: Annotated[
        Path | None, typer.Option(help="Topology XML of a host, instead of this machine.")
    ] = None,
    example: Annotated[
        str | None, typer.Option(help="A host that comes with pccl, as for pccl topo.")
    ] = None,
    hosts: Annotated[int, typer.Option(min=1, help="Equal hosts that share the ranks.")] = 1,
    ranks: _Ranks = None,
    as_json: _Json = False,
) -> None:
    """Predict what a capsule takes, beside the built-in algorithms."""
    from pccl.cli import capsule_run

    machine = capsule_run.machine_of(load, example)
    capsule = capsule_run.capsule_in(file, ranks)
    capsule_run.simulate(capsule, size, machine, hosts, as_json=as_json)


@app.command(
    "replay",
    epilog=terminal.examples(
        "pccl capsule replay ring8.capsule --network ring --size 1M",
        "pccl capsule replay ring:all_gather:16384 --network switch",
        "pccl capsule replay pat:all_gather:16384 --aggregation 64 --network switch",
        "pccl capsule replay ring8.capsule --network hosts:4 --trace ring8.json",
    ),
)
def replay(
    program: Annotated[
        str,
        typer.Argument(
            metavar="PROGRAM", help="A capsule, or a built-in ALGORITHM:COLLECTIVE:RANKS."
        ),
    ],
    network: Annotated[
        str,
        typer.Option(help="ring: circuits to the next rank; switch; hosts:N, of N ranks each."),
    ] = "switch",
    size: Annotated[str, typer.Option(help="Of the largest buffer, bytes.")] = "64M",
    bandwidth: Annotated[float, typer.Option(help="Of a rank's port, GB/s.")] = 12.5,
    across: Annotated[
        float | None, typer.Option(help="Of a host's link, GB/s.  [default: as a port]")
    ] = None,
    start: Annotated[float, typer.Option(help="Microseconds of a message (alpha).")] = 5.0,
    hop: Annotated[float, typer.Option(help="Microseconds of a hop (delta).")] = 1.0,
    ports: Annotated[int, typer.Option(min=1, max=2, help="Of each rank of a ring.")] = 1,
    aggregation: Annotated[
        int, typer.Option(min=0, help="Most blocks of a message (pat); 0: any number.")
    ] = 0,
    trace: Annotated[
        Path | None, typer.Option(help="File for all steps, for ui.perfetto.dev.")
    ] = None,
    ranks: _Ranks = None,
    as_json: _Json = False,
) -> None:
    """Play a program through, message by message.

    The network need not exist: circuits in a ring, a switch, or hosts with ranks that share a link.
    """
    from pccl.cli import capsule_replay

    port = capsule_replay.speed_of(bandwidth, start, hop)
    link = capsule_replay.speed_of(bandwidth if across is None else across, start, hop)
    made = capsule_replay.Program.of(program, ranks, aggregation)
    capsule_replay.replay(
        made,
        capsule_replay.network_of(network, made.ranks, port, link, ports),
        size,
        trace,
        as_json=as_json,
    )


@app.command(
    "import",
    epilog=terminal.examples(
        "pccl capsule import ring.xml --output ring.capsule",
        "pccl capsule import plan.json --output plan.capsule",
        "pccl capsule import custom.xml --output new.capsule --collective broadcast",
    ),
)
def import_file(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="MSCCL's XML, or an execution plan of MSCCL++ (.json)."
        ),
    ],
    output: Annotated[Path, typer.Option(help="File for the capsule.")],
    name: Annotated[str, typer.Option(help="The capsule's.  [default: the algorithm's]")] = "",
    collective: Annotated[
        str, typer.Option(help='The collective of XML with coll="custom", for example broadcast.')
    ] = "",
    root: Annotated[int, typer.Option(min=0, help="Its root.")] = 0,
    as_json: _Json = False,
) -> None:
    """Make a capsule of a program that others publish."""
    from pccl.cli import capsule_run

    capsule_run.import_file(file, output, name, collective, root, as_json=as_json)


@app.command(
    "export", epilog=terminal.examples("pccl capsule export ring.capsule --output ring.xml")
)
def export_file(
    file: _File,
    output: Annotated[Path, typer.Option(help="File for the program.")],
    form: Annotated[str, typer.Option("--format", help="msccl-xml.")] = "msccl-xml",
    ranks: _Ranks = None,
) -> None:
    """Write a capsule as a program that others read."""
    from pccl.cli import capsule_run

    capsule_run.export_file(file, ranks, output, form)


@app.command(
    "reproduce",
    epilog=terminal.examples(
        "pccl capsule reproduce list",
        "pccl capsule reproduce pat",
        "pccl capsule reproduce circuits rotation",
    ),
)
def reproduce(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME", help="As list prints them, or list.")
    ],
    measures: Annotated[
        bool, typer.Option("--measure/--no-measure", help="Time it on processes of this machine.")
    ] = True,
    as_json: _Json = False,
) -> None:
    """Print a paper's figures beside those found here.

    The description of its algorithm, the simulation of the program, and times of processes
    of this machine; of networks that are switched, simulation alone.
    """
    from pccl.cli import capsule_reproduce

    if names == ["list"]:
        capsule_reproduce.print_names(as_json=as_json)
    else:
        capsule_reproduce.reproduce(names, measures=measures, as_json=as_json)


@app.command("sign", epilog=terminal.examples("pccl capsule sign ring8.capsule --key private.pem"))
def sign(
    file: _File,
    key: Annotated[
        Path, typer.Option(help="A private key in PEM: openssl genpkey -algorithm ed25519.")
    ],
    output: Annotated[
        Path | None, typer.Option(help="File for the signed one.  [default: the same]")
    ] = None,
) -> None:
    """Sign a capsule, and print the public key for PCCL_TRUSTED_KEYS.

    Its digest stays as it is.
    """
    from pccl.cli import capsule_run

    capsule_run.sign(file, key, output or file)


@app.command("verify", epilog=terminal.examples("pccl capsule verify *.capsule --keys trusted.txt"))
def verify(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Capsules.")],
    keys: Annotated[
        Path | None,
        typer.Option(help="File of public keys, one a line.  [default: PCCL_TRUSTED_KEYS]"),
    ] = None,
) -> None:
    """Show the signers of capsules.

    Exit with 1 if one is not signed by a trusted key.
    """
    from pccl.cli import capsule_run

    raise typer.Exit(capsule_run.verify(files, keys))


@app.command(
    "bench",
    epilog=terminal.examples(
        "pccl capsule bench ring8.capsule --min 64K --max 16M",
        "pccl capsule bench ring8.capsule --max 1M --timeline ring8.json",
        "pccl capsule bench ring2.capsule --max 1M --timeline ring2.json --device cuda",
    ),
)
def bench(
    file: _File,
    smallest: Annotated[str, typer.Option("--min", help="Smallest size, bytes.")] = "1K",
    largest: Annotated[str, typer.Option("--max", help="Largest size, bytes.")] = "16M",
    factor: Annotated[int, typer.Option(help="From one size to the next.")] = 4,
    timeline: Annotated[
        Path | None,
        typer.Option(
            help="File for when each step of a call of the largest size happened, and when it "
            "should have: .json for ui.perfetto.dev, or .svg, .png or .pdf for a picture."
        ),
    ] = None,
    device: Annotated[
        Literal["cpu", "cuda"],
        typer.Option(help="Where the buffers of --timeline are; with cuda, nothing else is timed."),
    ] = "cpu",
    ranks: _Ranks = None,
    as_json: _Json = False,
) -> None:
    """Time a capsule beside what a group would choose.

    Between processes of this machine, as many as it is for. Times are medians of the slowest
    rank's, results are checked.
    """
    from pccl.cli import capsule_run

    if device == "cuda" and timeline is None:
        raise typer.BadParameter("cuda is for --timeline", param_hint="--device")
    sizes = capsule_run.Sizes(smallest, largest, factor)
    capsule = capsule_run.capsule_in(file, ranks)
    raise typer.Exit(capsule_run.bench(capsule, sizes, timeline, device, as_json=as_json))
