// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/transport_contract.h"

namespace pccl::transport::contract {
namespace {

Candidate shm() {
    return {"shm", []() -> Result<MemberMaker> {
                PCCL_ASSIGN_OR_RETURN(auto waiter, Waiter::create());
                PCCL_TRY(fakes::shm_member(*waiter).status());
                return MemberMaker(&fakes::shm_member);
            }};
}

INSTANTIATE_TEST_SUITE_P(Shm, TransportContract, testing::Values(shm()), candidate_name);

}  // namespace
}  // namespace pccl::transport::contract
