// SPDX-License-Identifier: Apache-2.0
#include "csrc/collective/collective.h"

#include "csrc/base/text/text.h"
#include "csrc/collective/arithmetic/accumulator.h"

namespace pccl {
namespace {

using schedule::Buffer;
using schedule::CollectiveKind;

/// Returns whether only the root has this side of the collective.
bool is_root_only(CollectiveKind kind, Buffer buffer) {
    if (buffer == Buffer::kInput)
        return kind == CollectiveKind::kScatter || kind == CollectiveKind::kBroadcast;
    return kind == CollectiveKind::kGather || kind == CollectiveKind::kReduce;
}

Status check_blocks(const Collective& collective, Buffer buffer, Rank rank, int ranks) {
    const bool is_input = buffer == Buffer::kInput;
    const auto& given = is_input ? collective.inputs : collective.outputs;
    const bool absent = is_root_only(collective.kind, buffer) && rank != collective.root;
    const auto needed =
        static_cast<std::size_t>(absent ? 0 : schedule::blocks(collective.kind, buffer, ranks));
    if (given.size() != needed)
        return Status::invalid_argument(concat(
            schedule::to_string(collective.kind), " on rank ", rank, " of ", ranks, " takes ",
            needed, is_input ? " input" : " output", " blocks, not ", given.size()));
    for (const Block& block : given)
        if (block.count > 0 && block.data == nullptr)
            return Status::invalid_argument("a block that is not empty has no memory");
    return Status::ok();
}

Status check_even(const Collective& collective) {
    if (!may_be_even(collective.kind))
        return Status::invalid_argument(concat("only an all_to_all may be declared even, not ",
                                               schedule::to_string(collective.kind)));
    const std::size_t count = longest(collective);
    const auto is_shorter = [count](const Block& block) { return block.count != count; };
    if (std::ranges::none_of(collective.inputs, is_shorter) &&
        std::ranges::none_of(collective.outputs, is_shorter))
        return Status::ok();
    return Status::invalid_argument(
        concat("an all_to_all that is even has blocks of other lengths than ", count));
}

/// Checks that the block that a rank keeps for itself has one length on both sides.
Status check_own_block(const Collective& collective, Rank rank) {
    if (collective.inputs.empty() || collective.outputs.empty()) return Status::ok();
    const auto own = [rank](std::span<const Block> blocks) {
        return blocks.size() == 1 ? blocks[0].count : blocks[static_cast<std::size_t>(rank)].count;
    };
    const std::size_t input = own(collective.inputs);
    const std::size_t output = own(collective.outputs);
    if (input == output) return Status::ok();
    return Status::invalid_argument(
        concat(schedule::to_string(collective.kind), ": rank ", rank, " gives ", input,
               " elements as its own input block but ", output, " as the output block for it"));
}

}  // namespace

Status check_shape(const Collective& collective, Rank rank, int ranks) {
    if (schedule::is_rooted(collective.kind) && (collective.root < 0 || collective.root >= ranks))
        return Status::invalid_argument(
            concat("root ", collective.root, " is not in a group of ", ranks));
    PCCL_TRY(check_blocks(collective, Buffer::kInput, rank, ranks));
    PCCL_TRY(check_blocks(collective, Buffer::kOutput, rank, ranks));
    if (collective.is_even) PCCL_TRY(check_even(collective));
    return check_own_block(collective, rank);
}

bool is_of_pairs(const Collective& collective) {
    return is_per_pair(collective.kind) && !collective.is_even;
}

bool runs_widened(schedule::CollectiveKind kind, DataType type, ReduceOp op, int ranks) {
    return reduces(kind) && arithmetic::Accumulator::is_wide_for(type, op, ranks);
}

}  // namespace pccl
