#include "csrc/transport/shm/shm_transport.h"
#include "tests/contract/transport_contract.h"

namespace pccl::transport::contract {
namespace {

Candidate shm() {
    return {"shm", []() -> Result<TransportMaker> {
                PCCL_ASSIGN_OR_RETURN(auto waiter, Waiter::create());
                PCCL_TRY(shm::ShmTransport::create(*waiter).status());
                return TransportMaker([](Waiter& own) -> Result<std::unique_ptr<Transport>> {
                    PCCL_ASSIGN_OR_RETURN(auto made, shm::ShmTransport::create(own));
                    return std::unique_ptr<Transport>(std::move(made));
                });
            }};
}

INSTANTIATE_TEST_SUITE_P(Shm, TransportContract, testing::Values(shm()), candidate_name);

}  // namespace
}  // namespace pccl::transport::contract
