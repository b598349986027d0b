// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/launch/batching.h"

#include <algorithm>

#include "csrc/device/launch/lowering.h"

namespace pccl::device {
namespace {

using kernels::Protocol;

std::size_t words_in(std::size_t bytes) {
    return (bytes + abi::kLLDataBytes - 1) / abi::kLLDataBytes;
}

bool can_join(const Collective& collective) {
    const bool is_known = collective.kind == CollectiveKind::kAllReduce ||
                          collective.kind == CollectiveKind::kReduceScatter ||
                          collective.kind == CollectiveKind::kAllGather;
    const std::size_t length = longest_bytes(collective);
    const auto is_whole = [&](const Block& block) {
        return block.count * size_of(collective.type) == length;
    };
    return is_known && std::ranges::all_of(collective.inputs, is_whole) &&
           std::ranges::all_of(collective.outputs, is_whole);
}

/// Returns the bytes that a rank moves over NVLink: a share of a sum, or a block for each of the
/// others.
std::size_t moved_bytes(const Collective& collective, int ranks) {
    const auto n = static_cast<std::size_t>(ranks);
    const std::size_t bytes = longest_bytes(collective);
    return collective.kind == CollectiveKind::kAllReduce ? (bytes + n - 1) / n : bytes * (n - 1);
}

bool fits_large_batch(const Collective& collective, const Preferences& preferences,
                      const kernels::Gpus& gpus) {
    if (gpus.are_over_pcie()) return false;  // its parts read the peers' tensors
    if (!can_join(collective) || longest(collective) == 0) return false;
    if (reduces(collective.kind) &&
        !kernels::reduces_in_large_batches(collective.type, collective.op))
        return false;
    const Protocol protocol = plan_of(collective, {.preferences = preferences}, gpus).protocol;
    const bool is_left_to_us = preferences.protocol != Protocol::kLL;
    return protocol == Protocol::kDirect || (protocol == Protocol::kLL && is_left_to_us);
}

/// Gives each part one block, and shares the other blocks out by bytes.
void share_out_blocks(kernels::LargeBatch& batch, int blocks) {
    const std::span parts(batch.parts, static_cast<std::size_t>(batch.count));
    std::size_t bytes = 0;
    for (const kernels::LargePart& part : parts) bytes += part.bytes;
    const auto spare = static_cast<std::size_t>(std::max(0, blocks - batch.count));
    batch.plan.blocks = 0;
    for (kernels::LargePart& part : parts) {
        part.first_block = batch.plan.blocks;
        part.blocks = 1 + static_cast<int>(spare * part.bytes / bytes);
        batch.plan.blocks += part.blocks;
    }
}

bool are_alike(const Collective& one, const Collective& other) {
    return one.kind == other.kind && one.type == other.type && one.op == other.op;
}

kernels::Part part_of(const Collective& collective, int ranks) {
    const auto at = [](std::span<const Block> blocks, std::size_t rank) {
        return blocks[blocks.size() == 1 ? 0 : rank].data;
    };
    kernels::Part part{};
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
        part.inputs[rank] = at(collective.inputs, rank);
        part.outputs[rank] = at(collective.outputs, rank);
    }
    part.bytes = static_cast<std::uint32_t>(longest_bytes(collective));
    return part;
}

}  // namespace

std::size_t batch_length(std::span<const Collective> collectives, const Preferences& preferences,
                         const kernels::Gpus& gpus) {
    if (preferences.protocol.value_or(Protocol::kLL) != Protocol::kLL) return 1;
    const std::size_t most = kernels::most_ll_bytes(preferences.most_blocks);
    std::size_t count = 0;
    std::size_t bytes = 0;
    for (const Collective& collective : collectives) {
        if (count == kernels::kMostParts || !can_join(collective) ||
            !are_alike(collectives.front(), collective))
            break;
        bytes += words_in(longest_bytes(collective)) * abi::kLLDataBytes;
        if (bytes > most || !kernels::fits_ll(bytes, gpus)) break;
        ++count;
    }
    return std::max<std::size_t>(1, count);
}

Result<kernels::BatchLaunch> make_batch(std::span<const Collective> collectives, int most_blocks,
                                        Rank rank, int ranks) {
    const Collective& first = collectives.front();
    kernels::BatchLaunch batch{
        .type = first.type, .op = first.op, .reduces = first.kind != CollectiveKind::kAllGather};
    if (batch.reduces) PCCL_TRY(kernels::check_reduction(batch.type, batch.op));
    for (const Collective& collective : collectives) {
        PCCL_TRY(check_shape(collective, rank, ranks));
        kernels::Part& part = batch.parts[batch.count++];
        part = part_of(collective, ranks);
        part.first_word = batch.words;
        batch.words += static_cast<std::uint32_t>(words_in(part.bytes));
    }
    const std::size_t bytes = std::size_t{batch.words} * abi::kLLDataBytes;
    batch.plan = kernels::ll_plan(bytes, std::min(most_blocks, abi::kMostLLBlocks));
    return batch;
}

std::size_t large_batch_length(std::span<const Collective> collectives,
                               const Preferences& preferences, const kernels::Gpus& gpus) {
    const auto end = std::ranges::find_if_not(collectives, [&](const Collective& collective) {
        return are_alike(collectives.front(), collective) &&
               fits_large_batch(collective, preferences, gpus);
    });
    const int most = std::min(kernels::kMostParts, preferences.most_blocks);  // a block for each
    return std::clamp<std::size_t>(static_cast<std::size_t>(end - collectives.begin()), 1,
                                   static_cast<std::size_t>(most));
}

Result<kernels::LargeBatch> make_large_batch(std::span<const Collective> collectives,
                                             int most_blocks, Rank rank, int ranks) {
    const Collective& first = collectives.front();
    kernels::LargeBatch batch{
        .type = first.type, .op = first.op, .reduces = first.kind != CollectiveKind::kAllGather};
    if (batch.reduces) PCCL_TRY(kernels::check_reduction(batch.type, batch.op));
    std::size_t moved = 0;
    for (const Collective& collective : collectives) {
        PCCL_TRY(check_shape(collective, rank, ranks));
        kernels::LargePart& part = batch.parts[batch.count++];
        part.bytes = longest_bytes(collective);
        if (collective.kind == CollectiveKind::kAllGather)
            part.input = collective.inputs.front().data;
        if (collective.kind == CollectiveKind::kReduceScatter)
            part.output = collective.outputs.front().data;
        moved += moved_bytes(collective, ranks);
    }
    batch.plan = kernels::direct_plan(moved, most_blocks);
    share_out_blocks(batch, batch.plan.blocks);
    return batch;
}

}  // namespace pccl::device
