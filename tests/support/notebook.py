"""Run the code of a notebook as one does, without Jupyter, and print what it shows as JSON.

notebook.py <notebook.ipynb> [--keep]

For each cell of code: what it prints, and the text and the picture of a last expression. With
--keep, the file keeps them as its outputs.
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


def outputs_of(number: int, shown: dict[str, str | None]) -> list[dict[str, object]]:
    """What a file keeps of what a cell shows."""
    outputs: list[dict[str, object]] = []
    if shown["printed"]:
        text = shown["printed"].splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if shown["text"] is not None:
        forms = {"image/svg+xml": shown["picture"], "text/plain": shown["text"]}
        data = {form: text.splitlines(keepends=True) for form, text in forms.items() if text}
        result = {"data": data, "execution_count": number, "metadata": {}}
        outputs.append(result | {"output_type": "execute_result"})
    return outputs


def main() -> None:
    path = Path(sys.argv[1])
    notebook = json.loads(path.read_text(encoding="utf-8"))
    scope: dict[str, object] = {}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    shown = [run_cell(f"cell {i}", "".join(c["source"]), scope) for i, c in enumerate(cells, 1)]
    print(json.dumps(shown))
    if "--keep" in sys.argv:
        for number, (cell, each) in enumerate(zip(cells, shown, strict=True), 1):
            cell |= {"execution_count": number, "outputs": outputs_of(number, each)}
        path.write_text(json.dumps(notebook, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
