// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/tcp_transport.h"
#include "tests/contract/transport_contract.h"

namespace pccl::transport::contract {
namespace {

/// Where `subnet` has no address, the tests are skipped for the reason that the control plane
/// gives.
Candidate tcp_in(std::string name, const std::string& subnet, int data_sockets,
                 std::size_t near_paths = 1) {
    const tcp::TcpOptions options{.data_sockets = data_sockets, .near_paths = near_paths};
    const auto make = [subnet, options](Waiter& own) {
        return fakes::tcp_member(own, subnet, options);
    };
    return {std::move(name), [make]() -> Result<MemberMaker> {
                PCCL_ASSIGN_OR_RETURN(auto waiter, Waiter::create());
                PCCL_TRY(make(*waiter).status());
                return MemberMaker(make);
            }};
}

INSTANTIATE_TEST_SUITE_P(Tcp, TransportContract,
                         testing::Values(tcp_in("v4", "127.0.0.0/8", 2),
                                         tcp_in("v4_one_socket", "127.0.0.0/8", 1),
                                         tcp_in("v4_paths", "127.0.0.0/8", 2, 3),
                                         tcp_in("v6", "::1/128", 3)),
                         candidate_name);

}  // namespace
}  // namespace pccl::transport::contract
