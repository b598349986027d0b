// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/ids.h"
#include "csrc/transport/rma/over_links.h"
#include "tests/contract/rma_contract.h"

namespace pccl::transport::contract {
namespace {

Result<fakes::Member> tcp_member(Waiter& own) { return fakes::tcp_member(own, "127.0.0.0/8"); }

RmaCandidate over(std::string name, std::function<Result<MemberMaker>()> new_world) {
    return {.name = std::move(name), .new_world = std::move(new_world), .one_sided = [] {
                return std::make_shared<RmaOverLinks>();
            }};
}

/// Streams that take and give only some of what they could.
RmaCandidate over_short_loopback() {
    RmaCandidate candidate = over("loopback_short", [] {
        return loopback_world({.seed = 3, .short_write = 0.4, .short_read = 0.4});
    });
    candidate.much = 256 * kKiB;
    return candidate;
}

/// With lanes for large posts, and helper threads on each end.
RmaCandidate with_lanes(std::string name, std::size_t lanes, int helpers,
                        const RmaCandidate& alone) {
    RmaCandidate candidate = alone;
    candidate.name = std::move(name);
    candidate.lanes = lanes;
    candidate.helpers = helpers;
    return candidate;
}

#ifdef __SANITIZE_THREAD__
constexpr int kHelpersOfChild =
    0;  // ThreadSanitizer lets no child of a process with threads start any
#else
constexpr int kHelpersOfChild = 2;
#endif

/// Memory of the initiator and of the target is on these GPUs; -1: of the host.
RmaCandidate on(std::string name, std::array<int, 2> gpus, const RmaCandidate& host) {
    RmaCandidate candidate = host;
    candidate.name = std::move(name);
    candidate.gpus = gpus;
    candidate.much = kMiB;  // in time for sanitizers
    return candidate;
}

const RmaCandidate kShm = over("shm", [] { return MemberMaker(&fakes::shm_member); });
const RmaCandidate kTcp = over("tcp", [] { return MemberMaker(&tcp_member); });
INSTANTIATE_TEST_SUITE_P(OverLinks, RmaContract, testing::Values(kShm, kTcp, over_short_loopback()),
                         rma_candidate_name);
INSTANTIATE_TEST_SUITE_P(
    OverLanes, RmaContract,
    testing::Values(with_lanes("tcp_lanes", 3, 2, kTcp), with_lanes("tcp_lanes_alone", 4, 0, kTcp),
                    with_lanes("loopback_lanes_short", 2, 1, over_short_loopback())),
    rma_candidate_name);
INSTANTIATE_TEST_SUITE_P(OverLanes, RmaProcesses,
                         testing::Values(with_lanes("tcp_lanes", 3, kHelpersOfChild, kTcp)),
                         rma_candidate_name);
INSTANTIATE_TEST_SUITE_P(GpusOverLinks, RmaContract,
                         testing::Values(on("gpus", {0, 1}, kTcp), on("to_a_gpu", {-1, 1}, kTcp),
                                         on("from_a_gpu", {0, -1}, kTcp),
                                         on("gpus_short", {0, 1}, over_short_loopback())),
                         rma_candidate_name);
INSTANTIATE_TEST_SUITE_P(OverLinks, RmaProcesses, testing::Values(kShm, kTcp), rma_candidate_name);

}  // namespace
}  // namespace pccl::transport::contract
