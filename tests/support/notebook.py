# SPDX-License-Identifier: Apache-2.0
"""Run a notebook in a kernel, as Jupyter does, and print what its cells of code show as JSON.

notebook.py <notebook.ipynb> [--keep]

With --keep, the file keeps that as its outputs. The kernel is of the interpreter that runs this.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

CELL_SECONDS = 300


def shown_by(cell: dict[str, Any]) -> dict[str, str | None]:
    """Give what a cell prints, and the text and the picture of its last expression.

    A picture is the text of an SVG, or, of pyplot, a PNG in base64.
    """
    printed, text, picture = "", None, None
    for output in cell["outputs"]:
        kind = output["output_type"]
        assert kind in {"stream", "execute_result"}, output
        if kind == "stream":  # what is logged depends on the machine and on chance
            printed += "".join(output["text"]) if output["name"] == "stdout" else ""
        else:
            text = "".join(output["data"]["text/plain"])
            svg, png = (output["data"].get(f"image/{kind}", "") for kind in ("svg+xml", "png"))
            picture = "".join(svg or png) or None
    return {"printed": printed, "text": text, "picture": picture}


def main() -> None:
    import nbformat
    from nbclient import NotebookClient

    path = Path(sys.argv[1])
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=CELL_SECONDS, kernel_name="python3")
    client.record_timing = False
    client.execute(cwd=str(Path.cwd()))
    print(json.dumps([shown_by(cell) for cell in notebook.cells if cell.cell_type == "code"]))
    if "--keep" in sys.argv:
        del notebook.metadata["language_info"]  # of this machine's Python
        nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
