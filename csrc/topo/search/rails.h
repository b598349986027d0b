// SPDX-License-Identifier: Apache-2.0

// Ports and GPUs at which channels enter and leave a node.
#pragma once

#include <vector>

#include "csrc/topo/search/problem.h"

namespace pccl::topo {

/// Ends of a channel.
struct Rail {
    int net_in = kNoNet;
    int first = 0;
    int last = 0;  // equals first if one GPU uses the NIC in both directions
    int net_out = kNoNet;
};

/// Assigns to every port its closest GPUs, and spreads the ports over the GPUs. A ring needs two
/// GPUs: a port with only one closest GPU shares the ring with another such port. Uses at most
/// options().max_channels ports. If there are more, it takes ports at even distances, and no more
/// than the GPUs can feed.
[[nodiscard]] std::vector<Rail> lay_rails(const Problem& problem);

}  // namespace pccl::topo
