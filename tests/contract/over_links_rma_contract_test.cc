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
INSTANTIATE_TEST_SUITE_P(GpusOverLinks, RmaContract,
                         testing::Values(on("gpus", {0, 1}, kTcp), on("to_a_gpu", {-1, 1}, kTcp),
                                         on("from_a_gpu", {0, -1}, kTcp),
                                         on("gpus_short", {0, 1}, over_short_loopback())),
                         rma_candidate_name);
INSTANTIATE_TEST_SUITE_P(OverLinks, RmaProcesses, testing::Values(kShm, kTcp), rma_candidate_name);

}  // namespace
}  // namespace pccl::transport::contract
