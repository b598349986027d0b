# SPDX-License-Identifier: Apache-2.0
"""Names of the collectives in benchmarks."""

__all__ = ["COLLECTIVES", "REDUCTIONS"]

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all")
REDUCTIONS = ("all_reduce", "reduce_scatter")
