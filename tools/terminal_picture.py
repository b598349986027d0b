# SPDX-License-Identifier: Apache-2.0
"""Pictures of what a terminal shows, as SVG."""

from __future__ import annotations

import html
import textwrap

COLUMNS = 100
CHARACTER = 7.8  # pixels; of the usual monospaced fonts at this size
LINE = 18
SIZE = 13
MARGIN = 14
PROMPTS = ("$ ", ">>> ", "... ")

DRAWING = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"
 viewBox="0 0 {width} {height}"
 font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="{size}">
<rect width="100%" height="100%" rx="6" fill="#1e2430"/>
{lines}
</svg>
"""


def drawn(text: str) -> str:
    """Return a picture of ``text``, wrapped; lines that a user types are bright."""
    lines = [part for line in text.rstrip().splitlines() for part in _wrapped(line)]
    width = round(2 * MARGIN + CHARACTER * max(map(len, lines)))
    height = 2 * MARGIN + LINE * len(lines)
    shapes = [_line(line, MARGIN + LINE * number + SIZE) for number, line in enumerate(lines)]
    return DRAWING.format(width=width, height=height, size=SIZE, lines="\n".join(shapes))


def text_of(picture: str) -> str:
    """Return the lines that a picture shows."""
    lines = [line for line in picture.splitlines() if line.startswith("<text")]
    return "\n".join(html.unescape(line.split(">", 1)[1].removesuffix("</text>")) for line in lines)


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(line, COLUMNS, subsequent_indent="    ", break_on_hyphens=False) or [""]


def _line(line: str, y: int) -> str:
    colour = "#ffffff" if line.startswith(PROMPTS) else "#b8c4d6"
    attributes = f'x="{MARGIN}" y="{y}" fill="{colour}" xml:space="preserve"'
    return f"<text {attributes}>{html.escape(line)}</text>"
