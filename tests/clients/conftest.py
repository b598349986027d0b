# SPDX-License-Identifier: Apache-2.0
"""Tests of clients are collected in the environment of one client alone: make test-clients."""

import os

collect_ignore_glob = [] if os.environ.get("PCCL_TEST_CLIENT") else ["test_*.py"]
