// Programs along an order of ranks: those of the positions, with the ranks' names in place of the
// positions'.
#include <utility>

#include "csrc/base/text.h"
#include "csrc/schedule/generators/generators.h"

namespace pccl::schedule {
namespace {

constexpr Rank kNobody = -1;

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
    void rename(Port& port) const {
        if (port.is_used()) port.peer = order_[static_cast<std::size_t>(port.peer)];
    }

    /// Of a block of one rank's: a slice never has chunks of several.
    void rename(Slice& slice) const {
        if (slice.count == 0 || slice.buffer == Buffer::kScratch ||
            blocks(shape_.kind, slice.buffer, shape_.ranks) == 1)
            return;
        const int block = slice.offset / shape_.chunks;
        slice.offset =
            order_[static_cast<std::size_t>(block)] * shape_.chunks + slice.offset % shape_.chunks;
    }

    const Shape& shape_;
    const RankOrder& order_;
};

}  // namespace

bool follows_order(Algorithm algorithm, CollectiveKind kind) {
    switch (kind) {
        case CollectiveKind::kAllReduce:
        case CollectiveKind::kBroadcast:
        case CollectiveKind::kReduce:
            return true;
        case CollectiveKind::kAllGather:
        case CollectiveKind::kReduceScatter:
            return algorithm == Algorithm::kRing || algorithm == Algorithm::kPat;
        default:
            return false;
    }
}

Result<Program> generate_program(Algorithm algorithm, const Shape& shape, Rank rank,
                                 const RankOrder& order) {
    if (order.empty() || rank < 0 || rank >= shape.ranks || shape.root < 0 ||
        shape.root >= shape.ranks || !follows_order(algorithm, shape.kind))
        return generate_program(algorithm, shape, rank);
    PCCL_ASSIGN_OR_RETURN(const std::vector<Rank> positions, positions_of(order, shape.ranks));
    Shape placed = shape;
    if (is_rooted(shape.kind)) placed.root = positions[static_cast<std::size_t>(shape.root)];
    PCCL_ASSIGN_OR_RETURN(
        Program program,
        generate_program(algorithm, placed, positions[static_cast<std::size_t>(rank)]));
    Renaming(shape, order).rename(program);
    return program;
}

Result<Schedule> generate(Algorithm algorithm, const Shape& shape, const RankOrder& order) {
    PCCL_ASSIGN_OR_RETURN(Schedule schedule, generate(algorithm, shape));
    for (Rank rank = 0; rank < shape.ranks; ++rank) {
        auto& program = schedule.programs[static_cast<std::size_t>(rank)];
        PCCL_ASSIGN_OR_RETURN(program, generate_program(algorithm, shape, rank, order));
    }
    return schedule;
}

}  // namespace pccl::schedule
