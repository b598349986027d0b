// SPDX-License-Identifier: Apache-2.0

// Launches of GPUs that have no NVLinks between them, over PCIe: their kernels meet in host memory,
// or in the GPUs' where these access each other.
//
// Writes over PCIe are posted and reads wait, so each message is written once, into the receiver's
// lines or slots, and those in host memory are read once, in long reads. LL carries small
// collectives; schedules carry the others.
#include <algorithm>
#include <bit>
#include <string_view>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/device/device_group.h"
#include "csrc/device/launch/lowering.h"
#include "csrc/device/launch/pcie_schedules.h"

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

kernels::KernelMessage message_of(const PeerMessage& message) {
    return {.data = message.data, .bytes = message.bytes, .peer = message.peer};
}

/// Returns the blocks of each side of each message: one for each FIFO of the longest, while there
/// is room for all.
int blocks_of_sides(const DeviceGroupImpl::MessageExchange& messages, int most_blocks) {
    std::size_t longest = 0;
    for (const auto side : {messages.sends, messages.receives})
        for (const PeerMessage& message : side) longest = std::max(longest, message.bytes);
    const int sides = static_cast<int>(messages.sends.size() + messages.receives.size());
    return std::clamp(most_blocks / sides, 1, abi::fifos_for(longest));
}

}  // namespace

Status DeviceGroupImpl::launch_over_pcie(const Collective& collective, kernels::Stream stream,
                                         const DeviceLaunch& wanted) {
    DeviceLaunch how = wanted;
    how.preferences = preferences_;
    const kernels::LaunchPlan plan = plan_of(collective, how, gpus_);
    const bool is_by_lines =
        plan.protocol == kernels::Protocol::kLL || plan.protocol == kernels::Protocol::kLL128;
    if (is_by_lines || is_nothing(collective)) return launch_one(collective, stream, wanted);
    if (is_of_pairs(collective))
        return gpus_.path == kernels::GpuPath::kHost ? launch_pairs(collective, stream, how)
                                                     : launch_one(collective, stream, wanted);
    if (!takes_schedules(collective)) return launch_padded(collective, stream, wanted);
    if (averages_integers(collective)) return launch_in_pieces(collective, stream, wanted);
    PCCL_ASSIGN_OR_RETURN(const auto source, schedule_over_pcie(collective.kind, options_.size));
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
        .states = programs_->states(),
        .plan = {.blocks = std::min(launch.plan.blocks, gpus_.thresholds().schedules.most_blocks),
                 .threads = launch.plan.threads}};
    post_lengths(collective, pairs.peer_pointers);
    if (collective.outputs.size() == 1)
        pairs.blocks.outputs[at(collective.root)] = collective.outputs.front().data;
    return launch_in_order(stream, pairs.plan,
                           [&] { return kernels::launch_pairs(pairs, stream); });
}

Status DeviceGroupImpl::exchange_through_host(const MessageExchange& messages,
                                              kernels::Stream stream) {
    PCCL_TRY(outside_captures(stream, [this] { return programs_->make_state(); }));
    kernels::HostMessageLaunch launch{
        .messages = {.team = team_, .blocks = blocks_of_sides(messages, preferences_.most_blocks)},
        .states = programs_->states()};
    for (const PeerMessage& send : messages.sends)
        launch.messages.sent[launch.messages.sends++] = message_of(send);
    for (const PeerMessage& receive : messages.receives)
        launch.messages.received[launch.messages.receives++] = message_of(receive);
    PCCL_TRY(keep_order(&LaunchOrder::begin, messages, stream));
    PCCL_TRY(kernels::launch_host_messages(launch, stream));
    return keep_order(&LaunchOrder::end, messages, stream);
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
    PCCL_TRY(launch_over_pcie(padded, stream, wanted));
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
