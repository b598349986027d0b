// SPDX-License-Identifier: Apache-2.0

// Reverse path of a one-way link: acknowledgements use another network, by the routes of the
// kernel.
#pragma once

#include <pccl/status.h>
#include "csrc/runtime/peer_directory.h"

namespace pccl::comm {

/// Checks that this host has a route for the acknowledgements of data from `source`, whose link to
/// this rank is one-way. `is_fixed`: there is no return link now either, so that the route already
/// uses the management network, if one is named. kUnavailable names the rank, the device and the
/// route that is required.
[[nodiscard]] Status check_reverse_route(const runtime::PeerDirectory& directory, Rank source,
                                         bool is_fixed);

}  // namespace pccl::comm
