# SPDX-License-Identifier: Apache-2.0
"""Examination of a job: its ranks, its hosts, and the paths between them."""
