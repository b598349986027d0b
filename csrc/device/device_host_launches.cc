// SPDX-License-Identifier: Apache-2.0

// Launches of GPUs that do not reach each other: their kernels meet in host memory.
//
// Writes to host memory are posted and reads of it wait, so each message is written once, into the
// receiver's lines or slots, and read once, in long reads. LL carries small collectives; schedules
// carry the others.
#include <algorithm>
#include <bit>
#include <string_view>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/device/device_group.h"
#include "csrc/device/launch/host_schedules.h"
#include "csrc/device/launch/lowering.h"

namespace pccl::device {
namespace {

/// Returns `blocks` cut to the elements [begin, begin + count).
std::vector<Block> cut(std::span<const Block> blocks, std::size_t begin, std::size_t count,
                       std::size_t element) {
    std::vector<Block> parts;
    parts.reserve(blocks.size());
    for (const Block& block : blocks)
        parts.push_back({block.data == nullptr ? nullptr : block.data + begin * element, count});
    return parts;
}

/// Returns the blocks with the memory of `places`.
std::vector<Block> at_places(std::span<const Block> blocks, std::span<const Block> places) {
    std::vector<Block> moved;
    moved.reserve(blocks.size());
    for (std::size_t i = 0; i < blocks.size(); ++i)
        moved.push_back({places[i].data, blocks[i].count});
    return moved;
}

/// Returns the plan of the schedule that runs instead of a kernel with `plan`.
kernels::LaunchPlan schedule_plan(const kernels::LaunchPlan& plan) {
    return {.blocks = plan.blocks, .threads = std::max(plan.threads, abi::kLeastProgramThreads)};
}

}  // namespace

Status DeviceGroupImpl::launch_through_host(const Collective& collective, kernels::Stream stream,
                                            const DeviceLaunch& wanted) {
    DeviceLaunch how = wanted;
    how.preferences = preferences_;
    const kernels::LaunchPlan plan = plan_of(collective, how, gpus_);
    const bool is_by_lines =
        plan.protocol == kernels::Protocol::kLL || plan.protocol == kernels::Protocol::kLL128;
    if (is_by_lines || is_nothing(collective)) return launch_one(collective, stream, wanted);
    if (is_of_pairs(collective)) return launch_pairs(collective, stream, how);
    if (!takes_schedules(collective)) return launch_padded(collective, stream, wanted);
    if (averages_integers(collective)) return launch_in_pieces(collective, stream, wanted);
    PCCL_ASSIGN_OR_RETURN(const auto source, schedule_through_host(collective.kind, options_.size));
    if (how.plan) how.plan = schedule_plan(*how.plan);
    return launch_schedule(collective, source, stream, how);
}

Status DeviceGroupImpl::launch_pairs(const Collective& collective, kernels::Stream stream,
                                     const DeviceLaunch& wanted) {
    PCCL_ASSIGN_OR_RETURN(const kernels::Launch launch,
                          lower(collective, wanted, options_.rank, gpus_));
    PCCL_TRY(why_over());
    PCCL_TRY(outside_captures(stream, [this] { return programs_->make_state(); }));
    kernels::PairsLaunch pairs{
        .team = team_,
        .blocks = launch.blocks,
        .state = std::bit_cast<abi::DeviceProgramState*>(programs_->state()),
        .plan = {.blocks = std::min(launch.plan.blocks, gpus_.thresholds().schedules.most_blocks),
                 .threads = launch.plan.threads}};
    post_lengths(collective, pairs.peer_pointers);
    if (collective.outputs.size() == 1)
        pairs.blocks.outputs[at(collective.root)] = collective.outputs.front().data;
    return launch_in_order(stream, pairs.plan,
                           [&] { return kernels::launch_pairs(pairs, stream); });
}

Status DeviceGroupImpl::launch_padded(const Collective& collective, kernels::Stream stream,
                                      const DeviceLaunch& wanted) {
    const std::size_t longest_count = longest(collective);
    const auto whole = [&](std::span<const Block> blocks) {
        return std::vector<Block>(blocks.size(), {nullptr, longest_count});
    };
    PCCL_TRY(collectives_.order.begin(stream));
    PCCL_ASSIGN_OR_RETURN(const auto inputs,
                          collectives_.inputs.place(whole(collective.inputs), collective.type));
    PCCL_ASSIGN_OR_RETURN(const auto outputs,
                          collectives_.outputs.place(whole(collective.outputs), collective.type));
    PCCL_TRY(collectives_.inputs.copy(inputs, collective.inputs, collective.type, stream));
    PCCL_TRY(collectives_.order.end(stream));
    Collective padded = collective;
    padded.inputs = inputs;
    padded.outputs = outputs;
    PCCL_TRY(launch_through_host(padded, stream, wanted));
    PCCL_TRY(collectives_.order.begin(stream));
    PCCL_TRY(collectives_.outputs.copy(collective.outputs, at_places(collective.outputs, outputs),
                                       collective.type, stream));
    return collectives_.order.end(stream);
}

Status DeviceGroupImpl::launch_in_pieces(const Collective& collective, kernels::Stream stream,
                                         const DeviceLaunch& wanted) {
    const std::size_t element = size_of(collective.type);
    const int blocks = std::min(preferences_.most_blocks, abi::kMostLLBlocks);
    const std::size_t most = kernels::most_ll_bytes(blocks) / element;
    const std::size_t count = longest(collective);
    DeviceLaunch by_ll = wanted;
    for (std::size_t begin = 0; begin < count; begin += most) {
        const std::size_t some = std::min(most, count - begin);
        const auto inputs = cut(collective.inputs, begin, some, element);
        const auto outputs = cut(collective.outputs, begin, some, element);
        Collective piece = collective;
        piece.inputs = inputs;
        piece.outputs = outputs;
        by_ll.plan = kernels::ll_plan(some * element, blocks);
        PCCL_TRY(launch_one(piece, stream, by_ll));
    }
    return Status::ok();
}

}  // namespace pccl::device
