# SPDX-License-Identifier: Apache-2.0
"""Schedules, the programs of collectives: functions to generate, verify and print them.

>>> from pccl import schedule
>>> program = schedule.generate("ring", "all_gather", ranks=4)
>>> program.verify()
{'rounds': 3, 'bit_identical': True}
>>> print(program)
"""

from pccl._core import Schedule, algorithms, generate

__all__ = ["Schedule", "algorithms", "generate"]


def __dir__() -> list[str]:
    return sorted(__all__)
