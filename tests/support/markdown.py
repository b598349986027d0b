# SPDX-License-Identifier: Apache-2.0
"""The fenced blocks of a Markdown file, with what a comment above one says of it.

    <!-- not run: needs GPUs -->
    ```python
    ...
    ```

Such a block is checked, but a test cannot run it here, for the reason given.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<excuse>[^\n]+) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One fenced block; ``excuse`` says why it cannot run here, or is empty."""

    file: str
    line: int
    language: str
    text: str
    excuse: str

    @property
    def name(self) -> str:
        """The file that a first line such as ``# hello.py`` asks for, else one made up."""
        first = re.match(r"# (\w+\.py)\n", self.text)
        return first[1] if first else f"{self.file.split('.')[0].lower()}_line_{self.line}.py"


def blocks_of(path: Path, language: str) -> list[Block]:
    """Return the blocks of ``path`` in ``language``, in their order."""
    text = path.read_text(encoding="utf-8")
    return [
        Block(
            file=path.name,
            line=text.count("\n", 0, found.start("text")) + 1,
            language=found["language"],
            text=found["text"],
            excuse=found["excuse"] or "",
        )
        for found in _BLOCK.finditer(text)
        if found["language"] == language
    ]
