# SPDX-License-Identifier: Apache-2.0
"""Circles in a graph of imports."""

from __future__ import annotations


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Give the strongly connected components of more than one member, sorted.

    ``graph`` maps a node to those that it leads to.
    """
    reached = {node: _reached(graph, node) for node in graph}
    components = {
        frozenset(other for other in others if node in reached.get(other, ()))
        for node, others in reached.items()
    }
    return sorted(sorted(component) for component in components if len(component) > 1)


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    ahead = [start]
    while ahead:
        news = graph.get(ahead.pop(), set()) - found
        found |= news
        ahead += news
    return found
