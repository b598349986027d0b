// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/phase_parts.h"

#include <algorithm>
#include <cstddef>

#include "csrc/base/ids.h"

namespace pccl::schedule {
namespace {

/// Bounds of the parts of a lane, up to the end of the last one; switches belong to no part.
struct Bounds {
    std::vector<int> first;
    std::vector<int> end;

    explicit Bounds(const Lane& lane) : first{0} {
        for (std::size_t step = 0; step < lane.size(); ++step) {
            if (lane[step].action != Action::kSwitchPhase) continue;
            end.push_back(static_cast<int>(step));
            first.push_back(static_cast<int>(step) + 1);
        }
        end.push_back(static_cast<int>(lane.size()));
    }
};

/// Returns the dependencies within a step's own part; all earlier parts are done.
std::vector<Dependency> within(const std::vector<Dependency>& after,
                               const std::vector<Bounds>& lanes, std::size_t part) {
    std::vector<Dependency> own;
    for (const Dependency& each : after) {
        const int first = lanes[at(each.lane)].first[part];
        if (each.step >= first) own.push_back({each.lane, each.step - first});
    }
    return own;
}

Program part_of(const Program& program, const std::vector<Bounds>& lanes, std::size_t part) {
    Program found{.lanes = {}, .scratch_chunks = program.scratch_chunks};
    for (std::size_t i = 0; i < lanes.size(); ++i) {
        Lane& lane = found.lanes.emplace_back(program.lanes[i].begin() + lanes[i].first[part],
                                              program.lanes[i].begin() + lanes[i].end[part]);
        for (Step& step : lane) step.after = within(step.after, lanes, part);
    }
    return found;
}

}  // namespace

bool PhasePart::is_empty() const {
    return std::ranges::all_of(programs, [](const Program& program) {
        return std::ranges::all_of(program.lanes, &Lane::empty);
    });
}

std::vector<PhasePart> parts_of(const Schedule& verified) {
    std::vector<PhasePart> parts(verified.phases.size() + 1);
    for (std::size_t part = 1; part < parts.size(); ++part)
        parts[part].phase = verified.phases[part - 1];
    for (const Program& program : verified.programs) {
        const std::vector<Bounds> lanes(program.lanes.begin(), program.lanes.end());
        for (std::size_t part = 0; part < parts.size(); ++part)
            parts[part].programs.push_back(part_of(program, lanes, part));
    }
    return parts;
}

}  // namespace pccl::schedule
