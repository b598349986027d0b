// SPDX-License-Identifier: Apache-2.0

// NETCONF driver for all dialects. The operations of each step depend on the switch's capabilities:
//
//              candidate, confirmed-commit    candidate               writable-running
//     lock     candidate; discard             candidate; discard      running
//              if refused: reads candidate and running, and reports the difference
//     prepare  edit candidate, tested         edit candidate, tested  -
//     commit   confirmed commit               commit                  edit running: break, make
//     light    get, of state: if the dialect has a light status
//     confirm  commit                         -                       -
//     cancel   cancel-commit                  -                       -
//     save     copy running to startup, if the server has :startup
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "csrc/cluster/drivers/dialect.h"
#include "csrc/cluster/drivers/driver.h"
#include "csrc/netconf/stream.h"

namespace pccl::cluster {

/// Opens a connection to a switch; it is called again after a connection was lost.
using OpenStream = std::function<Result<std::unique_ptr<netconf::ByteStream>>()>;

/// Makes a driver that uses only `ports`; empty: all ports.
[[nodiscard]] PCCL_API std::unique_ptr<SwitchDriver> make_netconf_driver(
    const Dialect& dialect, OpenStream open, std::vector<int> ports = {});

}  // namespace pccl::cluster
