"""Circles in a directed graph: what reaches itself."""

from __future__ import annotations


def reached_from(start: str, graph: dict[str, set[str]]) -> set[str]:
    """Give what ``start`` reaches by one step or more."""
    seen: set[str] = set()
    todo = list(graph.get(start, ()))
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo += graph.get(node, ())
    return seen


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Give the largest sets of nodes that all reach each other, sorted; none of a single node."""
    reached = {node: reached_from(node, graph) for node in graph}
    found = {
        tuple(sorted(other for other in reached[node] if node in reached.get(other, ())))
        for node in graph
    }
    return [list(circle) for circle in sorted(found) if len(circle) > 1]
