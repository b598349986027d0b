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

/// Devices reach memory of GPUs; `writes` is how the GPUs take their data.
RmaCandidate of_gpus(std::string name, std::array<int, 2> on, sys::cuda::DeviceWrites writes,
                     const verbs::VerbsOptions& options = {}) {
    RmaCandidate candidate = rma_with(std::move(name), options);
    candidate.new_world = [options, writes] {
        gpus().take_writes(writes);
        return world(options);
    };
    candidate.gpus = on;
    candidate.much = kMiB;  // in time for sanitizers
    return candidate;
}

using enum sys::cuda::DeviceWrites;
const auto kRmaOfGpus = testing::Values(
    of_gpus("between_gpus", {0, 1}, kOrdered),
    of_gpus("between_gpus_with_driver_flushes", {0, 1}, kFlushed),
    of_gpus("between_gpus_with_read_flushes", {0, 1}, kUnordered),
    of_gpus("by_peermem", {0, 1}, kUnordered,
            {.hca = one_port(), .gpu_ways = {verbs::GpuWay::kPeermem}}),
    of_gpus("from_the_host", {-1, 1}, kOrdered), of_gpus("to_the_host", {0, -1}, kUnordered));
INSTANTIATE_TEST_SUITE_P(VerbsGpu, RmaContract, kRmaOfGpus, rma_candidate_name);
INSTANTIATE_TEST_SUITE_P(VerbsGpu, RmaProcesses, kRmaOfGpus, rma_candidate_name);

}  // namespace
}  // namespace pccl::transport::contract
