#include "tests/contract/rma_contract.h"

namespace pccl::transport::contract {
namespace {

/// `in_files`: peers map the memory; else the kernel copies.
RmaCandidate shm(std::string name, bool in_files) {
    return {.name = std::move(name),
            .new_world = [] { return MemberMaker(&fakes::shm_member); },
            .in_files = in_files};
}

const auto kCandidates = testing::Values(shm("mapped", true), shm("by_the_kernel", false));
INSTANTIATE_TEST_SUITE_P(Shm, RmaContract, kCandidates, rma_candidate_name);
INSTANTIATE_TEST_SUITE_P(Shm, RmaProcesses, kCandidates, rma_candidate_name);

}  // namespace
}  // namespace pccl::transport::contract
