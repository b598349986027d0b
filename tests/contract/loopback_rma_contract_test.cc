// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/rma_contract.h"
#include "tests/fakes/loopback/loopback_fabric.h"

namespace pccl::transport::contract {
namespace {

RmaCandidate loopback_rma_with(std::string name, const loopback::FaultPlan& faults) {
    return {.name = std::move(name), .new_world = [faults] { return loopback_world(faults); }};
}

INSTANTIATE_TEST_SUITE_P(
    Loopback, RmaContract,
    testing::Values(loopback_rma_with("calm", {}),
                    loopback_rma_with("late", {.seed = 5,
                                               .short_read = 0.3,
                                               .longest_delay = std::chrono::microseconds(50)})),
    rma_candidate_name);

}  // namespace
}  // namespace pccl::transport::contract
