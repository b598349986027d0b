# SPDX-License-Identifier: Apache-2.0
"""What tools/run_clang_tidy.py finds in files that it checks together."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("run_clang_tidy.py", "changed_files.py")
# One of each kind of check: syntax, names, data flow, the static analyzer, unused declarations.
WRONG = {
    "bugprone-use-after-move": """
#include <string>
#include <utility>
std::size_t length(std::string moved) {
    const std::string other = std::move(moved);
    return other.size() + moved.size();
}
""",
    "readability-identifier-naming": "int BadName() { return 0; }\n",
    "clang-analyzer-core.NullDereference": """
int dereferenced(int choice) {
    int* const nothing = nullptr;
    return choice > 0 ? *nothing : 0;
}
""",
    "misc-unused-using-decls": """
namespace elsewhere { struct Unused {}; }
using elsewhere::Unused;
""",
    "misc-unused-alias-decls": """
namespace far { inline int number = 1; }
namespace near = far;
""",
    "modernize-use-nullptr": "int* none() { return 0; }\n",
    "performance-unnecessary-value-param": """
#include <vector>
std::size_t counted(const std::vector<int> all) { return all.size(); }
""",
    "concurrency-thread-canceltype-asynchronous": """
#include <pthread.h>
void cancel() { pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr); }
""",
}
RIGHT = "int right() { return 1; }\n"


class Tree:
    """A copy of the tool beside sources that are compiled alike."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "tools").mkdir()
        for name in TOOLS:
            shutil.copy(ROOT / "tools" / name, root / "tools")
        shutil.copy(ROOT / ".clang-tidy", root)
        (root / "csrc" / "module").mkdir(parents=True)

    def write(self, name: str, text: str) -> None:
        (self.root / "csrc" / "module" / name).write_text(text)

    def check(self) -> tuple[int, str]:
        """Give the exit code and the output."""
        files = sorted((self.root / "csrc").rglob("*.cc"))
        commands = [
            {"file": str(file), "command": f"c++ -std=c++20 -I{self.root} -o x.o -c {file}"}
            for file in files
        ]
        (self.root / "compile_commands.json").write_text(json.dumps(commands))
        done = subprocess.run(
            [sys.executable, "tools/run_clang_tidy.py", "."],
            cwd=self.root,
            env={**os.environ, "XDG_CACHE_HOME": str(self.root / "cache")},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_what_is_wrong_in_a_file_is_found_among_others(tree: Tree) -> None:
    tree.write("right.cc", RIGHT)
    for number, text in enumerate(WRONG.values()):
        tree.write(f"wrong_{number}.cc", text)
    code, output = tree.check()
    assert code == 1
    for number, check in enumerate(WRONG):
        found = [line for line in output.splitlines() if f"[{check}," in line]
        assert [line for line in found if f"wrong_{number}.cc" in line], (check, output)
    assert "right.cc:" not in output
    assert f"{len(WRONG)} of {len(WRONG) + 1} files have findings" in output


@pytest.mark.parametrize("check", WRONG)
def test_no_kind_of_check_is_lost_where_files_are_together(check: str, tree: Tree) -> None:
    """Each alone must fail the files that are checked together, or nobody would look closer."""
    tree.write("right.cc", RIGHT)
    tree.write("wrong.cc", WRONG[check])
    code, output = tree.check()
    assert code == 1
    assert f"[{check}," in output


def test_what_passed_is_not_checked_again_until_it_changes(tree: Tree) -> None:
    tree.write("one.cc", RIGHT)
    tree.write("two.cc", '#include "csrc/module/two.h"\nint two() { return kTwo; }\n')
    tree.write("two.h", "constexpr int kTwo = 2;\n")
    assert "0 passed before" in tree.check()[1]
    assert "2 passed before" in tree.check()[1]
    tree.write("two.h", "constexpr int kTwo = 3;\n")
    assert "1 passed before" in tree.check()[1]


def test_what_is_wrong_in_a_header_fails_who_includes_it(tree: Tree) -> None:
    tree.write("one.cc", RIGHT)
    tree.write("two.cc", '#include "csrc/module/two.h"\nint two() { return 2; }\n')
    tree.write("two.h", "inline int* no_two() { return 0; }\n")
    code, output = tree.check()
    assert code == 1
    assert "two.h" in output
    assert "1 of 2 files have findings" in output
