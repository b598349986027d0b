// SPDX-License-Identifier: Apache-2.0

// Happens-before by vector clocks: the clock of an event counts, for each lane, the steps that
// happen before it.
//
// The steps of one lane are ordered, so only ranks with two or more lanes can have a race and a
// column in the clocks; without such ranks nothing is done. A clock is freed after the last event
// that is derived from it.
#include <algorithm>
#include <span>

#include "csrc/schedule/verifier/checks.h"
#include "csrc/schedule/verifier/operands.h"

namespace pccl::schedule {
namespace {

constexpr int kNoColumn = -1;

using Clock = std::vector<int>;

class Clocks {
   public:
    explicit Clocks(const EventGraph& graph)
        : graph_(graph), users_(static_cast<std::size_t>(graph.size())), clocks_(users_.size()) {
        const auto& programs = graph.schedule().programs;
        for (const LaneSpan& lane : graph.lanes()) {
            const bool alone = programs[static_cast<std::size_t>(lane.rank)].lanes.size() == 1;
            columns_.push_back(alone ? kNoColumn : width_++);
        }
        for (EventId id = 0; id < graph.size(); ++id) {
            graph.for_each_predecessor(id, [&](EventId before) {
                ++users_[static_cast<std::size_t>(before)];
                return true;
            });
        }
    }

    [[nodiscard]] bool has_column(EventId id) const { return column_of(id) != kNoColumn; }

    /// Returns the clock of `id`, after this function was called for all its predecessors.
    const Clock& enter(EventId id) {
        Clock own;
        graph_.for_each_predecessor(id, [&](EventId before) {
            absorb(own, before);
            return true;
        });
        own.resize(static_cast<std::size_t>(width_));
        if (has_column(id)) {
            own[static_cast<std::size_t>(column_of(id))] = id - graph_.lane_of(id).first + 1;
        }
        return clocks_[static_cast<std::size_t>(id)] = std::move(own);
    }

    /// Returns whether `before` happens before the event of `clock`. Both belong to ranks with
    /// columns.
    [[nodiscard]] bool includes(const Clock& clock, EventId before) const {
        const int steps = clock[static_cast<std::size_t>(column_of(before))];
        return before < graph_.lane_of(before).first + steps;
    }

   private:
    [[nodiscard]] int column_of(EventId id) const {
        return columns_[static_cast<std::size_t>(graph_.event(id).lane)];
    }

    void absorb(Clock& own, EventId before) {
        const auto index = static_cast<std::size_t>(before);
        Clock& other = clocks_[index];
        const bool last_user = --users_[index] == 0;
        if (own.empty() && last_user) {
            own = std::move(other);
        } else if (own.empty()) {
            own = other;
        } else {
            std::ranges::transform(own, other, own.begin(),
                                   [](int a, int b) { return std::max(a, b); });
        }
        if (last_user) Clock{}.swap(other);
    }

    const EventGraph& graph_;
    int width_ = 0;
    std::vector<int> columns_;  // by lane
    std::vector<int> users_;    // by event: events that will still use its clock
    std::vector<Clock> clocks_;
};

/// Accesses to a chunk since its last write, which is included.
struct Touched {
    EventId writer = kNoEvent;
    std::vector<EventId> readers;
};

class RaceCheck {
   public:
    RaceCheck(const EventGraph& graph, const MemoryMap& memory)
        : graph_(graph),
          memory_(memory),
          clocks_(graph),
          touched_(static_cast<std::size_t>(memory.places())) {}

    Status run(const std::vector<EventId>& order) {
        for (const EventId id : order) {
            const Clock& clock = clocks_.enter(id);
            if (!clocks_.has_column(id)) continue;
            const Accesses accesses = accesses_of(*graph_.event(id).step);
            PCCL_TRY(read(id, clock, accesses.read));
            PCCL_TRY(write(id, clock, accesses.overwrite));
            PCCL_TRY(write(id, clock, accesses.update));
        }
        return Status::ok();
    }

   private:
    Touched& touched(EventId id, const Slice& chunk) {
        return touched_[static_cast<std::size_t>(memory_.place(graph_.lane_of(id).rank, chunk))];
    }

    Status read(EventId id, const Clock& clock, const Slices& slices) {
        for (ChunkWalk walk(slices); walk.has_next();) {
            const Slice where = walk.next();
            Touched& chunk = touched(id, where);
            PCCL_TRY(check(id, clock, chunk.writer, where));
            chunk.readers.push_back(id);
        }
        return Status::ok();
    }

    Status write(EventId id, const Clock& clock, const Slices& slices) {
        for (ChunkWalk walk(slices); walk.has_next();) {
            const Slice where = walk.next();
            Touched& chunk = touched(id, where);
            PCCL_TRY(check(id, clock, chunk.writer, where));
            for (const EventId reader : chunk.readers) PCCL_TRY(check(id, clock, reader, where));
            chunk.readers.clear();
            chunk.writer = id;
        }
        return Status::ok();
    }

    [[nodiscard]] Status check(EventId id, const Clock& clock, EventId before,
                               const Slice& where) const {
        if (before == kNoEvent || before == id || clocks_.includes(clock, before))
            return Status::ok();
        return fault(graph_.place_of(id), *graph_.event(id).step, "touches ",
                     to_string(where.buffer), "[", where.offset, "] in no order with ",
                     graph_.describe(before),
                     ", and one of the two writes it; one must wait for the other");
    }

    const EventGraph& graph_;
    const MemoryMap& memory_;
    Clocks clocks_;
    std::vector<Touched> touched_;  // by place
};

}  // namespace

Status check_races(const EventGraph& graph, const std::vector<EventId>& order,
                   const MemoryMap& memory) {
    const auto& programs = graph.schedule().programs;
    const bool all_alone = std::ranges::none_of(
        programs, [](const Program& program) { return program.lanes.size() > 1; });
    return all_alone ? Status::ok() : RaceCheck(graph, memory).run(order);
}

}  // namespace pccl::schedule
