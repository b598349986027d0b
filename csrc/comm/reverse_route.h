// The way back of a link that goes one way: over another network, as routes have it.
#pragma once

#include "csrc/base/status.h"
#include "csrc/runtime/peer_directory.h"

namespace pccl::comm {

/// ok where this host has a route to the address for data of `source`, whose link to this rank goes
/// one way: acknowledgements take it. `is_fixed`: no link leads back now either, so that the route
/// leaves by the management network already, where one is named. kUnavailable names rank, device
/// and the route that is wanted.
[[nodiscard]] Status check_reverse_route(const runtime::PeerDirectory& directory, Rank source,
                                         bool is_fixed);

}  // namespace pccl::comm
