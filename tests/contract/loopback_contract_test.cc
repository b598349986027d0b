#include "csrc/transport/loopback/loopback_fabric.h"
#include "tests/contract/transport_contract.h"

namespace pccl::transport::contract {
namespace {

Candidate loopback_with(std::string name, const loopback::FaultPlan& faults) {
    return {std::move(name), [faults]() -> Result<TransportMaker> {
                auto fabric = loopback::LoopbackFabric::create({.faults = faults});
                return TransportMaker([fabric](Waiter& own) -> Result<std::unique_ptr<Transport>> {
                    PCCL_ASSIGN_OR_RETURN(auto made, fabric->make_transport(own));
                    return std::unique_ptr<Transport>(std::move(made));
                });
            }};
}

INSTANTIATE_TEST_SUITE_P(
    Loopback, TransportContract,
    testing::Values(loopback_with("calm", {}),
                    loopback_with("short", {.seed = 5, .short_write = 0.4, .short_read = 0.4})),
    candidate_name);

}  // namespace
}  // namespace pccl::transport::contract
