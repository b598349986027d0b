# SPDX-License-Identifier: Apache-2.0
"""tools/spdx.py finds sources without a licence, and inserts the line in the style of each."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import spdx  # noqa: E402

LINE = "SPDX-License-Identifier: Apache-2.0"


def written(name: str, text: str) -> str:
    style = spdx.style_of(Path(name))
    assert style is not None
    return spdx.with_licence(text, style)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.cc", '#include "a.h"\n', f'// {LINE}\n#include "a.h"\n'),
        ("a.h", "// A ring.\n#pragma once\n", f"// {LINE}\n\n// A ring.\n#pragma once\n"),
        ("a.cu", "", f"// {LINE}\n"),
        ("a.yang", "module a {\n", f"// {LINE}\nmodule a {{\n"),
        ("a.map", "{\n", f"/* {LINE} */\n{{\n"),
        ("a.map", "/* All. */\n{\n", f"/* {LINE} */\n\n/* All. */\n{{\n"),
        ("a.py", '"""A ring."""\n', f'# {LINE}\n"""A ring."""\n'),
        ("a.pyi", "import os\n", f"# {LINE}\nimport os\n"),
        ("a.py", "#!/usr/bin/python3\nimport os\n", f"#!/usr/bin/python3\n# {LINE}\nimport os\n"),
        ("a.py", "#!/p\n# coding: ascii\n", f"#!/p\n# coding: ascii\n# {LINE}\n"),
        ("a.py", "import os\n# coding: ascii\n", f"# {LINE}\nimport os\n# coding: ascii\n"),
        ("a.sh", "#!/bin/sh\n# Builds.\n", f"#!/bin/sh\n# {LINE}\n\n# Builds.\n"),
        ("a.sh", "#!/bin/sh", f"#!/bin/sh\n# {LINE}\n"),
        ("a.cmake", "# Tests.\n", f"# {LINE}\n\n# Tests.\n"),
        ("CMakeLists.txt", "project(a)\n", f"# {LINE}\nproject(a)\n"),
        ("info.py.in", "A = 1\n", f"# {LINE}\nA = 1\n"),
    ],
)
def test_the_line_comes_first_that_may(name: str, text: str, expected: str) -> None:
    assert written(name, text) == expected
    assert spdx.named_licence(expected) == "Apache-2.0"


@pytest.mark.parametrize("name", ["a.md", "a.json", "a.xml", "a.txt", "a", "a.in"])
def test_what_is_no_source_has_no_style(name: str) -> None:
    assert spdx.style_of(Path(name)) is None


def test_the_docstring_of_a_module_stays_one() -> None:
    scope: dict[str, object] = {}
    exec(written("a.py", '"""A ring."""\nfrom __future__ import annotations\n'), scope)
    assert scope["__doc__"] == "A ring."


def test_the_first_five_lines_count() -> None:
    assert spdx.named_licence("\n" * 4 + f"// {LINE}\n") == "Apache-2.0"
    assert spdx.named_licence("\n" * 5 + f"// {LINE}\n") is None


class Repository:
    """A repository with the tool and some files in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("tools/spdx.py", "")
        shutil.copy(ROOT / "tools/spdx.py", root / "tools")
        self.run("--write", "tools/spdx.py")
        subprocess.run(["git", "-C", str(root), "init", "--quiet"], check=True)

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "tools/spdx.py", *arguments],
            cwd=self.root,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    def check(self, *arguments: str) -> list[str]:
        """Track all files, run the tool, and return the names of those that it finds."""
        subprocess.run(["git", "-C", str(self.root), "add", "--all"], check=True)
        done = self.run(*arguments)
        lines = done.stdout.splitlines()
        assert done.returncode == bool(lines), done.stderr
        return [Path(line.split(": ")[0]).name for line in lines]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_tracked_sources_without_the_line_are_named(repository: Repository) -> None:
    repository.write("csrc/a.cc", "int a;\n")
    repository.write("csrc/b.cc", f"// {LINE}\nint b;\n")
    repository.write("docs/a.md", "A ring.\n")
    repository.write("tests/data/a.py", "")
    repository.write("tests/fuzz/corpus/a.sh", "")
    assert repository.check() == ["a.cc"]


def test_a_file_is_written_once_and_keeps_its_mode(repository: Repository) -> None:
    path = repository.write("tools/a.sh", "#!/bin/sh\necho one\n")
    path.chmod(0o755)
    assert repository.check("--write") == []
    assert repository.check("--write") == []
    assert path.read_text() == f"#!/bin/sh\n# {LINE}\necho one\n"
    assert os.access(path, os.X_OK)
    assert repository.check() == []


def test_another_licence_is_named_and_not_replaced(repository: Repository) -> None:
    text = "// SPDX-License-Identifier: " + "MIT\nint a;\n"
    path = repository.write("csrc/a.cc", text)
    assert repository.check("--write") == ["a.cc"]
    assert path.read_text() == text
