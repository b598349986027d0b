// SPDX-License-Identifier: Apache-2.0

// Options and result of a search: channels for collectives, each with an order of GPUs and a
// bandwidth.
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
    /// Steps after which the search returns its best result: a count instead of a time, so that all
    /// ranks get the same result. The default takes about 0.1 s.
    std::int64_t steps = 60'000'000;

    static constexpr int kMostNodes = 1 << 20;
    static constexpr int kMostChannels = 64;
};

inline constexpr int kNoNet = -1;

struct Channel {
    double bandwidth = 0;      // GB/s
    std::vector<int> order{};  // indices of GPUs; kHeads: the head, then the others
    int net_in = kNoNet;       // index of the NIC's port that receives from other nodes
    int net_out = kNoNet;      // index of the NIC's port that sends to other nodes

    friend bool operator==(const Channel&, const Channel&) = default;
};

struct ChannelPlan {
    Pattern pattern = Pattern::kRing;
    int nodes = 1;
    std::vector<Channel> channels;
    PathType type_intra = PathType::kLoc;  // the worst between GPUs
    PathType type_inter = PathType::kLoc;  // the worst between GPUs and NICs; kLoc for one node
    double bandwidth = 0;                  // GB/s, sum over all channels
    double bound = 0;                      // upper bound for plans with these path types
    bool optimal = false;                  // bandwidth equals bound
    double seconds = 0;                    // duration of the search

    /// Ignores `seconds`, which vary from run to run.
    friend bool operator==(const ChannelPlan& a, const ChannelPlan& b) {
        return a.pattern == b.pattern && a.nodes == b.nodes && a.channels == b.channels &&
               a.type_intra == b.type_intra && a.type_inter == b.type_inter;
    }
};

}  // namespace pccl::topo
