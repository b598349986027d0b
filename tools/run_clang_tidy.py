# SPDX-License-Identifier: Apache-2.0
"""Run clang-tidy over csrc/, skipping each file that passed before and has not changed since.

    run_clang_tidy.py [--changed] <build folder with compile_commands.json> [files...]

With --changed, only files that reach what tools/changed_files.py names; all, when .clang-tidy or
the pin of clang-tidy is among that.

Files of one folder are checked as one, much as a wheel is compiled, since most of the time goes
into the headers that they share. Where something is found, each of them is checked alone.

A file has changed when it, a header of csrc/ it reaches, its compile command, .clang-tidy or the
version of clang-tidy has. What passed is noted in ~/.cache/pccl/clang-tidy, for all clones.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import changed_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parent.parent
UNITS = ROOT / ".cache" / "clang-tidy"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "pccl"
NOTES = CACHE / "clang-tidy"
TIDY = Path(sys.executable).parent / "clang-tidy"
INCLUDE = re.compile(
    rb'^[ \t]*#[ \t]*include[ \t]*(?:"((?:csrc|tests)/[^"]+)"|<(pccl/[^>]+)>)', re.MULTILINE
)
MOST_TOGETHER = 16  # as in cmake/pccl_module.cmake


def reached_by(file: Path) -> set[Path]:
    """Give ``file`` and every file of this repository that it includes, directly or not."""
    seen: set[Path] = set()
    todo = [file]
    while todo:
        current = todo.pop()
        if current not in seen and current.exists():
            seen.add(current)
            for internal, public in INCLUDE.findall(current.read_bytes()):
                todo.append(ROOT / (internal.decode() or f"include/{public.decode()}"))
    return seen


@cache
def digest(file: Path) -> bytes:
    return hashlib.sha256(file.read_bytes()).digest()


@cache
def settings_digest() -> bytes:
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    return hashlib.sha256(version + (ROOT / ".clang-tidy").read_bytes()).digest()


@dataclass(frozen=True)
class Source:
    """A file, and how it is compiled: arguments other than its name and that of the outcome."""

    file: Path
    flags: tuple[str, ...]

    def note(self) -> Path:
        """Give the file that is there if this one passed."""
        return NOTES / note_of(self, settings_digest())

    def passes(self) -> bool:
        """Check it; print its faults; return whether it is clean."""
        if findings := findings_in(self.file, self.flags):
            print(findings, flush=True)
            return False
        self.note().touch()
        return True


def note_of(source: Source, settings: bytes) -> str:
    """Give a name that changes with a file, all that it reaches, its flags, and ``settings``."""
    flags = shlex.join(source.flags).replace(str(ROOT), ".")
    state = hashlib.sha256(settings + flags.encode())
    for part in sorted(reached_by(source.file)):
        state.update(str(part.relative_to(ROOT)).encode() + digest(part))
    return state.hexdigest()


@dataclass(frozen=True)
class Unit:
    """Files of one folder that are compiled in the same way."""

    name: str
    sources: tuple[Source, ...]

    def failing(self) -> int:
        """Check them; print what is wrong; give how many are not clean."""
        if len(self.sources) > 1:
            unit = UNITS / f"{self.name}.cc"
            # Not by #include: some checks look at the main file alone.
            unit.write_text("\n".join(source.file.read_text() for source in self.sources))
            if not findings_in(unit, self.sources[0].flags):
                for source in self.sources:
                    source.note().touch()
                return 0
        return sum(not source.passes() for source in self.sources)


def findings_in(file: Path, flags: Iterable[str]) -> str:
    """Return the output of clang-tidy, or nothing."""
    done = subprocess.run(
        # It reads the text of headers that gcc has precompiled.
        [TIDY, "--quiet", file, "--", *flags, "-Wno-ignored-gch"],
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 else done.stdout or done.stderr or "clang-tidy failed"


def units_of(sources: Iterable[Source]) -> Iterator[Unit]:
    """Put what is compiled alike together, folder by folder."""
    alike: dict[tuple[Path, tuple[str, ...]], list[Source]] = {}
    for source in sources:
        alike.setdefault((source.file.parent, source.flags), []).append(source)
    for number, ((folder, _), of_folder) in enumerate(alike.items()):
        name = str(folder.relative_to(ROOT)).replace("/", "_")
        for first in range(0, len(of_folder), MOST_TOGETHER):
            together = of_folder[first : first + MOST_TOGETHER]
            yield Unit(f"{name}_{number}_{first}", tuple(together))


def sources_of(build: Path, *folders: str) -> dict[Path, Source]:
    """Give every C++ file of these folders; clang-tidy supports no recent CUDA."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = Path(entry["file"])
        if file.suffix == ".cc" and any(file.is_relative_to(ROOT / each) for each in folders):
            _, *flags = shlex.split(entry["command"])
            outcome = flags.index("-o")
            del flags[outcome : outcome + 2]
            found[file] = Source(file, tuple(flags[: flags.index("-c")]))
    return found


def what_changed(files: set[Path]) -> tuple[set[Path], str]:
    """Give those of ``files`` that a change may concern, and in words, which these are."""
    base = changed_files.base()
    if base is None:
        return files, "there is no commit to compare with"
    changed = base.differing_files()
    if ROOT / ".clang-tidy" in changed or base.has_other_pin("clang-tidy"):
        return files, f"clang-tidy or its settings changed since {base.name}"
    return {file for file in files if reached_by(file) & changed}, f"changed since {base.name}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("build", type=Path)
    parser.add_argument("files", type=Path, nargs="*")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    for folder in (NOTES, UNITS):
        folder.mkdir(parents=True, exist_ok=True)
    sources = sources_of(options.build.resolve(), "csrc")
    wanted, why = set(sources), "all"
    if options.files:
        wanted, why = {file.resolve() for file in options.files} & wanted, "as asked for"
    if options.changed:
        wanted, why = what_changed(wanted)
    todo = [sources[file] for file in sorted(wanted) if not sources[file].note().exists()]
    print(f"clang-tidy: {len(wanted)} of {len(sources)} files: {why}", end="")
    print(f"; {len(wanted) - len(todo)} passed before", flush=True)
    # The largest first: a slow one must not be what runs alone at the end.
    units = sorted(units_of(todo), key=lambda unit: len(unit.sources), reverse=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        failing = sum(pool.map(Unit.failing, units))
    print(f"clang-tidy: {failing} of {len(wanted)} files have findings")
    return 1 if failing else 0


if __name__ == "__main__":
    sys.exit(main())
