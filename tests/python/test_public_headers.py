# SPDX-License-Identifier: Apache-2.0
"""The headers of C++ programs: documented, complete in themselves, and all that is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pccl

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import public_headers  # noqa: E402
from support.markdown import blocks_of  # noqa: E402

HEADERS = public_headers.headers()
NAMES = [header.name for header in HEADERS]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]


@pytest.mark.parametrize("header", HEADERS, ids=NAMES)
def test_every_declaration_is_documented(header: Path) -> None:
    assert list(public_headers.undocumented(header)) == []


@pytest.mark.parametrize("header", HEADERS, ids=NAMES)
def test_headers_include_those_of_the_standard_library_and_each_other(header: Path) -> None:
    included = re.findall(r"^\s*#\s*include\s+(.*)", header.read_text(), re.MULTILINE)
    assert [each for each in included if not re.fullmatch(r"<(pccl/\w+\.h|[a-z_]+)>", each)] == []
    ours = re.findall(r"<pccl/(\w+\.h)>", " ".join(included))
    assert set(ours) <= set(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["g++", "clang++-19"])
def test_each_header_compiles_alone(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    shutil.copytree(ROOT / "include", tmp_path / "include")
    for name in NAMES:
        (tmp_path / "alone.cc").write_text(f"#include <pccl/{name}>\n#include <pccl/{name}>\n")
        done = subprocess.run(
            [compiler, "-std=c++20", *WARNINGS, "-fsyntax-only", "-Iinclude", "alone.cc"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), name


@pytest.mark.slow
def test_blocks_of_the_documentation_compile(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    blocks = [block for page in ROOT.glob("docs/**/*.md") for block in blocks_of(page, "cpp")]
    assert blocks
    for block in blocks:
        (tmp_path / "block.cc").write_text(block.text)
        done = subprocess.run(
            ["g++", "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'include'}", tmp_path / "block.cc"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), block.text


def test_nothing_else_is_installed(tmp_path: Path) -> None:
    build = Path(str(pccl.__file__)).parents[2]
    if not (build / "cmake_install.cmake").exists() or shutil.which("cmake") is None:
        pytest.skip("pccl was not imported from a build folder of CMake")
    subprocess.run(
        ["cmake", "--install", build, "--prefix", tmp_path, "--component", "development"],
        capture_output=True,
        check=True,
    )
    headers = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.h"))
    assert headers == [Path("include/pccl") / name for name in NAMES]


def test_the_site_describes_each_header() -> None:
    page = (ROOT / "docs/site/cpp.md").read_text()
    assert sorted(re.findall(r"^include/pccl/(\w+\.h)$", page, re.MULTILINE)) == NAMES


UNDOCUMENTED = """#pragma once

#define BARE 1
/// Described.
#define FINE 2

namespace pccl {

class Forward;

/// Described.
struct Value {
    int fine = 0;  // described
    int bare = 0;
    Value(const Value&) = delete;
};

class Bare {
   public:
    /// Described.
    explicit Bare(Value value = {}) : value_(value) {}
    int number() const { return 1; }
    ~Bare() = default;

   private:
    int hidden();
    Value value_;
};

/// Described.
enum class Kind { kA, kB };
template <typename T>
T bare_too(T value, int of = (1 + 2));
const char* text = "; // no comment";

}  // namespace pccl
"""


def test_what_has_no_comment_is_found(tmp_path: Path) -> None:
    header = tmp_path / "bad.h"
    header.write_text(UNDOCUMENTED)
    assert list(public_headers.undocumented(header)) == [
        "bad.h:3: BARE",
        "bad.h:14: int bare = 0",
        "bad.h:18: class Bare",
        "bad.h:22: int number() const",
        "bad.h:32: template <typename T> T bare_too(T value, int of = (1 + 2))",
        "bad.h:34: const char* text =",
    ]
