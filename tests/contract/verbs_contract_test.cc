// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/rma_contract.h"
#include "tests/contract/transport_contract.h"
#include "tests/fakes/verbs_fabric.h"
#include "tests/fakes/verbs_member.h"

namespace pccl::transport::contract {
namespace {

[[maybe_unused]] const bool kIsFake = fakes::use_fake_verbs();

constexpr verbs::ConnectWay kByRdmaCm = verbs::ConnectWay::kRdmaCm;

std::string one_port() { return "=" + fakes::verbs_device(0); }

Result<MemberMaker> world(const verbs::VerbsOptions& options) {
    return MemberMaker([options](Waiter& waiter) { return fakes::verbs_member(waiter, options); });
}

Candidate verbs_with(std::string name, const verbs::VerbsOptions& options) {
    return {std::move(name), [options] { return world(options); }};
}

INSTANTIATE_TEST_SUITE_P(
    Verbs, TransportContract,
    testing::Values(verbs_with("one_port", {.hca = one_port()}), verbs_with("two_ports", {}),
                    verbs_with("two_ports_of_three_pairs", {.queue_pairs = 3}),
                    verbs_with("by_rdma_cm", {.hca = one_port(), .way = kByRdmaCm}),
                    verbs_with("two_ports_of_two_pairs_by_rdma_cm",
                               {.queue_pairs = 2, .way = kByRdmaCm})),
    candidate_name);

RmaCandidate rma_with(std::string name, const verbs::VerbsOptions& options) {
    return {.name = std::move(name), .new_world = [options] { return world(options); }};
}

const auto kRma =
    testing::Values(rma_with("one_port", {.hca = one_port()}), rma_with("two_ports", {}),
                    rma_with("two_pairs_of_one_port", {.hca = one_port(), .queue_pairs = 2}),
                    rma_with("by_rdma_cm", {.hca = one_port(), .way = kByRdmaCm}));
INSTANTIATE_TEST_SUITE_P(Verbs, RmaContract, kRma, rma_candidate_name);
INSTANTIATE_TEST_SUITE_P(Verbs, RmaProcesses, kRma, rma_candidate_name);

}  // namespace
}  // namespace pccl::transport::contract
