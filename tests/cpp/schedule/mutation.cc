// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/schedule/mutation.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "csrc/base/text/text.h"
#include "tests/cpp/schedule/actions.h"

namespace pccl::schedule::testing {
namespace {

struct Spot {
    std::size_t rank = 0;
    std::size_t lane = 0;
    std::size_t step = 0;
};

bool same_fifo_end(const Step& a, const Step& b) {
    return (a.to.is_used() && a.to == b.to) || (a.from.is_used() && a.from == b.from);
}

class Mutator {
   public:
    Mutator(const Schedule& schedule, const std::function<void(const Mutant&)>& visit)
        : original_(schedule), visit_(visit) {}

    void run() {
        for (std::size_t rank = 0; rank < original_.programs.size(); ++rank) {
            const auto& lanes = original_.programs[rank].lanes;
            for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
                for (std::size_t step = 0; step < lanes[lane].size(); ++step) {
                    mutate({rank, lane, step});
                }
            }
        }
    }

   private:
    void mutate(const Spot& spot) {
        drop_step(spot);
        swap_peers(spot);
        double_reduce(spot);
        double_message(spot);
        drop_dependencies(spot);
        cut_lane(spot);
        shift_slices(spot);
        reorder(spot);
    }

    [[nodiscard]] int ranks() const { return original_.shape.ranks; }
    [[nodiscard]] const Lane& lane_at(const Spot& spot) const {
        return original_.programs[spot.rank].lanes[spot.lane];
    }
    [[nodiscard]] const Step& step_at(const Spot& spot) const { return lane_at(spot)[spot.step]; }
    static Step& step_in(Schedule& schedule, const Spot& spot) {
        return schedule.programs[spot.rank].lanes[spot.lane][spot.step];
    }

    void emit(MutationKind kind, const Spot& spot, const std::string& change, Schedule schedule) {
        visit_({kind,
                concat(original_.name, " ", to_string(original_.shape.kind), ", ", ranks(),
                       " ranks, root ", original_.shape.root, ", ", original_.shape.chunks,
                       " chunks: rank ", spot.rank, " lane ", spot.lane, " step ", spot.step, " (",
                       to_string(step_at(spot)), "): ", change),
                std::move(schedule)});
    }

    void emit_changed(MutationKind kind, const Spot& spot, const std::string& change,
                      const std::function<void(Step&)>& edit) {
        Schedule mutant = original_;
        edit(step_in(mutant, spot));
        emit(kind, spot, change, std::move(mutant));
    }

    void drop_step(const Spot& spot) {
        emit_changed(MutationKind::kDroppedStep, spot, "dropped",
                     [](Step& step) { step = Step{.action = Action::kNop, .after = step.after}; });
    }

    void swap_peers(const Spot& spot) {
        swap_peer(spot, &Step::to, "to");
        swap_peer(spot, &Step::from, "from");
    }

    void swap_peer(const Spot& spot, PeerPort Step::*port, const char* name) {
        const PeerPort& old = step_at(spot).*port;
        if (!old.is_used()) return;
        for (Rank other = 0; other < ranks(); ++other) {
            if (other == old.peer || std::cmp_equal(other, spot.rank)) continue;
            emit_changed(MutationKind::kSwappedPeer, spot, concat(name, " ", other),
                         [&](Step& step) { (step.*port).peer = other; });
        }
        const Lane& lane = lane_at(spot);
        for (std::size_t next = spot.step + 1; next < lane.size(); ++next) {
            const PeerPort& later = lane[next].*port;
            if (!later.is_used() || later == old) continue;
            Schedule mutant = original_;
            Lane& changed = mutant.programs[spot.rank].lanes[spot.lane];
            std::swap(changed[spot.step].*port, changed[next].*port);
            emit(MutationKind::kSwappedPeer, spot,
                 concat("'", name, "' exchanged with step ", next), std::move(mutant));
        }
    }

    /// Inserts `steps` behind the spot; who waited for a step of the lane waits for the same one
    /// still.
    static void insert_behind(Schedule& schedule, const Spot& spot,
                              const std::vector<Step>& steps) {
        Program& program = schedule.programs[spot.rank];
        for (Lane& lane : program.lanes) {
            for (Step& step : lane) {
                for (Dependency& after : step.after) {
                    if (std::cmp_equal(after.lane, spot.lane) &&
                        std::cmp_greater_equal(after.step, spot.step)) {
                        after.step += static_cast<int>(steps.size());
                    }
                }
            }
        }
        Lane& lane = program.lanes[spot.lane];
        lane.insert(lane.begin() + static_cast<std::ptrdiff_t>(spot.step) + 1, steps.begin(),
                    steps.end());
    }

    /// What the step adds to the incoming data, or the sum where it names no other operand, is
    /// added again.
    void double_reduce(const Spot& spot) {
        const Step& step = step_at(spot);
        if (!is_reduction(step.action)) return;
        Schedule mutant = original_;
        const Slices sum = step.dst.is_empty() ? new_scratch(mutant, spot, step.src) : step.dst;
        std::vector<Step> rest{
            {.action = Action::kReduce, .src = step.src.is_empty() ? sum : step.src, .dst = sum}};
        if (step.to.is_used()) {
            step_in(mutant, spot) = {.action = Action::kRecvReduce,
                                     .src = step.src,
                                     .dst = sum,
                                     .from = step.from,
                                     .after = step.after};
            rest.push_back({.action = Action::kSend, .src = sum, .to = step.to});
        }
        insert_behind(mutant, spot, rest);
        emit(MutationKind::kDoubledReduce, spot, "reduces twice", std::move(mutant));
    }

    [[nodiscard]] Slices new_scratch(Schedule& schedule, const Spot& spot,
                                     const Slices& like) const {
        const int chunks = original_.shape.chunks;
        int& size = schedule.programs[spot.rank].scratch_chunks;
        Slices scratch;
        for (const Slice& slice : like) {
            const int first = (size + chunks - 1) / chunks * chunks + slice.offset % chunks;
            size = first + slice.count;
            scratch.add({Buffer::kScratch, first, slice.count});
        }
        return scratch;
    }

    /// The sender sends twice and the receiver adds twice.
    void double_message(const Spot& spot) {
        const Step& send = step_at(spot);
        if (send.action != Action::kSend) return;
        const std::optional<Spot> receiver = receiver_of(spot);
        if (!receiver) return;
        const Step& receive = step_at(*receiver);
        if (receive.action != Action::kRecvReduce) return;
        Schedule mutant = original_;
        insert_behind(mutant, spot, {{.action = Action::kSend, .src = send.src, .to = send.to}});
        insert_behind(mutant, *receiver,
                      {{.action = Action::kRecvReduce, .dst = receive.dst, .from = receive.from}});
        emit(MutationKind::kDoubledReduce, spot, "sent and reduced twice", std::move(mutant));
    }

    [[nodiscard]] std::optional<Spot> receiver_of(const Spot& spot) const {
        const PeerPort to = step_at(spot).to;
        const PeerPort wanted{static_cast<Rank>(spot.rank), to.channel};
        std::ptrdiff_t number = std::count_if(
            lane_at(spot).begin(), lane_at(spot).begin() + static_cast<std::ptrdiff_t>(spot.step),
            [&](const Step& step) { return step.to == to; });
        const auto rank = static_cast<std::size_t>(to.peer);
        const auto& lanes = original_.programs[rank].lanes;
        for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
            for (std::size_t step = 0; step < lanes[lane].size(); ++step) {
                if (lanes[lane][step].from == wanted && number-- == 0)
                    return Spot{rank, lane, step};
            }
        }
        return std::nullopt;
    }

    void drop_dependencies(const Spot& spot) {
        for (std::size_t i = 0; i < step_at(spot).after.size(); ++i) {
            emit_changed(MutationKind::kMissingDependency, spot, concat("without dependency ", i),
                         [&](Step& step) {
                             step.after.erase(step.after.begin() + static_cast<std::ptrdiff_t>(i));
                         });
        }
    }

    /// The lane's steps from the spot on become a lane of their own; who waited for one of them
    /// waits for it and for the last step before the cut.
    void cut_lane(const Spot& spot) {
        if (spot.step == 0) return;
        Schedule mutant = original_;
        auto& lanes = mutant.programs[spot.rank].lanes;
        const int cut = static_cast<int>(spot.step);
        const int new_lane = static_cast<int>(lanes.size());
        for (Lane& lane : lanes) {
            for (Step& step : lane) {
                std::vector<Dependency> added;
                for (Dependency& after : step.after) {
                    if (std::cmp_not_equal(after.lane, spot.lane) || after.step < cut) continue;
                    added.push_back({new_lane, after.step - cut});
                    after.step = cut - 1;
                }
                step.after.insert(step.after.end(), added.begin(), added.end());
            }
        }
        Lane& lane = lanes[spot.lane];
        Lane tail(lane.begin() + cut, lane.end());
        lane.resize(spot.step);
        lanes.push_back(std::move(tail));
        emit(MutationKind::kMissingLaneOrder, spot, "no longer waits for the step before",
             std::move(mutant));
    }

    void shift_slices(const Spot& spot) {
        shift_slice(spot, &Step::src, "src");
        shift_slice(spot, &Step::dst, "dst");
    }

    void shift_slice(const Spot& spot, Slices Step::*list, const char* name) {
        const std::vector<Slice> slices((step_at(spot).*list).begin(), (step_at(spot).*list).end());
        std::vector<int> shifts{-1, 1};
        const int block = original_.shape.chunks;
        if (block > 1) shifts.insert(shifts.end(), {-block, block});
        for (std::size_t i = 0; i < slices.size(); ++i) {
            for (const int shift : shifts) {
                std::vector<Slice> shifted = slices;
                shifted[i].offset += shift;
                emit_changed(MutationKind::kShiftedSlice, spot,
                             concat(name, " ", i, " shifted by ", shift),
                             [&](Step& step) { step.*list = list_of(shifted); });
            }
        }
        if (slices.size() < 2) return;
        std::vector<Slice> exchanged = slices;
        std::swap(exchanged.front(), exchanged.back());
        emit_changed(MutationKind::kExchangedSlices, spot, concat("ends of ", name, " exchanged"),
                     [&](Step& step) { step.*list = list_of(exchanged); });
    }

    static Slices list_of(const std::vector<Slice>& slices) {
        Slices list;
        for (const Slice& slice : slices) list.add(slice);
        return list;
    }

    void reorder(const Spot& spot) {
        const Lane& lane = lane_at(spot);
        for (std::size_t next = spot.step + 1; next < lane.size(); ++next) {
            if (!same_fifo_end(lane[spot.step], lane[next])) continue;
            Schedule mutant = original_;
            Lane& changed = mutant.programs[spot.rank].lanes[spot.lane];
            std::swap(changed[spot.step], changed[next]);
            std::swap(changed[spot.step].after, changed[next].after);
            emit(MutationKind::kWrongChannelOrder, spot, concat("exchanged with step ", next),
                 std::move(mutant));
            break;
        }
        if (step_at(spot).to.is_used()) {
            emit_changed(MutationKind::kWrongChannelOrder, spot, "sends into the next channel",
                         [](Step& step) { ++step.to.channel; });
        }
        if (step_at(spot).from.is_used()) {
            emit_changed(MutationKind::kWrongChannelOrder, spot, "receives from the next channel",
                         [](Step& step) { ++step.from.channel; });
        }
    }

    const Schedule& original_;
    const std::function<void(const Mutant&)>& visit_;
};

}  // namespace

std::string_view to_string(MutationKind kind) {
    switch (kind) {
        case MutationKind::kDroppedStep:
            return "dropped step";
        case MutationKind::kSwappedPeer:
            return "swapped peer";
        case MutationKind::kDoubledReduce:
            return "doubled reduce";
        case MutationKind::kMissingDependency:
            return "missing dependency";
        case MutationKind::kMissingLaneOrder:
            return "missing lane order";
        case MutationKind::kShiftedSlice:
            return "shifted slice";
        case MutationKind::kExchangedSlices:
            return "exchanged slices";
        case MutationKind::kWrongChannelOrder:
            return "wrong channel order";
    }
    return "unknown";
}

void for_each_mutant(const Schedule& schedule, const std::function<void(const Mutant&)>& visit) {
    Mutator(schedule, visit).run();
}

}  // namespace pccl::schedule::testing
