// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/source.h"

#include <algorithm>
#include <utility>

#include "csrc/base/assert.h"
#include "csrc/base/text/digest.h"
#include "csrc/base/text/text.h"

namespace pccl::schedule {
namespace {

constexpr long long kMostChunks = 1LL << 26;
constexpr Rank kNobody = -1;

Status check_range(const Shape& shape) {
    const auto refuse = [](const auto&... text) {
        return Status::invalid_argument(concat(text...));
    };
    if (shape.ranks < 1 || shape.ranks > kMostRanks)
        return refuse("ranks is ", shape.ranks, ", must be 1 to ", kMostRanks);
    const int roots = is_rooted(shape.kind) ? shape.ranks : 1;
    if (shape.root < 0 || shape.root >= roots)
        return refuse("root is ", shape.root, ", must be 0 to ", roots - 1);
    if (shape.chunks < 1) return refuse("chunks is ", shape.chunks, ", must be at least 1");
    const int most_blocks = std::max(blocks(shape.kind, Buffer::kInput, shape.ranks),
                                     blocks(shape.kind, Buffer::kOutput, shape.ranks));
    if (static_cast<long long>(most_blocks) * shape.chunks > kMostChunks)
        return refuse(shape.chunks, " chunks a block are too many: a buffer may have ",
                      kMostChunks);
    return Status::ok();
}

Result<std::vector<Rank>> positions_of(const RankOrder& order, int ranks) {
    const auto refuse = [&] {
        return Status::invalid_argument(
            concat("an order of ", ranks, " ranks must have each of them once"));
    };
    if (std::cmp_not_equal(order.size(), ranks)) return refuse();
    std::vector<Rank> positions(order.size(), kNobody);
    for (std::size_t position = 0; position < order.size(); ++position) {
        const Rank rank = order[position];
        if (rank < 0 || rank >= ranks || positions[static_cast<std::size_t>(rank)] != kNobody)
            return refuse();
        positions[static_cast<std::size_t>(rank)] = static_cast<Rank>(position);
    }
    return positions;
}

/// Program of a position, with positions replaced by ranks.
class Renaming {
   public:
    Renaming(const Shape& shape, const RankOrder& order) : shape_(shape), order_(order) {}

    void rename(Program& program) const {
        for (Lane& lane : program.lanes)
            for (Step& step : lane) {
                rename(step.from);
                rename(step.to);
                rename(step.src);
                rename(step.dst);
            }
    }

   private:
    void rename(PeerPort& port) const {
        if (port.is_used()) port.peer = order_[static_cast<std::size_t>(port.peer)];
    }

    void rename(Slices& slices) const {
        Slices renamed;
        for (const Slice& slice : slices) add_renamed(renamed, slice);
        slices = std::move(renamed);
    }

    /// Adds the blocks of the ranks at adjoining positions.
    void add_renamed(Slices& slices, const Slice& slice) const {
        if (slice.buffer == Buffer::kScratch ||
            blocks(shape_.kind, slice.buffer, shape_.ranks) == 1)
            return slices.add(slice);
        const int end = slice.offset + slice.count;
        for (int first = slice.offset; first < end;) {
            const int block = first / shape_.chunks;
            const int next = std::min(end, (block + 1) * shape_.chunks);
            const int offset = order_[static_cast<std::size_t>(block)] * shape_.chunks;
            slices.add({slice.buffer, offset + first % shape_.chunks, next - first});
            first = next;
        }
    }

    const Shape& shape_;
    const RankOrder& order_;
};

/// Returns the program along `order`. Requires a shape that check_shape() accepted.
Result<Program> program_along(const ScheduleSource& source, const Shape& shape, Rank rank,
                              const RankOrder& order) {
    if (order.empty() || !source.follows_order) return source.program(shape, rank);
    PCCL_ASSIGN_OR_RETURN(const std::vector<Rank> positions, positions_of(order, shape.ranks));
    const auto position = [&](Rank of) { return positions[static_cast<std::size_t>(of)]; };
    Shape placed = shape;
    if (is_rooted(shape.kind)) placed.root = position(shape.root);
    Program program = source.program(placed, position(rank));
    Renaming(shape, order).rename(program);
    return program;
}

}  // namespace

Shape least_shape(const ScheduleSource& source, int ranks, Rank root) {
    return {.kind = source.kind,
            .ranks = ranks,
            .root = root,
            .chunks = source.granularity(ranks),
            .slots = source.slots};
}

Status check_shape(const ScheduleSource& source, const Shape& shape) {
    if (shape.kind != source.kind)
        return Status::unsupported(concat(source.name, " does not make ", to_string(shape.kind)));
    PCCL_TRY(check_range(shape));
    const auto refuse = [&](const auto&... text) {
        return Status::invalid_argument(
            concat(source.name, " ", to_string(shape.kind), " ", text...));
    };
    if (source.only && shape.ranks != source.only->ranks)
        return refuse("is for ", source.only->ranks, " ranks, not ", shape.ranks);
    if (source.only && !source.any_root && shape.root != source.only->root)
        return refuse("is for root ", source.only->root, ", not ", shape.root);
    if (source.only && shape.chunks != source.only->chunks)
        return refuse("is for ", source.only->chunks, " chunks, not ", shape.chunks);
    if (shape.aggregation < 0 || (shape.aggregation > 0 && !source.aggregates))
        return refuse("cannot have ", shape.aggregation, " blocks in a message");
    const int granularity = source.granularity(shape.ranks);
    if (shape.chunks % granularity != 0)
        return refuse("over ", shape.ranks, " ranks needs a multiple of ", granularity,
                      " chunks, not ", shape.chunks);
    if (shape.slots < source.slots)
        return refuse("needs ", source.slots, " slots, not ", shape.slots);
    return Status::ok();
}

Result<Program> generate_program(const ScheduleSource& source, const Shape& shape, Rank rank,
                                 const RankOrder& order) {
    PCCL_TRY(check_shape(source, shape));
    if (rank < 0 || rank >= shape.ranks)
        return Status::invalid_argument(
            concat("rank is ", rank, ", must be 0 to ", shape.ranks - 1));
    return program_along(source, shape, rank, order);
}

Result<Schedule> generate(const ScheduleSource& source, const Shape& shape,
                          const RankOrder& order) {
    PCCL_TRY(check_shape(source, shape));
    Schedule schedule{.name = source.name, .shape = shape, .programs = {}};
    schedule.programs.reserve(static_cast<std::size_t>(shape.ranks));
    for (Rank rank = 0; rank < shape.ranks; ++rank) {
        PCCL_ASSIGN_OR_RETURN(Program program, program_along(source, shape, rank, order));
        schedule.programs.push_back(std::move(program));
    }
    return schedule;
}

Result<SourcePtr> laid_along(const SourcePtr& source, RankOrder order) {
    PCCL_ASSERT(source->follows_order);
    const auto ranks = static_cast<int>(order.size());
    PCCL_TRY(generate_program(*source, least_shape(*source, ranks), 0, order).status());
    Digest identity;
    identity.add(concat("laid along ", source->digest));
    for (const Rank rank : order) identity.add(concat(" ", rank));
    auto made = std::make_shared<ScheduleSource>(*source);
    made->digest = identity.value();
    made->follows_order = false;
    made->symmetry = Symmetry::kNone;
    made->program = [source, order = std::move(order)](const Shape& shape, Rank rank) {
        return generate_program(*source, shape, rank, order).value();
    };
    return SourcePtr(std::move(made));
}

}  // namespace pccl::schedule
