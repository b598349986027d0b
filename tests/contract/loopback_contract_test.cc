// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/transport_contract.h"
#include "tests/fakes/loopback/loopback_fabric.h"

namespace pccl::transport::contract {
namespace {

Candidate loopback_with(std::string name, const loopback::FaultPlan& faults) {
    return {std::move(name), [faults]() -> Result<MemberMaker> {
                auto fabric = loopback::LoopbackFabric::create({.faults = faults});
                return MemberMaker(
                    [fabric](Waiter& own) { return fakes::loopback_member(*fabric, own); });
            }};
}

INSTANTIATE_TEST_SUITE_P(
    Loopback, TransportContract,
    testing::Values(loopback_with("calm", {}),
                    loopback_with("short", {.seed = 5, .short_write = 0.4, .short_read = 0.4})),
    candidate_name);

}  // namespace
}  // namespace pccl::transport::contract
