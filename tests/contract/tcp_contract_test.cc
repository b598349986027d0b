#include "csrc/transport/tcp/tcp_transport.h"
#include "tests/contract/transport_contract.h"

namespace pccl::transport::contract {
namespace {

/// Where `subnet` has no address, the tests are skipped for the reason that create() gives.
Candidate tcp_in(std::string name, const std::string& subnet, int data_sockets) {
    const tcp::TcpOptions options{.interface = subnet, .data_sockets = data_sockets};
    return {std::move(name), [options]() -> Result<TransportMaker> {
                PCCL_ASSIGN_OR_RETURN(auto waiter, Waiter::create());
                PCCL_TRY(tcp::TcpTransport::create(*waiter, options).status());
                return TransportMaker([options](Waiter& own) -> Result<std::unique_ptr<Transport>> {
                    PCCL_ASSIGN_OR_RETURN(auto made, tcp::TcpTransport::create(own, options));
                    return std::unique_ptr<Transport>(std::move(made));
                });
            }};
}

INSTANTIATE_TEST_SUITE_P(Tcp, TransportContract,
                         testing::Values(tcp_in("v4", "127.0.0.0/8", 2),
                                         tcp_in("v4_one_socket", "127.0.0.0/8", 1),
                                         tcp_in("v6", "::1/128", 3)),
                         candidate_name);

}  // namespace
}  // namespace pccl::transport::contract
