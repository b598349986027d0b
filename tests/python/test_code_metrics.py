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
