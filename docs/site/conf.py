# SPDX-License-Identifier: Apache-2.0
"""Settings of Sphinx for ``make docs``. The root of the repository is the source folder.

So links between files of Markdown mean the same here and where the repository is browsed.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import stub_modules

project = "PCCL"
release = stub_modules.imported().__version__
copyright = "the authors of PCCL, Apache 2.0"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
extensions += ["public_names", "public_headers"]
root_doc = "docs/site/index"
include_patterns = ["*.md", "benchmarks/*.md", "docs/**.md"]
exclude_patterns = [".*", "build", "dist", "shared", "**/__pycache__"]

myst_heading_anchors = 4

autodoc_default_options = {"members": True, "member-order": "bysource"}
napoleon_google_docstring = False
autodoc_mock_imports = ["ray", "torchft"]  # clients, which need not be installed
# Of the types in signatures, those of pccl alone have a page here; and not what it wraps.
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!pccl\.).*"),
    ("py:.*", r".*\._\w+"),
    ("py:.*", r"pccl\.lang\.(geometry\.Geometry|trace\.Trace)"),
    ("py:.*", r"pccl\._core\.(Capsule|Network|Topology|TopologyPlan|JobTopology)"),
]

html_theme = "furo"
html_title = f"PCCL {release}"
html_extra_path = ["redirect"]
html_copy_source = False
html_show_sphinx = False
