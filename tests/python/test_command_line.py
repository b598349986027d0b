# SPDX-License-Identifier: Apache-2.0
"""The command ``pccl`` as one meets it in a terminal of 80 columns."""

from __future__ import annotations

import itertools
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pccl
from pccl import topology
from pccl.bench import tune
from pccl.cli import status
from pccl.cli.main import app
from pccl.diagnostics import process_addresses

COMMANDS = [command.name for command in app.registered_commands if command.name]
GROUPS = {group.name: group.typer_instance for group in app.registered_groups if group.name}
ONE_SIZE = ["bench", "all_reduce", "--min", "1K", "--max", "1K"]


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pccl", *arguments],
        env={**os.environ, "COLUMNS": "80", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def on_a_terminal(*arguments: str) -> tuple[str, str]:
    """Run with stderr on a terminal, and stdout in a file: what each gets."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "pccl", *arguments],
        env={**os.environ, "COLUMNS": "80", "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        seen = b""
        while chunk := _read(ours):
            seen += chunk
        assert process.stdout is not None
        printed = process.stdout.read().decode()
    os.close(ours)
    assert process.returncode == 0, seen
    return printed, seen.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux says so that nobody has the other end any more
        return b""


def test_its_version() -> None:
    assert run("--version").stdout == f"pccl {pccl.__version__}\n"


@pytest.mark.parametrize("command", [[], *([name] for name in [*COMMANDS, *GROUPS])])
def test_help_has_examples_and_80_columns(command: list[str]) -> None:
    short, long = run(*command, "-h", COLUMNS="200"), run(*command, "--help")
    assert short.returncode == long.returncode == 0
    assert short.stdout == long.stdout
    lines = long.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    examples = lines[lines.index("  Examples:") :]
    assert any(line.startswith("  pccl ") for line in examples)
    assert not [line for line in lines if line.endswith("...") and "Usage" not in line]


@pytest.mark.parametrize("group", GROUPS)
def test_help_of_commands_below_has_examples_of_theirs_and_80_columns(group: str) -> None:
    for command in GROUPS[group].registered_commands:
        text = (
            CliRunner().invoke(app, [group, str(command.name), "-h"], env={"COLUMNS": "80"}).stdout
        )
        lines = text.splitlines()
        assert max(map(len, lines)) <= 80, text
        examples = lines[lines.index("  Examples:") :]
        assert any(line.startswith(f"  pccl {group} {command.name} ") for line in examples), text


@pytest.mark.parametrize("command", [*COMMANDS, *GROUPS])
def test_paragraphs_of_help_are_filled(command: str) -> None:
    """No line ends before the next word would have fitted."""
    text = run(command, "--help").stdout
    for paragraph in re.findall(r"\n\n((?:  [A-Z\w].*\n)+)", text.split("Options:")[0]):
        lines = paragraph.splitlines()
        for line, after in itertools.pairwise(lines):
            assert len(line) + 1 + len(after.split()[0]) > 78, (line, after)


def test_help_names_the_machines_that_come_with_it() -> None:
    text = " ".join(run("topo", "--help").stdout.split())
    assert f"A machine that comes with pccl: {', '.join(topology.examples())}." in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell: str) -> None:
    variables = {
        "bash": {"COMP_WORDS": "pccl ph", "COMP_CWORD": "1"},
        "zsh": {"_TYPER_COMPLETE_ARGS": "pccl ph"},
        "fish": {"_TYPER_COMPLETE_ARGS": "pccl ph", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }
    done = run(_PCCL_COMPLETE=f"complete_{shell}", **variables[shell])
    assert "phase" in done.stdout
    assert "bench" not in done.stdout


def test_without_a_command_it_shows_its_help() -> None:
    done = run()
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == run("--help").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bnech"], "No such command 'bnech'. Did you mean 'bench'?"),
        (["bench", "--rank", "3"], "--ranks"),
        (["topo", "--serach", "ring"], "--search"),
        (["debug"], "PATH"),
        (["tune", "--rounds", "0"], "0 rounds; there must be 1 or more"),
        (["tune", "--ranks", "2,x"], "--ranks 2,x: write numbers, as in 2,4"),
        (["tune", "--ranks", "1"], "1 ranks; there is a choice from 2 on"),
        (["topo", "--nodes", "2"], "--nodes needs --search"),
        (["topo", "--graph", "g.xml"], "--graph needs --search"),
        (["topo", "--rank", "3"], "--rank needs --meet"),
        (["topo", "--ranks", "3"], "--ranks needs --meet"),
        (["topo", "--meet", "tcp://a:1"], "--meet needs --measure"),
        (["topo", "--measure", "--load", "t.xml"], "--measure is of this machine"),
        (["topo", "--measure", "--example", "p4d"], "--measure is of this machine"),
        (["topo", "--example", "p4d", "--load", "t.xml"], "name two machines"),
        (["topo", "--example", "p5"], "no example is called 'p5'; there are dgx1v, dgx2"),
        (["topo", "--example", "p4d", "--svg", "x.png"], "the name must end in .svg"),
        (["bench", "broadcast", "--op", "max"], "--op max has no effect on broadcast"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(arguments: list[str], words: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("pccl: ")
    assert words in line


@pytest.mark.multiproc
@pytest.mark.parametrize(
    "arguments",
    [
        ["info"],
        ONE_SIZE,
        ["tune", "--ranks", "2", "--max", "1K", "--rounds", "1", "--dry-run"],
        ["topo", "--example", "h200_vm", "--search", "ring"],
    ],
)
def test_json_means_the_same_everywhere(arguments: list[str]) -> None:
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    assert isinstance(json.loads(done.stdout), dict)


@pytest.mark.multiproc
def test_the_file_that_json_once_took_is_still_written(tmp_path: Path) -> None:
    done = run(*ONE_SIZE, "--json", str(tmp_path / "rows.json"))
    assert done.returncode == 0, done.stderr
    assert "--output" in done.stderr.splitlines()[0]
    assert done.stdout.startswith("# all_reduce")
    assert len(json.loads((tmp_path / "rows.json").read_text())["rows"]) == 1


def test_what_a_report_needs_fits_80_columns() -> None:
    lines = run("info").stdout.splitlines()
    assert any(line.startswith("cost of ") for line in lines)
    assert max(map(len, lines)) <= 80


def test_a_process_of_another_user_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_pid: int) -> list[str]:
        raise PermissionError

    monkeypatch.setattr(process_addresses, "doors_of", refuse)
    with pytest.raises(
        ValueError, match=f"not let this user look at process {os.getpid()}: run this"
    ):
        status.status(str(os.getpid()))
    assert capsys.readouterr().out == ""


@pytest.mark.multiproc
def test_tables_fit_80_columns() -> None:
    arguments = ["--min", "64K", "--max", "64K", "--dtype", "complex128", "--op", "product"]
    rows = run("bench", "all_reduce", "all_gather", *arguments).stdout
    cells = run("tune", "--ranks", "2,3", "--max", "1K", "--rounds", "1", "--dry-run").stdout
    assert len(re.findall(r"^# all_\w+, ranks: 3", cells, re.MULTILINE)) == 3
    assert max(map(len, (rows + cells).splitlines())) <= 80


def test_the_table_of_a_very_slow_choice_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    us = {"shm_one_shot": 1e6, "double_binary_tree": 0.5}
    cell = tune.Cell("all_gather", 3, 1 << 26, 1 << 26, "shm_one_shot", us, us)
    monkeypatch.setattr(tune, "measured", lambda job: [cell])
    arguments = ["tune", "--ranks", "3", "--max", "1K", "--dry-run"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0
    rows = [line for line in done.stdout.splitlines() if "shm_one_shot" in line]
    assert rows
    assert {len(row) for row in rows} == {80}
    assert all(row.endswith(" >10x") for row in rows)


@pytest.mark.multiproc
@pytest.mark.parametrize(
    "arguments",
    [ONE_SIZE, ["tune", "--ranks", "2", "--max", "1K", "--rounds", "1", "--dry-run"]],
)
def test_long_work_shows_its_duration_and_on_a_terminal_its_progress(arguments: list[str]) -> None:
    silent = run(*arguments)
    # On a machine that is busy with other tests, others tell of that, and of waits.
    (word,) = re.findall(r"^pccl \w+: \d+ steps, about \d+ (?:s|min)$", silent.stderr, re.MULTILINE)
    printed, seen = on_a_terminal(*arguments)
    assert word in seen
    assert re.search(r"(\d+)/\1", seen), "the bar comes to its end"
    assert [line for line in printed.splitlines() if line.startswith("#")] == [
        line for line in silent.stdout.splitlines() if line.startswith("#")
    ]
    assert "\x1b" not in printed


@pytest.mark.multiproc
def test_measuring_links_prints_its_duration(tmp_path: Path) -> None:
    done = run("topo", "--measure", XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert re.search(r"^pccl topo --measure: \d+ steps, about \d+ s$", done.stderr, re.MULTILINE)


def test_files_that_are_written_are_named(tmp_path: Path) -> None:
    files = {name: str(tmp_path / name) for name in ("t.xml", "g.xml", "p.svg")}
    done = run(
        *("topo", "--example", "dgx1v", "--search", "ring", "--xml", files["t.xml"]),
        *("--graph", files["g.xml"], "--svg", files["p.svg"]),
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [f"wrote {file}" for file in files.values()]
    assert all(Path(file).stat().st_size for file in files.values())
