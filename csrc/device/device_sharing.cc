// SPDX-License-Identifier: Apache-2.0

// Sharing of a launch's memory with the peers, and its addresses for them.
#include <algorithm>
#include <bit>

#include "csrc/device/device_group.h"

namespace pccl::device {
namespace {

using sys::cuda::DeviceAddress;

/// Returns whether peers load the inputs: those of reductions, and of the root of a broadcast.
/// Other collectives push.
bool shares_inputs(CollectiveKind kind) {
    return reduces(kind) || kind == CollectiveKind::kBroadcast;
}
bool shares_outputs(CollectiveKind kind) { return kind != CollectiveKind::kReduceScatter; }

bool is_in_place(const Collective& collective) {
    return std::ranges::equal(collective.inputs, collective.outputs);
}

}  // namespace

Result<DeviceGroupImpl::Shared> DeviceGroupImpl::share(std::span<const Block> blocks, DataType type,
                                                       DeviceStage& stage) {
    PCCL_ASSIGN_OR_RETURN(auto shared, share_sides({&blocks, 1}, type, stage));
    return std::move(shared.front());
}

Result<std::vector<DeviceGroupImpl::Shared>> DeviceGroupImpl::share_sides(
    std::span<const Side> sides, DataType type, DeviceStage& stage) {
    std::vector<Shared> shared(sides.size());
    Status located = Status::ok();
    for (std::size_t i = 0; i < sides.size() && located.is_ok(); ++i)
        located = locate(sides[i], type, shared[i]);
    if (located.code() != StatusCode::kUnsupported) {
        PCCL_TRY(located);
        return shared;
    }
    std::vector<Block> blocks;
    for (const Side& side : sides) blocks.insert(blocks.end(), side.begin(), side.end());
    PCCL_ASSIGN_OR_RETURN(const std::vector<Block> placed, stage.place(blocks, type));
    auto next = placed.begin();
    for (std::size_t i = 0; i < sides.size(); ++i) {
        const auto begin = std::exchange(next, next + std::ssize(sides[i]));
        shared[i] = {.staged = std::vector<Block>(begin, next)};
        PCCL_TRY(locate(shared[i].staged, type, shared[i]));
    }
    return shared;
}

Result<DeviceGroupImpl::Tensors> DeviceGroupImpl::share_tensors(
    std::span<const Collective> collectives) {
    const CollectiveKind kind = collectives.front().kind;
    const DataType type = collectives.front().type;
    const auto share_all = [&](Side Collective::*side, DeviceStage& stage) {
        std::vector<Side> sides;
        for (const Collective& each : collectives) sides.push_back(each.*side);
        return share_sides(sides, type, stage);
    };
    Tensors tensors{std::vector<Shared>(collectives.size()),
                    std::vector<Shared>(collectives.size())};
    if (shares_inputs(kind)) {
        PCCL_ASSIGN_OR_RETURN(tensors.inputs, share_all(&Collective::inputs, collectives_.inputs));
    }
    const bool is_staged = !tensors.inputs.front().staged.empty();
    if (shares_inputs(kind) && !is_staged && std::ranges::all_of(collectives, is_in_place)) {
        tensors.outputs = tensors.inputs;
    } else if (shares_outputs(kind)) {
        PCCL_ASSIGN_OR_RETURN(tensors.outputs,
                              share_all(&Collective::outputs, collectives_.outputs));
    }
    return tensors;
}

Status DeviceGroupImpl::copy_in(std::span<const Collective> collectives, const Tensors& tensors,
                                kernels::Stream stream) {
    for (std::size_t i = 0; i < collectives.size(); ++i)
        PCCL_TRY(collectives_.inputs.copy(tensors.inputs[i].staged, collectives[i].inputs,
                                          collectives[i].type, stream));
    return Status::ok();
}

Status DeviceGroupImpl::copy_out(std::span<const Collective> collectives, const Tensors& tensors,
                                 kernels::Stream stream) {
    for (std::size_t i = 0; i < collectives.size(); ++i)
        if (!tensors.outputs[i].staged.empty())
            PCCL_TRY(collectives_.outputs.copy(collectives[i].outputs, tensors.outputs[i].staged,
                                               collectives[i].type, stream));
    return Status::ok();
}

/// Locates the blocks for the peers. Rank r gets the address of the block that it shares with this
/// rank; a single block is for all.
Status DeviceGroupImpl::locate(Side blocks, DataType type, Shared& shared) {
    const Deadline until = deadline();
    transport::nvlink::SharedAllocation allocation;
    for (Rank rank = 0; rank < options_.size && !blocks.empty(); ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        const Block& block = blocks[blocks.size() == 1 ? 0 : at];
        const std::size_t bytes = block.count * size_of(type);
        if (bytes == 0) continue;
        const auto address = std::bit_cast<DeviceAddress>(block.data);
        if (!allocation.holds(address, bytes)) {
            PCCL_ASSIGN_OR_RETURN(allocation, registrations_->find(address, bytes, until));
        }
        shared.at[at] = allocation.at(rank, address);
    }
    return Status::ok();
}

}  // namespace pccl::device
