// What a search finds: channels for collectives, each with an order of GPUs and a bandwidth.
#pragma once

#include <string>
#include <vector>

#include "csrc/topo/names.h"

namespace pccl::topo {

inline constexpr int kNoNet = -1;

struct Channel {
    double bandwidth = 0;      // GB/s
    std::vector<int> order{};  // indices of GPUs; of heads: the head, then the others
    int net_in = kNoNet;       // index of the NIC's port by which the other nodes' data comes
    int net_out = kNoNet;      // and by which it leaves

    friend bool operator==(const Channel&, const Channel&) = default;
};

struct Plan {
    Pattern pattern = Pattern::kRing;
    int nodes = 1;
    std::vector<Channel> channels;
    PathType type_intra = PathType::kLoc;  // the worst between GPUs
    PathType type_inter = PathType::kLoc;  // the worst between GPUs and NICs; kLoc for one node
    double bandwidth = 0;                  // GB/s of all channels together
    double bound = 0;                      // no plan of these path types has more
    bool optimal = false;                  // bandwidth reaches bound
    double seconds = 0;                    // that the search took

    /// All but `seconds`, which differ from run to run.
    friend bool operator==(const Plan& a, const Plan& b) {
        return a.pattern == b.pattern && a.nodes == b.nodes && a.channels == b.channels &&
               a.type_intra == b.type_intra && a.type_inter == b.type_inter;
    }
};

}  // namespace pccl::topo
