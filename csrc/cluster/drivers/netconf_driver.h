// A switch behind NETCONF, of whatever dialect: what each step means depends on what it can.
//
//              candidate, confirmed-commit    candidate               writable-running
//     lock     candidate; discard             candidate; discard      running
//              where it was refused: read candidate and running, and tell what differs
//     prepare  edit candidate, tested         edit candidate, tested  -
//     commit   confirmed commit               commit                  edit running: break, make
//     light    get, of state: where the dialect tells of light
//     confirm  commit                         -                       -
//     cancel   cancel-commit                  -                       -
//     save     copy running to startup, where the server has :startup
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "csrc/cluster/drivers/dialect.h"
#include "csrc/cluster/drivers/driver.h"
#include "csrc/netconf/stream.h"

namespace pccl::cluster {

/// Opens a connection to a switch; called again after one was lost.
using OpenStream = std::function<Result<std::unique_ptr<netconf::ByteStream>>()>;

/// `ports`: those that it looks at; none: all.
[[nodiscard]] PCCL_API std::unique_ptr<Driver> make_netconf_driver(const Dialect& dialect,
                                                                   OpenStream open,
                                                                   std::vector<int> ports = {});

}  // namespace pccl::cluster
