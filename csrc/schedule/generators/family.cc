// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/generators/family.h"

#include <algorithm>
#include <string>

#include "csrc/base/text/digest.h"
#include "csrc/base/text/text.h"

namespace pccl::schedule {
namespace {

Program copy_of_one(const Member& me) {
    Program program;
    LaneBuilder(program).copy(me.block(Buffer::kInput, 0), me.block(Buffer::kOutput, 0));
    return program;
}

Cost in_bytes(const BlockCost& blocks, double block_bytes) {
    return {.rounds = blocks.rounds,
            .messages = blocks.messages,
            .bytes_sent = blocks.moved * block_bytes,
            .bytes_reduced = blocks.reduced * block_bytes};
}

}  // namespace

ScheduleSource generated(std::string_view name, const Generator& generator, int revision) {
    Digest identity;
    identity.add(concat(name, " ", to_string(generator.kind), " ", revision));
    return {.name = std::string(name),
            .kind = generator.kind,
            .digest = identity.value(),
            .follows_order = has_one_block(generator.kind),
            .granularity = [](int /*ranks*/) { return 1; },
            .longest_message = [](const Shape& /*shape*/) { return 1; },
            .cost =
                [cost = generator.cost](const Shape& shape, double block_bytes) {
                    if (shape.ranks == 1) return Cost{};
                    return in_bytes(cost(Sizes(shape)), block_bytes);
                },
            .program =
                [make = generator.make](const Shape& shape, Rank rank) {
                    const Member me{shape, rank};
                    return shape.ranks == 1 ? copy_of_one(me) : make(me);
                }};
}

Symmetry seen_from_each_rank(CollectiveKind kind) {
    return has_one_block(kind) ? Symmetry::kRotatedChunks : Symmetry::kRotated;
}

int whole_buffer(const Shape& shape) {
    return shape.chunks * std::max(blocks(shape.kind, Buffer::kInput, shape.ranks),
                                   blocks(shape.kind, Buffer::kOutput, shape.ranks));
}

int half_of_blocks(const Shape& shape) {
    const int half = std::max(1, shape.ranks / 2);
    return has_one_block(shape.kind) ? shape.chunks / shape.ranks * half : shape.chunks * half;
}

int halves_or_all(const Shape& shape) {
    return floor_power(shape.ranks) == shape.ranks ? half_of_blocks(shape) : whole_buffer(shape);
}

int doubled_blocks(const Shape& shape) {
    if (shape.ranks == 1) return shape.chunks;
    const int held = floor_power(shape.ranks - 1);
    return shape.chunks * std::max({1, held / 2, shape.ranks - held});
}

bool has_one_block(CollectiveKind kind) {
    return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kBroadcast ||
           kind == CollectiveKind::kReduce;
}

}  // namespace pccl::schedule
