# SPDX-License-Identifier: Apache-2.0
"""The blocks of README.md and docs, pasted by a newcomer who has the wheel and no clone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.markdown import Block, blocks_of

if TYPE_CHECKING:
    from support.wheel import Environment

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

REPOSITORY = Path(__file__).resolve().parents[2]
README = REPOSITORY / "README.md"
PAGES = [README, *sorted((REPOSITORY / "docs").glob("*/*.md"))]
PROGRAMS = [(page, block) for page in PAGES for block in blocks_of(page, "python")]
SHELL = [line for block in blocks_of(README, "sh") for line in block.text.splitlines()]


def identity(page: Path, block: Block) -> str:
    return f"{page.relative_to(REPOSITORY)}:{block.line}"


def write_programs(folder: Path, page: Path, port: int) -> None:
    """Write the page's programs under their names; the port is one that is free here."""
    for block in blocks_of(page, "python"):
        (folder / block.name).write_text(block.text.replace("29500", str(port)))


def shell_line(words: str) -> str:
    (line,) = [line for line in SHELL if words in line]
    return line


def test_the_first_things_shown_are_a_program_and_how_to_start_it(
    fresh: Environment, tmp_path: Path, port: int
) -> None:
    text = README.read_text()
    program, command = blocks_of(README, "python")[0], blocks_of(README, "sh")[0]
    assert text.index(program.text) < text.index(command.text) < text.index("\n## ")
    lines = [line for line in program.text.splitlines() if line and not line.startswith("#")]
    assert len(lines) <= 5
    assert command.text.startswith(f"torchrun --nproc-per-node 2 {program.name}")
    write_programs(tmp_path, README, port)
    done = fresh.run("bash", "-c", command.text, cwd=tmp_path, PET_MASTER_PORT=str(port))
    assert done.returncode == 0, done.stderr
    # Not by lines: ranks write their words and the ends of their lines apart.
    output = re.findall(r"rank (\d): \[3\.0, 3\.0, 3\.0\]", done.stdout)
    assert sorted(output) == ["0", "1"]


@pytest.mark.parametrize(
    ("page", "block"), PROGRAMS, ids=[identity(*program) for program in PROGRAMS]
)
def test_a_block_runs_as_it_is(
    page: Path, block: Block, fresh: Environment, tmp_path: Path, port: int
) -> None:
    """Without torch, alone; with torch, as torchrun starts it, which README shows."""
    compile(block.text, identity(page, block), "exec")
    if block.excuse:
        pytest.skip(f"{identity(page, block)}: {block.excuse}")
    write_programs(tmp_path, page, port)
    torchrun = ["torchrun", "--nproc-per-node", "2"] if "init_process_group" in block.text else []
    command = [*torchrun, block.name] if torchrun else [fresh.python, block.name]
    done = fresh.run(*command, cwd=tmp_path, PET_MASTER_PORT=str(port))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_numpy_program_runs_alone_and_by_two_ranks(
    fresh: Environment, tmp_path: Path, port: int
) -> None:
    write_programs(tmp_path, README, port)
    alone = fresh.run("bash", "-c", shell_line("# one rank"), cwd=tmp_path)
    assert alone.returncode == 0, alone.stderr
    assert "rank 0 of 1: 1.0" in alone.stdout
    two = fresh.run("bash", "-c", shell_line("# two"), cwd=tmp_path)
    assert two.returncode == 0, two.stderr
    output = re.findall(r"^\[\d\] rank (\d) of 2: 3\.0", two.stdout, re.MULTILINE)
    assert sorted(output) == ["0", "1"]


def test_links_of_the_readme_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)(?:#([^)]+))?\)", README.read_text())
    assert targets
    for target, heading in targets:
        path = REPOSITORY / target
        assert path.exists(), target
        anchors = {
            re.sub(r"[^\w\- ]", "", line.lstrip("# ")).lower().replace(" ", "-")
            for line in (path.read_text().splitlines() if path.suffix == ".md" else [])
            if line.startswith("#")
        }
        assert not heading or heading in anchors, (target, heading)
