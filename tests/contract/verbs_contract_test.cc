// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/socket_control_plane.h"
#include "csrc/transport/tcp/tcp_transport.h"
#include "csrc/transport/verbs/verbs_transport.h"
#include "tests/contract/rma_contract.h"
#include "tests/contract/transport_contract.h"
#include "tests/fakes/verbs_fabric.h"

namespace pccl::transport::contract {
namespace {

[[maybe_unused]] const bool kIsFake = fakes::use_fake_verbs();

Result<fakes::Member> verbs_member(Waiter& waiter, verbs::VerbsOptions options) {
    options.stream = tcp::TcpOptions().stream;
    PCCL_ASSIGN_OR_RETURN(auto control, SocketControlPlane::create({.within_host = false,
                                                                    .interface = "127.0.0.0/8",
                                                                    .stream = options.stream}));
    PCCL_ASSIGN_OR_RETURN(const NetworkSide here, control->between_hosts());
    PCCL_ASSIGN_OR_RETURN(auto made, verbs::VerbsTransport::create(waiter, here, options));
    return fakes::Member{std::move(control), std::move(made)};
}

Result<MemberMaker> world(const verbs::VerbsOptions& options) {
    return MemberMaker([options](Waiter& waiter) { return verbs_member(waiter, options); });
}

Candidate verbs_with(std::string name, const verbs::VerbsOptions& options) {
    return {std::move(name), [options] { return world(options); }};
}

INSTANTIATE_TEST_SUITE_P(
    Verbs, TransportContract,
    testing::Values(verbs_with("one_port", {.hca = "=mlx5_0"}), verbs_with("two_ports", {}),
                    verbs_with("two_ports_of_three_pairs", {.queue_pairs = 3})),
    candidate_name);

RmaCandidate rma_with(std::string name, const verbs::VerbsOptions& options) {
    return {.name = std::move(name), .new_world = [options] { return world(options); }};
}

const auto kRma =
    testing::Values(rma_with("one_port", {.hca = "=mlx5_0"}), rma_with("two_ports", {}),
                    rma_with("two_pairs_of_one_port", {.hca = "=mlx5_0", .queue_pairs = 2}));
INSTANTIATE_TEST_SUITE_P(Verbs, RmaContract, kRma, rma_candidate_name);
INSTANTIATE_TEST_SUITE_P(Verbs, RmaProcesses, kRma, rma_candidate_name);

}  // namespace
}  // namespace pccl::transport::contract
