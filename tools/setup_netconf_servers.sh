#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Installs the NETCONF servers that tests of phases run against: yuma123's netconfd behind OpenSSH,
# and its yangcli and ncclient, which read what PCCL wrote, and pyang, which checks PCCL's modules. Tests start what they need on loopback ports, and stop
# it. Where packages start their services, Debian's own sshd is started as well.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tools/debian_packages.sh
source tools/debian_packages.sh

# Not netconfd-module-ietf-interfaces, which ends netconfd at the first session.
install_packages netconfd yangcli openssh-client openssh-server
say "pip install ncclient pyang"
.venv/bin/python -m pip install --quiet ncclient==0.7.1 pyang==2.7.1
say "done"
