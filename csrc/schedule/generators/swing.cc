// SPDX-License-Identifier: Apache-2.0

// Swing: partners are near while messages are large, and far only for the last, short ones.
//
// De Sensi, Bonato, Saam, Hoefler, "Swing: Short-cutting Rings for Higher Bandwidth Allreduce",
// NSDI 2024. In round s, position p exchanges with p + rho(s) if p is even, p - rho(s) if it is
// odd, rho(s) = 1 - 2 + 4 - ... + (-2)^s: 1, -1, 3, -5, 11, ... It sends the parts for which its
// partner will be responsible: the partner's own part, and the parts of all positions that the
// partner meets in later rounds. Messages of a half, a quarter, an eighth of the vector go over 1,
// 1, 3 ranks, where recursive halving sends them over 1, 2, 4.
//
// all_reduce: log2 h rounds of halving and log2 h in reverse, where h is the largest power of two
// <= n; a rank sends 2(h-1)/h of the vector and reduces (h-1)/h of it. If n > h, two more rounds
// and a whole vector are added (see fold.h). Partial sums lie in the output.
#include <algorithm>
#include <vector>

#include "csrc/schedule/generators/family.h"
#include "csrc/schedule/generators/fold.h"

namespace pccl::schedule {
namespace {

class Swing {
   public:
    explicit Swing(int positions) : positions_(positions), rounds_(floor_log2(positions)) {}

    [[nodiscard]] int rounds() const { return rounds_; }
    [[nodiscard]] int partner(int position, int round) const {
        int rho = 0;
        for (int s = 0, power = 1; s <= round; ++s, power *= -2) rho += power;
        const int moved = position % 2 == 0 ? position + rho : position - rho;
        return (moved % positions_ + positions_) % positions_;
    }
    /// Returns this position and the positions that it meets from `round` on, directly or
    /// indirectly.
    [[nodiscard]] std::vector<int> met_from(int round, int position) const {
        std::vector<int> met{position};
        for (int s = rounds_ - 1; s >= round; --s)
            for (std::size_t i = met.size(); i > 0; --i) met.push_back(partner(met[i - 1], s));
        std::ranges::sort(met);
        return met;
    }

   private:
    int positions_;
    int rounds_;
};

Program swing_all_reduce(const Member& me) {
    const Fold fold(me);
    if (fold.sits_out()) return hand_vector_over(me);
    Program program;
    LaneBuilder lane(program);
    const Slice input = me.block(Buffer::kInput, 0);
    const Slice output = me.block(Buffer::kOutput, 0);
    const Swing swing(fold.positions());
    const auto parts_of = [&](Buffer buffer, int round, int position) {
        Slices parts;
        for (const int met : swing.met_from(round, position))
            parts.add(part(me, buffer, met, fold.positions()));
        return parts;
    };
    Buffer sums = Buffer::kInput;
    if (fold.stands_for_two()) {
        lane.recv_reduce(me.rank - 1, input, output);
        sums = Buffer::kOutput;
    }
    const int own = fold.position();
    for (int round = 0; round < swing.rounds(); ++round) {
        const int partner = swing.partner(own, round);
        const Slices kept = parts_of(Buffer::kOutput, round + 1, own);
        lane.send(parts_of(sums, round + 1, partner), fold.rank_at(partner));
        lane.recv_reduce(fold.rank_at(partner),
                         sums == Buffer::kInput ? parts_of(sums, round + 1, own) : Slices(), kept);
        sums = Buffer::kOutput;
    }
    for (int round = swing.rounds() - 1; round >= 0; --round) {
        const int partner = swing.partner(own, round);
        lane.send(parts_of(Buffer::kOutput, round + 1, own), fold.rank_at(partner));
        lane.recv(fold.rank_at(partner), parts_of(Buffer::kOutput, round + 1, partner));
    }
    if (fold.stands_for_two()) lane.send(output, me.rank - 1);
    return program;
}

BlockCost cost_of_swing(const Sizes& of) {
    const double parts = 1.0 - 1.0 / of.power;
    return {2 * (of.log + of.folds), 2 * of.log + of.folds, 2 * parts + of.folds, parts + of.folds};
}

}  // namespace

std::vector<ScheduleSource> swing() {
    ScheduleSource made =
        generated("swing", {CollectiveKind::kAllReduce, swing_all_reduce, cost_of_swing});
    made.longest_message = halves_or_all;
    made.granularity = floor_power;
    return {std::move(made)};
}

}  // namespace pccl::schedule
