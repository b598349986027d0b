"""Paths and settings that all Python tests share."""

import os
import sys
from pathlib import Path

TESTS = Path(__file__).parent

# ``from support.launch import ...`` works from every test, however pytest imports it.
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))

# Ranks outnumber cores: more threads per rank only take time from each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
