# SPDX-License-Identifier: Apache-2.0
"""Examination of one host: each module reads the facts of a subject and has its checks."""
