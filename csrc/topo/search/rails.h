// Where channels enter and leave a node: which port, and which GPU beside it.
#pragma once

#include <vector>

#include "csrc/topo/search/problem.h"

namespace pccl::topo {

/// The ends of a channel.
struct Rail {
    int net_in = kNoNet;
    int first = 0;
    int last = 0;  // first again for patterns whose first GPU talks to the NIC both ways
    int net_out = kNoNet;
};

/// Gives every port its closest GPUs, and no GPU more ports than it must have. A ring needs two
/// GPUs: a port with one of them shares the ring with another such port. At most
/// options().max_channels; of more ports, evenly many are taken, and no more than the GPUs can
/// feed.
[[nodiscard]] std::vector<Rail> lay_rails(const Problem& problem);

}  // namespace pccl::topo
