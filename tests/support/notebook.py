"""Run the code of a notebook as one does, without Jupyter, and print what it shows as JSON.

notebook.py <notebook.ipynb>

For each cell of code: what it prints, and the text and the picture of a last expression.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import linecache
import sys
from pathlib import Path


def picture_of(value: object) -> str | None:
    """What a notebook draws for a value: its own picture, or the figure that it is."""
    if hasattr(value, "_repr_svg_"):
        return value._repr_svg_()
    if hasattr(value, "savefig"):
        text = io.StringIO()
        value.savefig(text, format="svg", bbox_inches="tight")
        return text.getvalue()
    return None


def run_cell(name: str, source: str, scope: dict[str, object]) -> dict[str, str | None]:
    """Run one cell; like a notebook, show the value of its last expression, and lines in errors."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), scope)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), scope)
    picture = picture_of(value)
    return {
        "printed": printed.getvalue(),
        "text": None if value is None else repr(value),
        "picture": picture,
    }


def main() -> None:
    notebook = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    scope: dict[str, object] = {}
    sources = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    print(json.dumps([run_cell(f"cell {i}", source, scope) for i, source in enumerate(sources, 1)]))


if __name__ == "__main__":
    main()
