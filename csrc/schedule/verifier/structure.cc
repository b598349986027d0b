// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "csrc/schedule/verifier/checks.h"
#include "csrc/schedule/verifier/fault.h"
#include "csrc/schedule/verifier/operands.h"

namespace pccl::schedule {
namespace {

constexpr long long kMaxPlaces = 1LL << 28;
constexpr int kMostMoved = 1 << 28;  // chunks

template <typename... Parts>
Status refuse(const Parts&... what) {
    return Status::invalid_argument(concat(what...));
}

/// Run of chunks in memory, with its position in the list.
struct PlaceRun {
    int place = 0;
    int count = 0;
    int at = 0;

    [[nodiscard]] int end() const { return place + count; }
};

class StepCheck {
   public:
    StepCheck(const Schedule& schedule, const MemoryMap& memory, const StepPlace& place,
              const Step& step)
        : schedule_(schedule), memory_(memory), place_(place), step_(step) {}

    [[nodiscard]] Status run() const {
        const auto operands = operands_of(step_.action);
        if (!operands) return wrong("this action does not exist");
        if (step_.action == Action::kSwitchPhase && !step_.after.empty())
            return wrong("waits for all steps before it, and so names none");
        PCCL_TRY(check_port("from", step_.from, operands->receives));
        PCCL_TRY(check_port("to", step_.to, operands->sends));
        PCCL_TRY(check_slices("src", step_.src, operands->src));
        PCCL_TRY(check_slices("dst", step_.dst,
                              operands->dst ? OperandUse::kRequired : OperandUse::kNone));
        PCCL_TRY(check_destination());
        PCCL_TRY(check_overlaps());
        PCCL_TRY(check_slices_together());
        return check_dependencies();
    }

   private:
    template <typename... Parts>
    [[nodiscard]] Status wrong(const Parts&... what) const {
        return fault(place_, step_, what...);
    }

    [[nodiscard]] Status check_port(const char* name, const PeerPort& port, bool wanted) const {
        if (port.is_used() != wanted) {
            return wrong("this action ", wanted ? "needs" : "has no", " peer '", name, "'");
        }
        if (!wanted) return Status::ok();
        if (port.peer < 0 || port.peer >= schedule_.shape.ranks) {
            return wrong("peer ", port.peer, " is no rank; ranks are 0 to ",
                         schedule_.shape.ranks - 1);
        }
        if (port.peer == place_.rank) return wrong("a rank cannot be its own peer; use copy");
        if (port.channel < 0) return wrong("channel ", port.channel, " is negative");
        return Status::ok();
    }

    [[nodiscard]] Status check_slices(const char* name, const Slices& slices,
                                      OperandUse use) const {
        if (slices.is_empty()) {
            return use == OperandUse::kRequired ? wrong("this action needs slice '", name, "'")
                                                : Status::ok();
        }
        if (use == OperandUse::kNone) return wrong("this action has no slice '", name, "'");
        for (const Slice& slice : slices) PCCL_TRY(check_slice(name, slice));
        const int chunks = slices.count();
        return chunks <= kMostMoved ? Status::ok()
                                    : wrong("'", name, "' has ", chunks, " chunks, more than ",
                                            kMostMoved, " in a step");
    }

    [[nodiscard]] Status check_slice(const char* name, const Slice& slice) const {
        if (slice.buffer > Buffer::kScratch) return wrong("'", name, "' names no buffer");
        if (!memory_.exists(place_.rank, slice.buffer)) {
            return wrong(to_string(slice.buffer), " exists only on root ", schedule_.shape.root);
        }
        const int chunks = memory_.chunks(place_.rank, slice.buffer);
        if (slice.offset < 0 || slice.count < 0 || slice.count > chunks - slice.offset) {
            return wrong("'", name, "' leaves ", to_string(slice.buffer), ", which has ", chunks,
                         " chunks");
        }
        return Status::ok();
    }

    [[nodiscard]] Status check_destination() const {
        for (const Slice& slice : step_.dst)
            if (!memory_.may_write(place_.rank, slice))
                return wrong("writes input[", slice.offset,
                             "], which belongs to the caller; it must stay as it is");
        return Status::ok();
    }

    [[nodiscard]] Status check_overlaps() const {
        const std::vector<PlaceRun> targets = runs_of(step_.dst);
        const auto overlap = [](const PlaceRun& before, const PlaceRun& next) {
            return before.end() > next.place;
        };
        if (std::ranges::adjacent_find(targets, overlap) != targets.end())
            return wrong("writes a chunk twice; the slices of dst must be disjoint");
        for (const PlaceRun& source : runs_of(step_.src))
            if (collides(source, targets))
                return wrong("src and dst overlap; they must be the same chunks or disjoint");
        return Status::ok();
    }

    /// Returns the runs in order of their places.
    [[nodiscard]] std::vector<PlaceRun> runs_of(const Slices& slices) const {
        std::vector<PlaceRun> runs;
        int at = 0;
        for (const Slice& slice : slices) {
            runs.push_back({memory_.place(place_.rank, slice), slice.count, at});
            at += slice.count;
        }
        std::ranges::sort(runs, {}, &PlaceRun::place);
        return runs;
    }

    /// Returns whether a chunk of `source` meets a different chunk of `targets`, which are disjoint
    /// and sorted by place.
    [[nodiscard]] static bool collides(const PlaceRun& source,
                                       const std::vector<PlaceRun>& targets) {
        const auto first = std::ranges::upper_bound(targets, source.place, {}, &PlaceRun::end);
        for (auto target = first; target != targets.end() && target->place < source.end(); ++target)
            if (target->place - target->at != source.place - source.at) return true;
        return false;
    }

    [[nodiscard]] Status check_slices_together() const {
        const Slices& src = step_.src;
        const Slices& dst = step_.dst;
        if (src.is_empty() || dst.is_empty()) return Status::ok();
        if (src.count() != dst.count()) {
            return wrong("src has ", src.count(), " chunks and dst ", dst.count(),
                         "; they must be equal");
        }
        if (first_unlike(src, dst, schedule_.shape.chunks) != kAllAlike) {
            return wrong("src and dst begin at different chunks of a block, which may differ in ",
                         "length; offsets must agree modulo ", schedule_.shape.chunks);
        }
        return Status::ok();
    }

    [[nodiscard]] Status check_dependencies() const {
        const auto& lanes = schedule_.programs[static_cast<std::size_t>(place_.rank)].lanes;
        for (const Dependency& after : step_.after) {
            const bool is_lane = after.lane >= 0 && std::cmp_less(after.lane, lanes.size());
            if (!is_lane || after.step < 0 ||
                std::cmp_greater_equal(after.step,
                                       lanes[static_cast<std::size_t>(after.lane)].size())) {
                return wrong("waits for lane ", after.lane, " step ", after.step,
                             ", which does not exist");
            }
        }
        return Status::ok();
    }

    const Schedule& schedule_;
    const MemoryMap& memory_;
    const StepPlace& place_;
    const Step& step_;
};

Status check_memory(const Schedule& schedule) {
    const Shape& shape = schedule.shape;
    const long long blocks_of_rank = blocks(shape.kind, Buffer::kInput, shape.ranks) +
                                     blocks(shape.kind, Buffer::kOutput, shape.ranks);
    // Capped before the multiplication by the ranks, which could overflow.
    long long places = std::min(blocks_of_rank * shape.chunks, kMaxPlaces) * shape.ranks;
    for (std::size_t rank = 0; rank < schedule.programs.size(); ++rank) {
        const int scratch = schedule.programs[rank].scratch_chunks;
        if (scratch < 0) {
            return refuse("rank ", rank, " has ", scratch,
                          " chunks of scratch, must be at least 0");
        }
        places += scratch;
    }
    if (places > kMaxPlaces) {
        return refuse("the buffers of all ranks have more than ", kMaxPlaces,
                      " chunks, too many to be verified");
    }
    return Status::ok();
}

constexpr std::size_t kMostPhases = 1024;
constexpr std::size_t kLongestPhase = 64;

Status check_phases(const std::vector<std::string>& phases) {
    if (phases.size() > kMostPhases)
        return refuse("there are ", phases.size(), " switches of phases, more than ", kMostPhases);
    for (const std::string& phase : phases) {
        const bool is_plain =
            std::ranges::all_of(phase, [](char c) { return c > ' ' && c <= '~'; });
        if (phase.empty() || phase.size() > kLongestPhase || !is_plain)
            return refuse("a phase of the network has 1 to ", kLongestPhase,
                          " printable characters, and no space; here is one of ", phase.size());
    }
    return Status::ok();
}

Status check_switches(const Schedule& schedule, Rank rank, std::size_t lane) {
    const Lane& steps = schedule.programs[static_cast<std::size_t>(rank)].lanes[lane];
    const auto switches = std::ranges::count(steps, Action::kSwitchPhase, &Step::action);
    if (std::cmp_equal(switches, schedule.phases.size())) return Status::ok();
    return refuse("rank ", rank, " lane ", lane, " has ", switches, " switch_phase, must have ",
                  schedule.phases.size(), ": one for each switch, as every lane of every rank");
}

}  // namespace

Status check_shape(const Schedule& schedule) {
    const Shape& shape = schedule.shape;
    if (shape.kind > CollectiveKind::kAllToAll) return refuse("the collective does not exist");
    if (shape.ranks < 1 || shape.ranks > (1 << 20)) {
        return refuse("ranks is ", shape.ranks, ", must be 1 to ", 1 << 20);
    }
    if (std::cmp_not_equal(schedule.programs.size(), shape.ranks)) {
        return refuse("there are ", schedule.programs.size(), " programs for ", shape.ranks,
                      " ranks");
    }
    const int roots = is_rooted(shape.kind) ? shape.ranks : 1;
    if (shape.root < 0 || shape.root >= roots) {
        return refuse("root is ", shape.root, ", must be 0 to ", roots - 1);
    }
    if (shape.chunks < 1) return refuse("chunks is ", shape.chunks, ", must be at least 1");
    if (shape.slots < 1) return refuse("slots is ", shape.slots, ", must be at least 1");
    PCCL_TRY(check_phases(schedule.phases));
    return check_memory(schedule);
}

Status check_steps(const Schedule& schedule, const MemoryMap& memory) {
    for (Rank rank = 0; rank < schedule.shape.ranks; ++rank) {
        const auto& lanes = schedule.programs[static_cast<std::size_t>(rank)].lanes;
        for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
            PCCL_TRY(check_switches(schedule, rank, lane));
            for (std::size_t step = 0; step < lanes[lane].size(); ++step) {
                const StepPlace place{rank, static_cast<int>(lane), static_cast<int>(step)};
                PCCL_TRY(StepCheck(schedule, memory, place, lanes[lane][step]).run());
            }
        }
    }
    return Status::ok();
}

}  // namespace pccl::schedule
