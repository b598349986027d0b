# SPDX-License-Identifier: Apache-2.0
"""Facts of the build; the module is written by CMake (cmake/build_info.py.in)."""

TORCH_VERSION: str  # empty: built without torch
MODULES: tuple[str, ...]
CUDA: bool
COMPILER: str
BUILD_TYPE: str
