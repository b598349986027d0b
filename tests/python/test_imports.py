# SPDX-License-Identifier: Apache-2.0
"""tools/check_imports.py: this tree is clean, and each rule catches a small tree that breaks it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
CHECKER = REPOSITORY / "tools" / "check_imports.py"

LATER = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    "

# The files of a tree below python/p, and where the violation is; each folder gets a face.
BROKEN = {
    "modules": (
        {"a.py": "from p import b\n", "b.py": "from p import a\n"},
        "a.py:1: circle: p.a -> p.b (python/p/a.py:1), p.b -> p.a (python/p/b.py:1): "
        "move what p.a and p.b share into a module before them",
    ),
    "every member is named": (
        {
            "a.py": "import sys\n\nimport p.c\n",
            "b.py": "import p.a\n",
            "c.py": "import p.b\n",
            "d.py": "import p.a\n",
        },
        "a.py:3: circle: p.a -> p.c (python/p/a.py:3), p.b -> p.a (python/p/b.py:1), "
        "p.c -> p.b (python/p/c.py:1): move what p.a and p.b and p.c share into a module before "
        "them",
    ),
    "under TYPE_CHECKING": (
        {"a.py": f"{LATER}from p.b import B\n", "b.py": "from p.a import A\n"},
        "a.py:4: circle: ",
    ),
    "inside a function": (
        {"a.py": "def f():\n    from p.b import g\n", "b.py": "import p.a\n"},
        "a.py:2: circle: ",
    ),
    "relative": (
        {
            "a.py": "from .f import b\n",
            "f/b.py": "from ..a import A\nfrom . import c\n",
            "f/c.py": "",
        },
        "a.py:1: circle: ",
    ),
    "of a stub": (
        {"a.pyi": "from p.b import B\n", "b.py": "from p.a import A\n"},
        "a.pyi:1: circle: ",
    ),
    "through a face": (
        {
            "a.py": "from p.f import B\n",
            "f/__init__.py": "from p.f.b import Inner as B\nfrom p.f.c import C\n",
            "f/b.py": "from p import a\n",
            "f/c.py": "from p import a\n",
        },
        "a.py:1: circle: p.a -> p.f.b (python/p/a.py:1), p.f.b -> p.a (python/p/f/b.py:1): ",
    ),
    "through a whole face": (
        {
            "a.py": "import p.f\n",
            "f/__init__.py": "from p.f.b import B\n",
            "f/b.py": "from p import a\n",
        },
        "a.py:1: circle: ",
    ),
    "parts": (
        {
            "f/a.py": "from p.g.b import B\n",
            "f/b.py": "",
            "g/a.py": "from p.f.b import B\n",
            "g/b.py": "",
        },
        "f/a.py:1: folder: p.f.a -> p.g.b (python/p/f/a.py:1), p.g.a -> p.f.b "
        "(python/p/g/a.py:1): among p.f and p.g, let all imports lead one way",
    ),
    "a folder and its own folder": (
        {
            "f/a.py": "from p.f.g import b\n",
            "f/c.py": "",
            "f/g/a.py": "from p.f import c\n",
            "f/g/b.py": "",
        },
        "f/a.py:1: folder: p.f.a -> p.f.g.b (python/p/f/a.py:1), p.f.g.a -> p.f.c "
        "(python/p/f/g/a.py:1): among p.f and p.f.g, let all imports lead one way",
    ),
    "its own face": (
        {"__init__.py": "from p.a import A\n", "a.py": "", "b.py": "\nfrom p import A\n"},
        "b.py:2: face: p.b is inside: import from p.a",
    ),
    "the face of all": (
        {"f/b.py": "import p\n"},
        "f/b.py:1: face: p.f.b is inside: import from the module meant",
    ),
}

SOUND = {
    "in one direction": {"a.py": "from p import b\n", "b.py": "import sys\n"},
    "a face hands names on": {
        "__init__.py": "from p.f import A\n",
        "f/__init__.py": "from p.f.a import A\n",
        "f/a.py": "from p.b import B\n",
        "b.py": "",
    },
    "modules beside the outermost face are parts": {
        "a.py": "from p.f import b\n",
        "f/b.py": "from p import c\n",
        "c.py": "",
    },
    "a folder and its own folder in one direction": {
        "f/a.py": "from p.f.g import b\n",
        "f/g/b.py": "from p.f.g import c\n",
        "f/g/c.py": "",
    },
}


def write(tree: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        file = tree / "python" / "p" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for folder in {(tree / "python" / "p" / path).parent for path in files} | {tree / "python/p"}:
        (folder / "__init__.py").touch()


def run_checker(root: Path) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, CHECKER, root], capture_output=True, text=True, check=False
    )
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


def test_this_repository_has_no_circles() -> None:
    assert run_checker(REPOSITORY) == (0, ["check_imports: ok"])


@pytest.mark.parametrize(("files", "complaint"), BROKEN.values(), ids=BROKEN)
def test_a_broken_rule_is_named_with_its_place(
    tmp_path: Path, files: dict[str, str], complaint: str
) -> None:
    write(tmp_path, files)
    status, lines = run_checker(tmp_path)
    assert status == 1
    assert lines[0].startswith(f"python/p/{complaint}")
    assert lines[1:] == ["check_imports: 1 violation(s)"]


@pytest.mark.parametrize("files", SOUND.values(), ids=SOUND)
def test_what_is_allowed_passes(tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path, files)
    assert run_checker(tmp_path) == (0, ["check_imports: ok"])


def test_two_circles_are_two_lines(tmp_path: Path) -> None:
    pairs = {"a": "b", "b": "a", "c": "d", "d": "c"}
    write(tmp_path, {f"{one}.py": f"from p import {other}\n" for one, other in pairs.items()})
    status, lines = run_checker(tmp_path)
    assert status == 1
    assert [line.split(": ")[0] for line in lines[:-1]] == ["python/p/a.py:1", "python/p/c.py:1"]
