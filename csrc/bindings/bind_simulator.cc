// SPDX-License-Identifier: Apache-2.0

// Bindings behind pccl.simulator: networks, and the simulation of schedules on them.

#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/bindings/bind.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/names.h"
#include "csrc/capsule/capsule_file.h"
#include "csrc/costs/kept_costs.h"
#include "csrc/costs/model/machine_network.h"
#include "csrc/schedule/generators/generators.h"
#include "csrc/schedule/simulator/replay.h"

namespace pccl::bindings {

namespace py = pybind11;
using py::arg;
using schedule::Buffer;
using schedule::Replay;
using schedule::ReplayInput;
using schedule::SimulatedNetwork;
using schedule::SimulatedStepTime;

namespace {

/// Sets the largest buffer to `nbytes`.
ReplayInput of_bytes(ReplayInput piece, double nbytes) {
    if (!(nbytes >= 0) || std::isinf(nbytes))
        throw_status(
            Status::invalid_argument(concat("nbytes is ", nbytes, ": give bytes from 0 on")));
    const schedule::Shape& shape = piece.shape;
    piece.block_bytes = nbytes / std::max(blocks(shape.kind, Buffer::kInput, shape.ranks),
                                          blocks(shape.kind, Buffer::kOutput, shape.ranks));
    return piece;
}

ReplayInput built_in(const std::string& algorithm, const std::string& collective, int ranks,
                     int aggregation, const schedule::RankOrder& order) {
    const auto source = value_or_throw(schedule::built_in(algorithm, kind_of(collective)));
    schedule::Shape shape = schedule::least_shape(*source, ranks);
    shape.aggregation = aggregation;
    return {.source = source, .shape = shape, .order = order};
}

ReplayInput of_capsule(const capsule::CapsuleFile& file) {
    const capsule::VerifiedCapsule capsule = value_or_throw(file.only());
    return {.source = capsule.source(), .shape = capsule.schedule().shape};
}

/// Returns the parts by the phase in which they run; None for a phase without work.
std::vector<std::pair<std::string, std::optional<ReplayInput>>> parts_of_capsule(
    const capsule::CapsuleFile& file) {
    const capsule::VerifiedCapsule capsule = value_or_throw(file.only());
    std::vector<std::pair<std::string, std::optional<ReplayInput>>> parts;
    for (const auto& [phase, source] : capsule.parts())
        parts.emplace_back(phase, source == nullptr
                                      ? std::nullopt
                                      : std::optional(ReplayInput{
                                            .source = source, .shape = capsule.schedule().shape}));
    return parts;
}

Replay replay(const ReplayInput& piece, const SimulatedNetwork& network, double nbytes) {
    const ReplayInput sized = of_bytes(piece, nbytes);
    return released([&] { return schedule::replay(sized, network); });
}

/// Returns, for each round, the seconds, the bytes of the longest message, and the receivers.
std::vector<std::tuple<double, double, std::vector<Rank>>> rounds(const ReplayInput& piece,
                                                                  const SimulatedNetwork& network,
                                                                  double nbytes) {
    const ReplayInput sized = of_bytes(piece, nbytes);
    const auto found = released([&] { return schedule::replay_in_rounds(sized, network); });
    std::vector<std::tuple<double, double, std::vector<Rank>>> rounds;
    rounds.reserve(found.size());
    for (const schedule::Round& each : found)
        rounds.emplace_back(each.seconds, each.bytes, each.receivers);
    return rounds;
}

/// Returns the fields of pccl.simulator.replay_steps.StepTime.
py::list times_of_steps(const std::vector<SimulatedStepTime>& steps) {
    py::list all;
    for (const SimulatedStepTime& step : steps)
        all.append(py::make_tuple(step.rank, step.lane, step.index, step.action, step.sender,
                                  step.receiver, step.bytes, step.begin, step.start, step.done,
                                  step.arrival, step.window));
    return all;
}

/// Seconds per message, seconds per hop, bytes per second.
using Speed = std::tuple<double, double, double>;

schedule::LinkSpeed speed_of(const Speed& speed) {
    return std::apply([](double start, double hop,
                         double bandwidth) { return schedule::LinkSpeed{start, hop, bandwidth}; },
                      speed);
}

SimulatedNetwork this_machine(int ranks, int cores, bool by_shared_memory) {
    return released([&] {
        return costs::machine_network({ranks, cores, by_shared_memory}, costs::process_costs());
    });
}

Speed memory_speed(int ranks_on_host) {
    const schedule::LinkSpeed speed =
        released([&] { return costs::memory_speed(ranks_on_host, costs::process_costs()); });
    return {speed.start_seconds, speed.hop_seconds, speed.bandwidth};
}

/// Seconds per message, until its arrival, and per byte; whether the receiver has the same costs;
/// seconds per reduced byte, and per run of chunks; the receiver's seconds per message and per
/// byte; seconds per poll; bytes of a link's buffer.
using Work =
    std::tuple<double, double, double, bool, double, double, double, double, double, std::size_t>;

SimulatedNetwork one_machine(int ranks, int cores, const Work& work) {
    const auto& [start, travel, byte, both, sum, run, receipt, take, look, capacity] = work;
    return schedule::one_machine(
        ranks, cores, {start, travel, byte, both, sum, run, receipt, take, look, capacity});
}

void bind_networks(extension::Module& module) {
    extension::Class<SimulatedNetwork>(module, "Network")
        .def_readonly("ranks", &SimulatedNetwork::ranks)
        .def_readonly("turns", &SimulatedNetwork::turns)
        .def_readwrite("capacity", &SimulatedNetwork::capacity)
        .def_readwrite("reduce_seconds_per_byte", &SimulatedNetwork::reduce_seconds_per_byte);
    module.def(
        "ring_of_circuits",
        [](int ranks, int ports, const Speed& speed) {
            return schedule::ring_of_circuits(ranks, ports, speed_of(speed));
        },
        arg("ranks"), arg("ports"), arg("speed"));
    module.def(
        "one_switch",
        [](int ranks, const Speed& speed) { return schedule::one_switch(ranks, speed_of(speed)); },
        arg("ranks"), arg("speed"));
    module.def(
        "two_levels",
        [](int ranks, int ranks_per_host, const Speed& within, const Speed& across) {
            return schedule::two_levels(ranks, ranks_per_host, speed_of(within), speed_of(across));
        },
        arg("ranks"), arg("ranks_per_host"), arg("within"), arg("across"));
    module.def("memory_speed", &memory_speed, arg("ranks_on_host"));
    module.def("this_machine", &this_machine, arg("ranks"), arg("cores"), arg("by_shared_memory"));
    module.def("one_machine", &one_machine, arg("ranks"), arg("cores"), arg("work"));
}

}  // namespace

void bind_simulator(extension::Module& module) {
    bind_networks(module);
    extension::Class<Replay>(module, "Replay")
        .def_readonly("seconds", &Replay::seconds)
        .def_readonly("rounds", &Replay::rounds)
        .def_readonly("messages", &Replay::messages)
        .def_readonly("bytes_sent", &Replay::bytes_sent)
        .def_property_readonly("busiest", [](const Replay& self) { return self.busiest.name; })
        .def_property_readonly("busiest_bytes",
                               [](const Replay& self) { return self.busiest.bytes; })
        .def_property_readonly("busiest_seconds",
                               [](const Replay& self) { return self.busiest.busy; })
        .def_readonly("peak_chunks", &Replay::peak_chunks)
        .def_readonly("windows", &Replay::windows)
        .def_readonly("one_for_all", &Replay::one_for_all)
        .def_property_readonly(
            "critical_path", [](const Replay& self) { return times_of_steps(self.critical_path); })
        .def_property_readonly("steps",
                               [](const Replay& self) { return times_of_steps(self.steps); });
    extension::Class<ReplayInput>(module, "Piece")
        .def_static("built_in", &built_in, arg("algorithm"), arg("collective"), arg("ranks"),
                    arg("aggregation"), arg("order"))
        .def_static("of_capsule", &of_capsule, arg("capsule"))
        .def_static("parts_of_capsule", &parts_of_capsule, arg("capsule"))
        .def_property_readonly("name", [](const ReplayInput& self) { return self.source->name; })
        .def_property_readonly("collective",
                               [](const ReplayInput& self) { return to_string(self.shape.kind); })
        .def_property_readonly("ranks", [](const ReplayInput& self) { return self.shape.ranks; })
        .def("replay", &replay, arg("network"), arg("nbytes"))
        .def("rounds", &rounds, arg("network"), arg("nbytes"));
}

}  // namespace pccl::bindings
