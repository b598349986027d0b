// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/ids.h"
#include "tests/contract/rma_contract.h"

namespace pccl::transport::contract {
namespace {

/// `in_files`: peers map the memory; else the kernel copies.
RmaCandidate shm_rma(std::string name, bool in_files) {
    return {.name = std::move(name),
            .new_world = [] { return MemberMaker(&fakes::shm_member); },
            .in_files = in_files};
}

/// Engines copy between the initiator's GPU and the target's; -1: memory of the host.
RmaCandidate gpu(std::string name, std::array<int, 2> gpus, bool in_files = false) {
    RmaCandidate candidate = shm_rma(std::move(name), in_files);
    candidate.gpus = gpus;
    candidate.much = kMiB;  // in time for sanitizers
    return candidate;
}

const auto kCandidates = testing::Values(shm_rma("mapped", true), shm_rma("by_the_kernel", false));
INSTANTIATE_TEST_SUITE_P(Shm, RmaContract, kCandidates, rma_candidate_name);
INSTANTIATE_TEST_SUITE_P(Shm, RmaProcesses, kCandidates, rma_candidate_name);

const auto kGpus = testing::Values(gpu("between_gpus", {0, 1}), gpu("on_one_gpu", {0, 0}),
                                   gpu("from_the_host", {-1, 1}), gpu("to_the_host", {0, -1}),
                                   gpu("to_mapped_memory", {0, -1}, true));
INSTANTIATE_TEST_SUITE_P(Gpu, RmaContract, kGpus, rma_candidate_name);
INSTANTIATE_TEST_SUITE_P(Gpu, RmaProcesses, kGpus, rma_candidate_name);

}  // namespace
}  // namespace pccl::transport::contract
