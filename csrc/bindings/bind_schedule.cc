// SPDX-License-Identifier: Apache-2.0

// Bindings of pccl.schedule: generates, verifies and prints the programs of collectives.

#include <pybind11/stl.h>

#include <string>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/bindings/bind.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/names.h"
#include "csrc/schedule/generators/generators.h"
#include "csrc/schedule/verifier/verifier.h"

namespace pccl::bindings {

namespace py = pybind11;
using py::arg;
using schedule::Placement;
using schedule::Schedule;

namespace {

std::vector<std::string> algorithms(const std::string& collective) {
    std::vector<std::string> names;
    for (const schedule::SourcePtr& source : schedule::built_in()->of(kind_of(collective)))
        names.push_back(source->name);
    return names;
}

Schedule generate(const std::string& algorithm, const std::string& collective, int ranks, Rank root,
                  std::optional<int> chunks, std::optional<int> slots, int aggregation) {
    const schedule::SourcePtr source =
        value_or_throw(schedule::built_in(algorithm, kind_of(collective)));
    schedule::Shape shape = schedule::least_shape(*source, ranks, root);
    if (chunks) shape.chunks = *chunks;
    if (slots) shape.slots = *slots;
    shape.aggregation = aggregation;
    return released([&] { return schedule::generate(*source, shape); });
}

py::dict verify(const Schedule& schedule, bool in_place) {
    const Placement placement = in_place ? Placement::kInPlace : Placement::kOutOfPlace;
    const auto verdict = released([&] { return schedule::verify(schedule, placement); });
    py::dict facts;
    facts["rounds"] = verdict.rounds;
    facts["bit_identical"] = verdict.bit_identical;
    return facts;
}

py::object port(const py::module_& steps, const schedule::PeerPort& port) {
    if (!port.is_used()) return py::none();
    return steps.attr("Port")(port.peer, port.channel);
}

py::tuple dependencies(const py::module_& steps, const schedule::Step& step) {
    py::list all;
    for (const schedule::Dependency& after : step.after)
        all.append(steps.attr("Dependency")(after.lane, after.step));
    return py::tuple(all);
}

/// Returns a pccl.results.table.Table of pccl.results.schedule_steps.Step.
py::object steps_of(const Schedule& schedule) {
    const py::module_ steps = py::module_::import("pccl.results.schedule_steps");
    py::list all;
    for (std::size_t rank = 0; rank < schedule.programs.size(); ++rank) {
        const auto& lanes = schedule.programs[rank].lanes;
        for (std::size_t lane = 0; lane < lanes.size(); ++lane)
            for (std::size_t i = 0; i < lanes[lane].size(); ++i) {
                const schedule::Step& step = lanes[lane][i];
                all.append(steps.attr("Step")(rank, lane, i, to_string(step.action),
                                              to_string(step), port(steps, step.from),
                                              port(steps, step.to), dependencies(steps, step)));
            }
    }
    return py::module_::import("pccl.results.table").attr("Table")(all);
}

std::string printed_schedule(const Schedule& schedule) {
    const schedule::Shape& shape = schedule.shape;
    return concat("<pccl.Schedule ", schedule.name, ": ", to_string(shape.kind), ", ", shape.ranks,
                  " ranks, ", shape.chunks, shape.chunks == 1 ? " chunk, " : " chunks, ",
                  shape.slots, shape.slots == 1 ? " slot>" : " slots>");
}

}  // namespace

void bind_schedule(extension::Module& module) {
    extension::Class<Schedule>(module, "Schedule")
        .def_readonly("name", &Schedule::name)
        .def_property_readonly("collective",
                               [](const Schedule& self) { return to_string(self.shape.kind); })
        .def_property_readonly("ranks", [](const Schedule& self) { return self.shape.ranks; })
        .def_property_readonly("root", [](const Schedule& self) { return self.shape.root; })
        .def_property_readonly("chunks", [](const Schedule& self) { return self.shape.chunks; })
        .def_property_readonly("slots", [](const Schedule& self) { return self.shape.slots; })
        .def_property_readonly("aggregation",
                               [](const Schedule& self) { return self.shape.aggregation; })
        .def_property_readonly(
            "phases", [](const Schedule& self) { return py::tuple(py::cast(self.phases)); })
        .def_property_readonly("steps", &steps_of)
        .def("verify", &verify, py::kw_only(), arg("in_place") = false)
        .def(
            "renamed",
            [](Schedule self, std::string name) {
                self.name = std::move(name);
                return self;
            },
            arg("name"))
        .def("plot",
             [](const py::object& self) {
                 return py::module_::import("pccl.schedule.plot").attr("draw_schedule")(self);
             })
        .def("_repr_html_",
             [](const py::object& self) {
                 return py::module_::import("pccl.schedule.html").attr("html_of")(self);
             })
        .def("__repr__", &printed_schedule)
        .def("__str__", [](const Schedule& self) { return schedule::to_string(self); })
        .def("__eq__", [](const Schedule& a, const Schedule& b) { return a == b; });
    module.def("algorithms", &algorithms, arg("collective"));
    module.def("generate", &generate, arg("algorithm"), arg("collective"), arg("ranks"),
               py::kw_only(), arg("root") = 0, arg("chunks") = py::none(),
               arg("slots") = py::none(), arg("aggregation") = 0);
}

}  // namespace pccl::bindings
