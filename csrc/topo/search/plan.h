// What a search is asked for, and what it finds: channels for collectives, each with an order of
// GPUs and a bandwidth.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "csrc/topo/graph/names.h"

namespace pccl::topo {

struct SearchOptions {
    Pattern pattern = Pattern::kRing;
    int nodes = 1;          // equal machines in the job, 1 to kMostNodes
    int max_channels = 32;  // 1 to kMostChannels
    /// Steps until the best so far must do: a count, not a time, so that all ranks find the same.
    /// The default takes about 0.1 s.
    std::int64_t steps = 60'000'000;

    static constexpr int kMostNodes = 1 << 20;
    static constexpr int kMostChannels = 64;
};

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
