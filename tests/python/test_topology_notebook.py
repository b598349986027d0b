"""examples/topology.ipynb runs, cell by cell, and shows what it says."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from pccl import topology

REPOSITORY = Path(__file__).resolve().parents[2]
NOTEBOOK = REPOSITORY / "examples" / "topology.ipynb"


def cells() -> list[str]:
    notebook = json.loads(NOTEBOOK.read_text())
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_cell(source: str, scope: dict[str, object]) -> object:
    """Run one cell as a notebook does: the value of a last expression is shown."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), scope)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval"), scope)


@pytest.fixture(scope="module")
def shown() -> list[object]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PCCL_TOPOLOGIES", str(REPOSITORY / "tests" / "data" / "topology" / "nccl"))
        scope: dict[str, object] = {}
        return [run_cell(source, scope) for source in cells()]


def test_it_shows_pictures(shown: list[object]) -> None:
    pictures = [value._repr_svg_() for value in shown if hasattr(value, "_repr_svg_")]
    assert len(pictures) >= 6
    assert all(picture and "<svg" in picture for picture in pictures)


def test_the_broken_link_has_its_warning_and_its_price(shown: list[object]) -> None:
    warnings = [
        value
        for value in shown
        if isinstance(value, list) and isinstance(value[0], topology.Warning)
    ]
    assert [warning.name for warning in warnings[-1]] == ["missing_nvlinks"]
    ratios = [value for value in shown if isinstance(value, float)]
    assert ratios
    assert ratios[0] > 7


def test_it_is_kept_without_outputs() -> None:
    notebook = json.loads(NOTEBOOK.read_text())
    assert all(not cell.get("outputs") for cell in notebook["cells"])
