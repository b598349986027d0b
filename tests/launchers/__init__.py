# SPDX-License-Identifier: Apache-2.0
"""Jobs of real launchers: ``make test-launchers`` installs them into folders of its own."""
