# SPDX-License-Identifier: Apache-2.0
"""Let the test module import its neighbours, which are scripts too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
