# SPDX-License-Identifier: Apache-2.0
"""Examination of a host and of a job: ``pccl doctor``."""
