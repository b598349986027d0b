# SPDX-License-Identifier: Apache-2.0
"""Prometheus' text format.

Source: "Exposition formats", text-based format 0.0.4, in the documentation of Prometheus.
"""

from __future__ import annotations

import dataclasses
import typing

if typing.TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Metric", "Sample", "text_of"]


@dataclasses.dataclass(frozen=True)
class Metric:
    """A metric; ``kind`` is ``"counter"`` or ``"gauge"``."""

    name: str
    kind: str
    help: str


Sample: typing.TypeAlias = tuple[Metric, dict[str, str], float]


def text_of(metrics: Sequence[Metric], samples: Iterable[Sample]) -> str:
    """Return the samples in the order of their metrics, each with one HELP and one TYPE line."""
    known = list(samples)
    lines = []
    for metric in metrics:
        own = [sample for sample in known if sample[0] is metric]
        if own:
            lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
        lines += [f"{metric.name}{_labels(labels)} {value!r}" for _, labels, value in own]
    return "\n".join(lines) + "\n"


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
