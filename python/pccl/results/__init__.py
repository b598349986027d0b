# SPDX-License-Identifier: Apache-2.0
"""Results of calls: tables, named tuples and rows, which the extension modules make too."""
