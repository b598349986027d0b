# SPDX-License-Identifier: Apache-2.0
"""Packages that PCCL extends, and does not require."""

from __future__ import annotations


def missing_client(module: str, client: str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    """Return the error for the import of a module whose client is not installed.

    Parameters
    ----------
    module
        Module of PCCL.
    client
        Name of the package that it extends.
    error
        Error of the import; returned unless the client itself is missing.
    """
    if error.name != client:
        return error
    text = f"{module} needs {client}, which is not installed: pip install {client}"
    return ModuleNotFoundError(text, name=client)
