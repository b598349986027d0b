# SPDX-License-Identifier: Apache-2.0
"""The version, read by the build as well."""

__version__ = "0.2.0"
