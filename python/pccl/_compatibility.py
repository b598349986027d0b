# SPDX-License-Identifier: Apache-2.0
"""Tell early, and in words, when the installed torch is not the one that pccl was built for."""

from pccl import _build_info


def _release(version: str) -> str:
    """Shorten "2.13.0+cpu" to "2.13": what the C++ interfaces of torch depend on."""
    return ".".join(version.split("+")[0].split(".")[:2])


def require_matching_torch() -> None:
    """Check the installed torch before ``pccl._torch`` is imported.

    Raises
    ------
    ImportError
        The package was built without torch, or torch is of another release than the one that the
        extension was built against: its C++ interfaces differ, and loading would fail with an
        undefined symbol, or later.
    """
    import torch

    if not _build_info.TORCH_VERSION:
        raise ImportError(
            "this pccl was built without torch, for numpy alone; build it for the torch that is"
            " installed: pip install --force-reinstall --no-deps --no-build-isolation <path or URL>"
        )
    built, found = _release(_build_info.TORCH_VERSION), _release(torch.__version__)
    if built != found:
        raise ImportError(
            f"pccl was built against torch {built}, but torch {found} is installed; rebuild it: "
            "pip install --force-reinstall --no-deps --no-build-isolation <path or URL of pccl>"
        )
