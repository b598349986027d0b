// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/connection/lane_count.h"

#include <algorithm>

#include "csrc/transport/rma/frames.h"

namespace pccl::p2p {

LaneCount lanes_between(const bootstrap::CoreClaim& own, const bootstrap::CoreClaim& peer,
                        bool is_on_host, const transport::Crowd& crowd) {
    const int sharers = is_on_host && own.core_set == peer.core_set ? 2 : 1;
    const int agreed = std::min(own.threads(sharers), peer.threads(sharers));
    if (agreed < 2) return {};
    const auto lanes = std::min(static_cast<std::size_t>(agreed), transport::kMostRmaLanes);
    const int threads = own.threads(std::max(sharers, static_cast<int>(crowd.processes)));
    return {.lanes = lanes, .helpers = std::min(threads, static_cast<int>(lanes)) - 1};
}

}  // namespace pccl::p2p
