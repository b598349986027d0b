# SPDX-License-Identifier: Apache-2.0
"""Which files tools/run_clang_tidy.py --changed looks at, in repositories made for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
SOURCES = {
    "csrc/a.h": "",
    "csrc/b.h": '#include "csrc/a.h"\n',
    "csrc/a.cc": '#include "csrc/a.h"\n',
    "csrc/b.cc": '#include "csrc/b.h"\n',
    "csrc/c.cc": '#include "csrc/d.h"\n',
    ".clang-tidy": "Checks: one\n",
    "pyproject.toml": 'dev = ["clang-tidy==1", "ruff==1"]\n',
}
CHECKED = {"csrc/a.cc", "csrc/b.cc", "csrc/c.cc"}
WHO = [word for name in ("name", "email") for word in ("-c", f"user.{name}=somebody")]
CHOOSE = """
import sys
import run_clang_tidy as tool
files, why = tool.what_changed({tool.ROOT / name for name in sys.argv[1:]})
for line in (why, *(file.relative_to(tool.ROOT) for file in files)):
    print(line)
"""


class Clone:
    """A repository with the tool and some sources in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name, text in SOURCES.items():
            self.write(name, text)
        for name in ("run_clang_tidy", "changed_files"):
            (root / "tools").mkdir(exist_ok=True)
            shutil.copy(TOOLS / f"{name}.py", root / "tools")
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit()
        self.git("switch", "--quiet", "--create", "work")

    def write(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(exist_ok=True)
        (self.root / name).write_text(text)

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *WHO, *arguments], cwd=self.root, check=True)

    def commit(self) -> None:
        self.git("add", ".")
        self.git("commit", "--quiet", "--allow-empty", "--message=work")

    def chosen(self) -> tuple[set[str], str]:
        """Give the names that the tool looks at, and why."""
        done = subprocess.run(
            [sys.executable, "-c", CHOOSE, *CHECKED],
            cwd=self.root / "tools",
            capture_output=True,
            text=True,
            check=True,
        )
        why, *files = done.stdout.splitlines()
        return set(files), why


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    for name in [name for name in os.environ if name.startswith("GIT_")]:  # of a hook
        monkeypatch.delenv(name)
    return Clone(tmp_path)


def test_a_branch_is_compared_with_where_it_left(clone: Clone) -> None:
    clone.write("csrc/c.cc", "int c;\n")
    clone.commit()
    clone.write("csrc/b.cc", "int b;\n")
    clone.commit()
    clone.git("switch", "--quiet", "main")
    clone.write("csrc/a.cc", "int a;\n")  # what others do there is theirs to check
    clone.commit()
    clone.git("switch", "--quiet", "work")
    files, why = clone.chosen()
    assert files == {"csrc/b.cc", "csrc/c.cc"}
    assert "left main" in why


def test_a_header_counts_for_all_that_reach_it(clone: Clone) -> None:
    clone.commit()
    clone.write("csrc/a.h", "int a;\n")
    assert clone.chosen()[0] == {"csrc/a.cc", "csrc/b.cc"}


def test_an_untracked_file_counts(clone: Clone) -> None:
    clone.commit()
    clone.write("csrc/d.h", "")
    assert clone.chosen()[0] == {"csrc/c.cc"}


@pytest.mark.parametrize(
    ("name", "text"),
    [(".clang-tidy", "Checks: two\n"), ("pyproject.toml", 'dev = ["clang-tidy==2", "ruff==1"]\n')],
)
def test_another_clang_tidy_looks_at_all(name: str, text: str, clone: Clone) -> None:
    clone.commit()
    clone.write(name, text)
    assert clone.chosen()[0] == CHECKED


def test_another_pin_of_others_looks_at_none(clone: Clone) -> None:
    clone.commit()
    clone.write("pyproject.toml", 'dev = ["clang-tidy==1", "ruff==2"]\n')
    assert clone.chosen()[0] == set()


def test_all_are_looked_at_on_the_default_branch_or_without_one(clone: Clone) -> None:
    clone.git("switch", "--quiet", "main")
    clone.write("csrc/c.cc", "int c;\n")
    clone.commit()
    files, why = clone.chosen()
    assert files == CHECKED
    assert "no commit" in why
    shutil.rmtree(clone.root / ".git")
    assert clone.chosen()[0] == CHECKED
