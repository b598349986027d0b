#include "csrc/transport/loopback/loopback_fabric.h"
#include "csrc/transport/rma/over_links.h"
#include "csrc/transport/tcp/tcp_transport.h"
#include "tests/contract/rma_contract.h"

namespace pccl::transport::contract {
namespace {

Result<std::unique_ptr<Transport>> make_tcp(Waiter& own) {
    PCCL_ASSIGN_OR_RETURN(
        auto made, tcp::TcpTransport::create(own, {.interface = "127.0.0.0/8", .data_sockets = 2}));
    return std::unique_ptr<Transport>(std::move(made));
}

RmaCandidate over(std::string name, std::function<Result<TransportMaker>()> new_world) {
    return {.name = std::move(name),
            .new_world = std::move(new_world),
            .one_sided = [](Transport&) -> Result<std::unique_ptr<RmaTransport>> {
                return std::unique_ptr<RmaTransport>(std::make_unique<RmaOverLinks>());
            }};
}

/// Streams that take and give only some of what they could.
RmaCandidate over_short_loopback() {
    RmaCandidate candidate = over("loopback_short", [] {
        return loopback_world({.seed = 3, .short_write = 0.4, .short_read = 0.4});
    });
    candidate.much = 256 * kKiB;
    return candidate;
}

const RmaCandidate kShm = over("shm", [] { return TransportMaker(&make_shm); });
const RmaCandidate kTcp = over("tcp", [] { return TransportMaker(&make_tcp); });
INSTANTIATE_TEST_SUITE_P(OverLinks, RmaContract, testing::Values(kShm, kTcp, over_short_loopback()),
                         rma_candidate_name);
INSTANTIATE_TEST_SUITE_P(OverLinks, RmaProcesses, testing::Values(kShm, kTcp), rma_candidate_name);

}  // namespace
}  // namespace pccl::transport::contract
