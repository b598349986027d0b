// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "csrc/kernels/launch.h"

namespace pccl::kernels {
namespace {

constexpr std::array kProtocols = {Protocol::kLL, Protocol::kDirect, Protocol::kStaggered};
// One operator with kernels of its own for each type, and one of the others.
constexpr std::array kOps = {ReduceOp::kSum, ReduceOp::kMax};

LargeBatch large_batch_of(const Launch& launch, bool reduces) {
    return {.team = launch.team,
            .type = launch.type,
            .op = launch.op,
            .reduces = reduces,
            .plan = launch.plan};
}

Status load_moves(const Launch& launch) {
    PCCL_TRY(launch_all_gather(launch, nullptr));
    PCCL_TRY(launch_all_to_all(launch, nullptr));
    return launch_broadcast(launch, nullptr);
}

Status load_reductions(Launch& launch) {
    for (int type = 0; type < kDataTypes; ++type)
        for (const ReduceOp op : kOps) {
            launch.type = static_cast<DataType>(type);
            launch.op = op;
            if (!check_reduction(launch.type, op).is_ok()) continue;
            PCCL_TRY(launch_all_reduce(launch, nullptr));
            PCCL_TRY(launch_reduce_scatter(launch, nullptr));
            PCCL_TRY(launch_batch(
                {.type = launch.type, .op = op, .reduces = true, .plan = launch.plan}, nullptr));
            if (reduces_in_large_batches(launch.type, op))
                PCCL_TRY(launch_large_batch(large_batch_of(launch, true), nullptr));
        }
    return Status::ok();
}

Status load_programs(const LaunchPlan& plan) {
    for (int type = 0; type < kDataTypes; ++type)
        for (const ReduceOp op : kOps) {
            const ProgramLaunch run{
                .reduces = true, .type = static_cast<DataType>(type), .op = op, .plan = plan};
            if (check_reduction(run.type, op).is_ok()) PCCL_TRY(launch_program(run, nullptr));
        }
    return Status::ok();
}

}  // namespace

Status load_kernels(int ranks) {
    Launch launch{.plan = {.blocks = 0}};
    launch.team.size = ranks;
    for (const Protocol protocol : kProtocols) {
        launch.plan.protocol = protocol;
        PCCL_TRY(load_moves(launch));
        PCCL_TRY(load_reductions(launch));
    }
    for (const Protocol protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kDirect}) {
        launch.plan.protocol = protocol;
        PCCL_TRY(load_programs(launch.plan));
    }
    const Pull pull{.plan = launch.plan};
    PCCL_TRY(launch_pull_begin(pull, nullptr));
    PCCL_TRY(launch_pull_end(pull, nullptr));
    PCCL_TRY(launch_batch({.plan = launch.plan}, nullptr));
    PCCL_TRY(launch_large_batch(large_batch_of(launch, false), nullptr));
    PCCL_TRY(launch_ll128_trial({.is_loading = true}, nullptr));
    PCCL_TRY(launch_clock({}, nullptr));
    PCCL_TRY(launch_pairs({.plan = launch.plan}, nullptr));
    PCCL_TRY(launch_state_exchange({.plan = launch.plan}, nullptr));
    PCCL_TRY(launch_host_messages({}, nullptr));
    return launch_messages({}, nullptr);
}

}  // namespace pccl::kernels
