"""Run clang-tidy over csrc/, skipping each file that passed before and has not changed since.

    run_clang_tidy.py [--changed] <build folder with compile_commands.json> [files...]

With --changed, only files that reach what tools/changed_files.py names; all, when .clang-tidy or
the pin of clang-tidy is among that.

A file has changed when it, a header of csrc/ it reaches, its compile command, .clang-tidy or the
version of clang-tidy has. What passed is noted in .cache/clang-tidy.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import changed_files

ROOT = Path(__file__).resolve().parent.parent
NOTES = ROOT / ".cache" / "clang-tidy"
TIDY = Path(sys.executable).parent / "clang-tidy"
INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"(csrc/[^"]+)"', re.MULTILINE)


def reached_by(file: Path) -> set[Path]:
    """Give ``file`` and every file of csrc/ that it includes, directly or not."""
    seen: set[Path] = set()
    todo = [file]
    while todo:
        current = todo.pop()
        if current not in seen and current.exists():
            seen.add(current)
            todo += [ROOT / name.decode() for name in INCLUDE.findall(current.read_bytes())]
    return seen


@cache
def digest(file: Path) -> bytes:
    return hashlib.sha256(file.read_bytes()).digest()


@cache
def settings_digest() -> bytes:
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    return hashlib.sha256(version + (ROOT / ".clang-tidy").read_bytes()).digest()


def fingerprint(file: Path, command: str) -> str:
    state = hashlib.sha256(settings_digest() + command.encode())
    for part in sorted(reached_by(file)):
        state.update(str(part.relative_to(ROOT)).encode() + digest(part))
    return state.hexdigest()


def note_of(file: Path) -> Path:
    return NOTES / str(file.relative_to(ROOT)).replace("/", "__")


def tidy(file: Path, command: str, build: Path) -> bool:
    """Check one file; print what is wrong; tell whether it is clean."""
    wanted = fingerprint(file, command)
    note = note_of(file)
    if note.exists() and note.read_text() == wanted:
        return True
    done = subprocess.run(
        # It reads the text of headers that gcc has precompiled.
        [TIDY, "--quiet", "--extra-arg=-Wno-ignored-gch", f"-p={build}", file],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        print(done.stdout or done.stderr, flush=True)
        return False
    note.write_text(wanted)
    return True


def commands_of(build: Path) -> dict[Path, str]:
    """Give the compile command of every C++ file of csrc/; clang-tidy knows no CUDA of today."""
    entries = json.loads((build / "compile_commands.json").read_text())
    found = {Path(entry["file"]): entry["command"] for entry in entries}
    return {
        file: command
        for file, command in found.items()
        if file.is_relative_to(ROOT / "csrc") and file.suffix == ".cc"
    }


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
    build = options.build.resolve()
    NOTES.mkdir(parents=True, exist_ok=True)
    commands = commands_of(build)
    wanted, why = set(commands), "all"
    if options.files:
        wanted, why = {file.resolve() for file in options.files} & wanted, "as asked for"
    if options.changed:
        wanted, why = what_changed(wanted)
    print(f"clang-tidy: {len(wanted)} of {len(commands)} files: {why}", flush=True)
    files = sorted(wanted)
    # The largest first: a slow file must not be the one that runs alone at the end.
    files.sort(key=lambda file: len(reached_by(file)), reverse=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        clean = list(pool.map(lambda file: tidy(file, commands[file], build), files))
    print(f"clang-tidy: {clean.count(False)} of {len(files)} files have findings")
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main())
