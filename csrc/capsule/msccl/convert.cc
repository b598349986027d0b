// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/msccl/convert.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/capsule/limits.h"
#include "csrc/capsule/msccl/placing.h"

namespace pccl::capsule::msccl {
namespace {

using schedule::Action;
using schedule::Lane;
using schedule::Program;
using schedule::Schedule;

// Queue depths to try.
constexpr std::array<int, 3> kSlots{2, 8, kMostSlots};

std::string name_from(std::string_view text) {
    std::string name;
    for (const char c : text.substr(0, kLongestName)) {
        const bool is_upper = c >= 'A' && c <= 'Z';
        const bool is_kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        name += is_upper ? static_cast<char>(c - 'A' + 'a') : is_kept ? c : '_';
    }
    return name.empty() ? "imported" : name;
}

/// Returns the number that follows `word` in `text` from `at` on, and moves `at` behind it.
std::optional<std::size_t> number_after(std::string_view text, std::string_view word,
                                        std::size_t& at) {
    if (text.substr(at, word.size()) != word) return std::nullopt;
    std::size_t value = 0;
    const char* const begin = text.data() + at + word.size();
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
    if (error != std::errc{}) return std::nullopt;
    at = static_cast<std::size_t>(end - text.data());
    return value;
}

/// Maker of an algorithm's schedules; stores the origins of their steps.
class Importer {
   public:
    explicit Importer(const Algo& algo) : algo_(algo) {}

    Result<Schedule> convert(Working working) {
        PCCL_ASSIGN_OR_RETURN(const Placing placing, Placing::make(algo_, working));
        Schedule schedule{.name = {},
                          .shape = {.kind = algo_.kind,
                                    .ranks = static_cast<int>(algo_.gpus.size()),
                                    .root = algo_.root,
                                    .chunks = algo_.chunks,
                                    .slots = kSlots.front()},
                          .programs = {}};
        origins_.assign(algo_.gpus.size(), {});
        for (Rank rank = 0; rank < schedule.shape.ranks; ++rank)
            schedule.programs.push_back(program_of(rank, placing));
        return schedule;
    }

    /// Adds the line of the first step that the verifier names.
    [[nodiscard]] Status explained(const Status& fault) const {
        const std::string& message = fault.message();
        std::size_t at = message.find("rank ");
        while (at != std::string::npos) {
            std::size_t end = at;
            const auto rank = number_after(message, "rank ", end);
            const auto lane = rank ? number_after(message, " lane ", end) : std::nullopt;
            const auto step = lane ? number_after(message, " step ", end) : std::nullopt;
            if (step && *rank < origins_.size() && *lane < origins_[*rank].size() &&
                *step < origins_[*rank][*lane].size())
                return fault.with_context(algo_.place(origins_[*rank][*lane][*step]));
            at = message.find("rank ", at + 1);
        }
        return fault.with_context(algo_.place(algo_.origin));
    }

   private:
    Program program_of(Rank rank, const Placing& placing) {
        const AlgoGpu& gpu = algo_.gpus[static_cast<std::size_t>(rank)];
        Program program{.lanes = {}, .scratch_chunks = placing.scratch_chunks(rank)};
        auto& origins = origins_[static_cast<std::size_t>(rank)];
        for (const ThreadBlock& block : gpu.blocks) {
            Lane lane;
            origins.emplace_back();
            for (const AlgoStep& step : block.steps) {
                lane.push_back(converted(rank, step, placing));
                origins.back().push_back(step.origin);
            }
            program.lanes.push_back(std::move(lane));
        }
        add_copies(program, rank, placing);
        return program;
    }

    schedule::Step converted(Rank rank, const AlgoStep& step, const Placing& placing) const {
        schedule::Step made{.action = step.action, .from = step.from, .to = step.to};
        if (has_src(step.action)) made.src = placing.slices(rank, step.src, step.count);
        if (has_dst(step.action)) made.dst = placing.slices(rank, step.dst, step.count);
        // dst (+) incoming, if the result replaces the operand.
        if (made.from.is_used() && made.src == made.dst) made.src = {};
        made.after = step.after;
        return made;
    }

    /// Adds the copies in a lane of their own: all other lanes begin after the first copies and end
    /// before the last.
    void add_copies(Program& program, Rank rank, const Placing& placing) {
        const AlgoGpu& gpu = algo_.gpus[static_cast<std::size_t>(rank)];
        Lane copies;
        std::vector<FileOffset> origins;
        const auto add = [&](const Placing::OuterCopy& copy, FileOffset origin) {
            copies.push_back({.action = Action::kCopy, .src = copy.src, .dst = copy.dst});
            origins.push_back(origin);
        };
        if (const auto in = placing.copy_in(rank)) add(*in, gpu.origin);
        for (const AlgoStep& copy : gpu.copies)
            add({placing.slices(rank, copy.src, 1), placing.slices(rank, copy.dst, 1)},
                copy.origin);
        if (!copies.empty()) begin_after(copies, program);
        if (const auto out = placing.copy_out(rank)) {
            add(*out, gpu.origin);
            end_before(copies.back(), program);
        }
        if (copies.empty()) return;
        origins_[static_cast<std::size_t>(rank)].push_back(std::move(origins));
        program.lanes.push_back(std::move(copies));
    }

    /// Makes all lanes begin after `copies`, the next lane.
    static void begin_after(const Lane& copies, Program& program) {
        const int own = static_cast<int>(program.lanes.size());
        for (Lane& lane : program.lanes)
            if (!lane.empty())
                lane.front().after.push_back({own, static_cast<int>(copies.size()) - 1});
    }

    static void end_before(schedule::Step& last, const Program& program) {
        for (std::size_t lane = 0; lane < program.lanes.size(); ++lane)
            if (const Lane& steps = program.lanes[lane]; !steps.empty())
                last.after.push_back({static_cast<int>(lane), static_cast<int>(steps.size()) - 1});
    }

    const Algo& algo_;
    std::vector<std::vector<std::vector<FileOffset>>> origins_;  // by rank, lane and step
};

Result<VerifiedCapsule> proven(const CapsuleDescription& description, Schedule schedule,
                               int most_slots) {
    Status last;
    for (const int slots : kSlots) {
        if (slots > most_slots) break;
        schedule.shape.slots = slots;
        auto capsule = VerifiedCapsule::make(description, schedule);
        if (capsule.is_ok()) return capsule;
        last = capsule.status();
        if (!last.message().starts_with("deadlock")) break;
    }
    return last;
}

Result<VerifiedCapsule> attempt(Importer& importer, Working working,
                                const CapsuleDescription& description, int most_slots) {
    PCCL_ASSIGN_OR_RETURN(Schedule schedule, importer.convert(working));
    auto capsule = proven(description, std::move(schedule), most_slots);
    if (capsule.is_ok()) return capsule;
    return importer.explained(capsule.status());
}

}  // namespace

Result<VerifiedCapsule> capsule_of(const Algo& algo, std::string_view name,
                                   const std::string& note) {
    const CapsuleDescription description{
        .name = name.empty() ? name_from(algo.name) : std::string(name),
        .note = note,
        .sizes = algo.sizes,
        .protocol = algo.protocol};
    PCCL_TRY(check(description));
    Importer importer(algo);
    // The placement that is nearest to the file's memory gives the error to report.
    Status fault;
    for (const Working working : ways_of(algo)) {
        auto capsule = attempt(importer, working, description, algo.most_slots);
        if (capsule.is_ok()) return capsule;
        if (fault.is_ok() || algo.in_place) fault = capsule.status();
    }
    return fault;
}

Result<schedule::Schedule> unproven_schedule_of(const Algo& algo) {
    const std::vector<Working> ways = ways_of(algo);
    PCCL_ASSIGN_OR_RETURN(Schedule schedule,
                          Importer(algo).convert(algo.in_place ? ways.back() : ways.front()));
    schedule.name = name_from(algo.name);
    return schedule;
}

}  // namespace pccl::capsule::msccl
