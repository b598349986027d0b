# SPDX-License-Identifier: Apache-2.0
"""Results as rows for data frames, and as tables in notebooks."""

from __future__ import annotations

import dataclasses
import html
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Fields", "HasRow", "Table", "fields_of", "html_table"]

Fields: TypeAlias = dict[str, object]


class HasRow(Protocol):
    """Interface of a result with fields."""

    def row(self) -> Fields:
        """Return the fields as a flat dictionary of numbers, text, None and lists of these."""


_Result = TypeVar("_Result", bound=HasRow)


class Table(list[_Result]):
    """List of results of one kind, which notebooks display as a table.

    ``polars.DataFrame(table.rows)`` and ``pandas.DataFrame(table.rows)`` accept its rows.

    >>> rows = pccl.bench.run(pccl.bench.Job(sizes=(1024,)))
    >>> polars.DataFrame(rows.rows)
    """

    @property
    def rows(self) -> list[Fields]:
        """Dictionary for each result, all with the same keys."""
        return [result.row() for result in self]

    def _repr_html_(self) -> str:
        return html_table(self.rows)


def fields_of(result: object) -> Fields:
    """Return the fields of a dataclass or named tuple, with tuples as lists."""
    if dataclasses.is_dataclass(result):
        names = [field.name for field in dataclasses.fields(result)]
    else:
        names = list(result._fields)  # type: ignore[attr-defined]
    values = [getattr(result, name) for name in names]
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in zip(names, values, strict=True)
    }


def html_table(rows: Sequence[Fields], *, caption: str = "", marked: int | None = None) -> str:
    """Return an HTML table with a line for each of ``rows``, and line ``marked`` in bold."""
    if not rows:
        return f"<p>{html.escape(caption) or 'nothing'}</p>"
    lines = ["<table>"]
    if caption:
        lines.append(f'<caption style="text-align: left">{_escaped(caption)}</caption>')
    lines.append("<tr>" + "".join(f"<th>{html.escape(name)}</th>" for name in rows[0]) + "</tr>")
    lines += [_html_line(row, is_marked=index == marked) for index, row in enumerate(rows)]
    return "\n".join([*lines, "</table>"])


def _html_line(row: Fields, *, is_marked: bool) -> str:
    style = ' style="font-weight: bold"' if is_marked else ""
    return f"<tr{style}>" + "".join(f"<td>{_shown(value)}</td>" for value in row.values()) + "</tr>"


def _escaped(text: str) -> str:
    return html.escape(text).replace("\n", "<br>")


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return _escaped(str(value))
