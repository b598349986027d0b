# SPDX-License-Identifier: Apache-2.0
"""The metrics count what runs in a call: each function on its path exists once."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import code_metrics  # noqa: E402
from cpp_functions import functions  # noqa: E402


@pytest.fixture(scope="module")
def modules() -> dict[str, set[str]]:
    """Give the modules in which a function of that name is defined."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in code_metrics.sources(ROOT / "csrc"):
        module = path.relative_to(ROOT / "csrc").parts[0]
        for function in functions(path):
            found[function.name].add(module)
    return found


@pytest.mark.parametrize("way", code_metrics.WAYS)
def test_every_function_on_a_way_is_in_one_module(way: str, modules: dict[str, set[str]]) -> None:
    wrong = {}
    for name in code_metrics.WAYS[way]:
        module, function = re.findall(r"^(?:(\w+):(?!:))?(.+)$", name)[0]
        places = modules[function] & ({module} if module else code_metrics.MODULES)
        if len(places) != 1:
            wrong[name] = places
    assert not wrong


def test_a_function_in_the_body_of_its_class_has_its_name(tmp_path: Path) -> None:
    source = tmp_path / "x.h"
    source.write_text(
        "namespace a {\nclass B final : public C {\n  int f() { return 1; }\n"
        "  struct D { int g() const { return 2; } };\n};\nint h() { return 3; }\n}\nint i() {}\n"
    )
    assert [found.name for found in functions(source)] == ["B::f", "B::D::g", "h", "i"]


def test_the_text_of_comments_is_whole_sentences() -> None:
    text = "int a;  // One, that\n// goes on.\n/// Of two.\nint b; // Three.\nauto c = 1 / 2;\n"
    assert code_metrics.comments_of(text).split() == [
        "One,",
        "that",
        "goes",
        "on.",
        "Of",
        "two.",
        "Three.",
    ]


def write_tree(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_figures_are_printed_for_a_small_tree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "csrc/base/a.h": "// Of what it says.\nstruct State {};\n",
        "csrc/base/a.cc": "int f() { return 1; }\n",
        "csrc/base/b.cc": "struct State {};\nint g() { return 1; }\n",
        "include/pccl/c.h": "/// What it says.\nint h();\nint i();\n",
        "tests/cpp/base/a_test.cc": "",
        "python/pccl/__init__.py": "",
        "python/pccl/one.py": "",
        "python/pccl/_core.pyi": "a: int\nb: int\n",
        "README.md": "one two",
        "CHANGELOG.md": "one",
        "benchmarks/README.md": "",
    }
    write_tree(tmp_path, files)
    code_metrics.print_modules(tmp_path / "csrc")
    code_metrics.print_names(tmp_path)
    code_metrics.print_comments(tmp_path)
    code_metrics.print_headers(tmp_path)
    code_metrics.print_python(tmp_path / "python" / "pccl")
    code_metrics.print_tests(tmp_path)
    code_metrics.print_documents(tmp_path)
    printed = capsys.readouterr().out
    for line in (
        "3 files; headers of at most 20 lines: 1; units under 60 lines: 2 of 2",
        "names of types defined twice or more: 1; most often State, 2 times",
        "7 words; of 1000 are 285.7 'what' and 285.7 verbs of speech; 50.0 % of the sentences",
        "installed headers: 1; undocumented declarations: 1",
        "1 flat modules; the longest stub is _core.pyi, 2 lines",
        "units with a test of the same name: 1 of 2",
        "README.md 2, CHANGELOG.md 1, benchmarks/README.md 0",
    ):
        assert line in printed, printed


def test_a_source_file_and_its_header_are_one_unit_on_a_way(tmp_path: Path) -> None:
    files = {
        "csrc/comm/group.h": "class Group {\n  void check() { f(); }\n};\n",
        "csrc/comm/group.cc": "void Group::run() { f(); }\n",
        "csrc/comm/other.cc": "void Other::run() { f(); }\n",
        "csrc/topo/group.cc": "void Group::run() { f(); }\n",
    }
    write_tree(tmp_path, files)
    units = code_metrics.units_on_ways(tmp_path)
    assert units == {"shared memory": {"comm/group"}, "TCP": {"comm/group"}, "GPU": set()}
