// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/connection/lane_count.h"

#include <algorithm>
#include <string_view>

#include "csrc/base/text/text.h"
#include "csrc/transport/rma/frames.h"

namespace pccl::p2p {
namespace {

/// Returns why the process that makes the claim has one thread.
std::string why_one_thread(const bootstrap::CoreClaim& claim, std::string_view process,
                           int sharers) {
    if (claim.tcp_threads == 0) return concat("PCCL_TCP_THREADS is 0 in ", process);
    return concat(process,
                  " has one thread: ", sharers == 1 ? "it has " : "the two processes share ",
                  claim.cores, claim.cores == 1 ? " core" : " cores");
}

}  // namespace

LaneCount lanes_between(const bootstrap::CoreClaim& own, const bootstrap::CoreClaim& peer,
                        bool is_on_host, const transport::Crowd& crowd) {
    const int sharers = is_on_host && own.core_set == peer.core_set ? 2 : 1;
    const int agreed = std::min(own.threads(sharers), peer.threads(sharers));
    if (agreed < 2) {
        const bool is_own = own.threads(sharers) < 2;
        return {.reason = why_one_thread(is_own ? own : peer,
                                         is_own ? "this process" : "the peer's process", sharers)};
    }
    const auto lanes = std::min(static_cast<std::size_t>(agreed), transport::kMostRmaLanes);
    const int threads = own.threads(std::max(sharers, static_cast<int>(crowd.processes)));
    return {.lanes = lanes, .helpers = std::min(threads, static_cast<int>(lanes)) - 1};
}

}  // namespace pccl::p2p
