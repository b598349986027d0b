# SPDX-License-Identifier: Apache-2.0
"""tools/check_names.py: what clashes, or is idle, where a folder's files are read as one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
CHECKER = REPOSITORY / "tools" / "check_names.py"


def check(*arguments: object, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, CHECKER, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


def anonymous(text: str) -> str:
    return f"namespace pccl {{\nnamespace {{\n\n{text}\n\n}}  // namespace\n}}  // namespace pccl\n"


@pytest.mark.parametrize(
    ("one", "other", "name"),
    [
        ("constexpr int kMost = 3;", "constexpr std::size_t kMost = 4;", "kMost"),
        ("int f(int x) { return x; }", "int f(double x) {\n    return 0;\n}", "f"),
        ("struct Wish {\n    int x;\n};", "class Wish {};", "Wish"),
        ("enum class Kind { kA };", "enum class Kind : int { kB };", "Kind"),
        ("thread_local bool is_here = false;", "bool is_here;", "is_here"),
        (
            "std::vector<int> of(int a,\n    int b) {\n}",
            "template <typename T>\nT of(T t) {}",
            "of",
        ),
    ],
)
def test_a_name_of_two_files_is_found(tmp_path: Path, one: str, other: str, name: str) -> None:
    (tmp_path / "a.cc").write_text(anonymous(one))
    (tmp_path / "b.cc").write_text(anonymous(other))
    done = check(tmp_path)
    assert done.returncode == 1
    assert done.stdout == f"{tmp_path}: {name} is defined in a.cc and b.cc\n"


def test_names_of_other_scopes_and_folders_are_free(tmp_path: Path) -> None:
    (tmp_path / "submodule").mkdir()
    (tmp_path / "a.cc").write_text(anonymous("int f() { return 1; }\nusing Seconds = double;"))
    (tmp_path / "submodule" / "b.cc").write_text(anonymous("int f() { return 2; }"))
    (tmp_path / "c.cc").write_text(
        anonymous("using Seconds = double;\nclass C {\n    int f();\n};  // int f() {")
    )
    done = check(tmp_path)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_using_that_only_a_neighbour_needs_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.cc").write_text("using schedule::Shape;\nusing schedule::Slice;\nSlice s;\n")
    (tmp_path / "b.cc").write_text("Shape shape_of(int n);  // of a Slice\n")
    done = check(tmp_path)
    assert done.returncode == 1
    assert done.stdout == f"{tmp_path}/a.cc: using Shape, which is not used there\n"


def test_tests_are_looked_at_as_the_library_is(tmp_path: Path) -> None:
    for name in (
        "csrc/module/a.cc",
        "csrc/module/b.cc",
        "tests/cpp/a_test.cc",
        "tests/cpp/b_test.cc",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(anonymous("int f() { return 1; }"))
    done = check(folder=tmp_path)
    assert done.returncode == 1
    assert done.stdout == (
        "csrc/module: f is defined in a.cc and b.cc\n"
        "tests/cpp: f is defined in a_test.cc and b_test.cc\n"
    )
