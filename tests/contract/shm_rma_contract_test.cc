#include "csrc/transport/shm/rma.h"
#include "csrc/transport/shm/shm_transport.h"
#include "tests/contract/rma_contract.h"

namespace pccl::transport::contract {
namespace {

/// `in_files`: peers map the memory; else the kernel copies.
RmaCandidate shm(std::string name, bool in_files) {
    return {.name = std::move(name),
            .new_world = [] { return TransportMaker(&make_shm); },
            .one_sided = [](Transport&) -> Result<std::unique_ptr<RmaTransport>> {
                PCCL_ASSIGN_OR_RETURN(auto made, shm::ShmRma::create());
                return std::unique_ptr<RmaTransport>(std::move(made));
            },
            .in_files = in_files};
}

const auto kCandidates = testing::Values(shm("mapped", true), shm("by_the_kernel", false));
INSTANTIATE_TEST_SUITE_P(Shm, RmaContract, kCandidates, rma_candidate_name);
INSTANTIATE_TEST_SUITE_P(Shm, RmaProcesses, kCandidates, rma_candidate_name);

}  // namespace
}  // namespace pccl::transport::contract
