// SPDX-License-Identifier: Apache-2.0
#include "csrc/bindings/raw_steps.h"

#include <pybind11/stl.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/bindings/names.h"

namespace pccl::bindings {

namespace py = pybind11;
using schedule::Action;
using schedule::Buffer;
using schedule::Lane;
using schedule::PeerPort;
using schedule::Program;
using schedule::Slices;
using schedule::Step;

namespace {

using RawSlices = std::vector<std::tuple<std::string, int, int>>;
using RawPort = std::optional<std::pair<Rank, ChannelId>>;
using RawAfter = std::vector<std::pair<int, int>>;
using RawStep = std::tuple<std::string, RawSlices, RawSlices, RawPort, RawPort, RawAfter>;
using RawProgram = std::pair<int, std::vector<std::vector<RawStep>>>;

Slices slices_of(const RawSlices& raw) {
    Slices slices;
    for (const auto& [buffer, offset, count] : raw)
        slices.add({named<Buffer>(buffer, Buffer::kScratch, "buffer"), offset, count});
    return slices;
}

PeerPort port_of(const RawPort& raw) {
    return raw ? PeerPort{raw->first, raw->second} : PeerPort{};
}

Step step_of(const RawStep& raw) {
    const auto& [action, src, dst, from, to, after] = raw;
    Step step{.action = named<Action>(action, Action::kSwitchPhase, "action of a step"),
              .src = slices_of(src),
              .dst = slices_of(dst),
              .from = port_of(from),
              .to = port_of(to)};
    for (const auto& [lane, index] : after) step.after.push_back({lane, index});
    return step;
}

RawSlices raw(const Slices& slices) {
    RawSlices all;
    for (const schedule::Slice& slice : slices)
        all.emplace_back(to_string(slice.buffer), slice.offset, slice.count);
    return all;
}

RawPort raw(const PeerPort& port) {
    return port.is_used() ? RawPort({port.peer, port.channel}) : std::nullopt;
}

RawStep raw(const Step& step) {
    RawAfter after;
    for (const schedule::Dependency& each : step.after) after.emplace_back(each.lane, each.step);
    return {std::string(to_string(step.action)),
            raw(step.src),
            raw(step.dst),
            raw(step.from),
            raw(step.to),
            std::move(after)};
}

}  // namespace

std::vector<Program> programs_of(const py::list& programs) {
    std::vector<Program> all;
    for (const py::handle each : programs) {
        const auto found = each.cast<RawProgram>();
        Program program{.lanes = {}, .scratch_chunks = found.first};
        for (const std::vector<RawStep>& steps : found.second) {
            Lane& lane = program.lanes.emplace_back();
            for (const RawStep& step : steps) lane.push_back(step_of(step));
        }
        all.push_back(std::move(program));
    }
    return all;
}

py::object raw_programs_of(const schedule::Schedule& schedule) {
    std::vector<RawProgram> all;
    for (const Program& program : schedule.programs) {
        RawProgram& made = all.emplace_back(program.scratch_chunks, 0);
        for (const Lane& lane : program.lanes) {
            auto& steps = made.second.emplace_back();
            for (const Step& step : lane) steps.push_back(raw(step));
        }
    }
    return py::cast(all);
}

}  // namespace pccl::bindings
