# SPDX-License-Identifier: Apache-2.0
"""The page of Python: every class under the name by which users reach it."""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any

from sphinx.ext.napoleon.docstring import NumpyDocstring

if TYPE_CHECKING:
    from docutils.nodes import Element
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

MODULES = (
    *("pccl.communicator", "pccl.gpu"),  # of a class that is in pccl too, the later name counts
    *("pccl", "pccl.lang", "pccl.schedule", "pccl.topology"),
)


def _places() -> dict[str, str]:
    """Give the public name of each class by that of its definition; and let it bear that name."""
    found = {}
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value):
                found[f"{value.__module__}.{value.__qualname__}"] = f"{module.__name__}.{name}"
                value.__name__ = value.__qualname__ = name
    return found


PLACES = _places()


def _resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: Element
) -> Element | None:
    target = PLACES.get(node["reftarget"])
    if node["refdomain"] != "py" or target is None:
        return None
    return env.domains["py"].resolve_xref(
        env, node["refdoc"], app.builder, "class", target, node, content
    )


def setup(app: Sphinx) -> dict[str, Any]:
    # Before a colon in the text of a property there is no type: those are in its signature.
    NumpyDocstring._parse_attribute_docstring = NumpyDocstring._consume_to_end  # type: ignore
    app.connect("missing-reference", _resolve)
    return {"parallel_read_safe": True}
