# SPDX-License-Identifier: Apache-2.0
"""Early check that the installed torch has the release that pccl was built for."""

from pccl import _build_info


def _release(version: str) -> str:
    """Return "2.13" for "2.13.0+cpu": the part that determines the C++ interfaces of torch."""
    return ".".join(version.split("+")[0].split(".")[:2])


def require_matching_torch() -> None:
    """Check the installed torch before ``pccl._torch`` is imported.

    Raises
    ------
    ImportError
        The package was built without torch, or the extension was built against another release of
        torch. The C++ interfaces of releases differ, and the import would fail with an undefined
        symbol, or later.
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
