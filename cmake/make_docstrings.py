"""Write the C++ table (csrc/extension/docstrings.h) of the docstrings in a stub.

make_docstrings.py <stub.pyi> <table.cc>
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLE = """// Of {stub}, by cmake/make_docstrings.py.
#include <array>

#include "csrc/extension/docstrings.h"

namespace pccl::extension {{

std::span<const Docstring> table() {{
    static constexpr auto kTable = std::to_array<Docstring>({{
{rows}
    }});
    return kTable;
}}

}}  // namespace pccl::extension
"""


def docstrings(
    node: ast.Module | ast.ClassDef | ast.FunctionDef, name: str = ""
) -> Iterator[tuple[str, str]]:
    """Give the names and texts of ``node`` and of what it holds."""
    if text := ast.get_docstring(node):
        yield name, text
    for part in node.body:
        if isinstance(part, ast.ClassDef | ast.FunctionDef):
            yield from docstrings(part, f"{name}.{part.name}".removeprefix("."))


def literal(text: str) -> str:
    """Give a C++ string literal for each line."""
    lines = text.splitlines(keepends=True)
    return "\n         ".join(json.dumps(line, ensure_ascii=False) for line in lines)


def table(stub: Path) -> str:
    """Give the source; of the overloads of a function, the last that has a docstring counts."""
    texts = dict(docstrings(ast.parse(stub.read_text(encoding="utf-8"))))
    rows = [
        f'        {{"{name}",\n         {literal(text)}}},' for name, text in sorted(texts.items())
    ]
    return TABLE.format(stub=stub.name, rows="\n".join(rows))


def main() -> None:
    stub, written = map(Path, sys.argv[1:])
    written.parent.mkdir(parents=True, exist_ok=True)
    written.write_text(table(stub), encoding="utf-8")


if __name__ == "__main__":
    main()
