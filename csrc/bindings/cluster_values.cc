// SPDX-License-Identifier: Apache-2.0
#include "csrc/bindings/cluster_values.h"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pccl::bindings {

namespace py = pybind11;
using py::arg;

namespace {

double in_ms(Duration duration) {
    return std::chrono::duration<double, std::milli>(duration).count();
}

py::str to_python(std::string_view text) {
    PyObject* const decoded =
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
    if (decoded == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::str>(decoded);
}

py::tuple to_python(const std::pair<int, int>& pair) {
    return py::make_tuple(pair.first, pair.second);
}

py::tuple to_python(const cluster::RankLink& link) { return py::make_tuple(link.from, link.to); }

py::tuple to_python(const cluster::Circuit& circuit) {
    return py::make_tuple(circuit.ingress, circuit.egress);
}

py::tuple to_python(const cluster::Port& port) {
    return py::make_tuple(to_python(port.of_switch), port.number);
}

py::tuple to_python(const comm::StepDuration& step) {
    return py::make_tuple(to_python(step.step), in_ms(step.took));
}

// Declared for tuple_of(), which finds no overloads that follow it.
py::dict to_python(const cluster::Device& device);
py::dict to_python(const cluster::SwitchDescription& of);
py::dict to_python(const cluster::Phase& phase);
py::dict to_python(const cluster::SwitchPlan& plan);
py::dict to_python(const cluster::Sight& sight);
py::dict to_python(const cluster::SwitchProgress& progress);
py::dict to_python(const comm::SwitchReport& report);

template <typename T>
py::tuple tuple_of(const std::vector<T>& values) {
    py::tuple made(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) made[i] = to_python(values[i]);
    return made;
}

py::dict to_python(const cluster::Device& device) {
    return py::dict(arg("name") = to_python(device.name), arg("rank") = device.rank,
                    arg("ports") = tuple_of(device.ports));
}

py::dict to_python(const cluster::SwitchDescription& of) {
    const cluster::Management& management = of.management;
    return py::dict(arg("name") = to_python(of.name), arg("dialect") = to_python(of.dialect),
                    arg("host") = to_python(of.is_in_process ? std::string() : management.host),
                    arg("port") = of.is_in_process ? 0 : int{management.port},
                    arg("settle_ms") = of.settle.count());
}

py::dict to_python(const cluster::Phase& phase) {
    return py::dict(arg("name") = to_python(phase.name), arg("links") = tuple_of(phase.links),
                    arg("forward") = phase.forwards);
}

py::dict to_python(const cluster::SwitchPlan& plan) {
    return py::dict(arg("name") = to_python(plan.name),
                    arg("remove") = tuple_of(plan.change.remove),
                    arg("add") = tuple_of(plan.change.add), arg("xml") = to_python(plan.xml));
}

py::dict to_python(const cluster::Sight& sight) {
    return py::dict(
        arg("name") = to_python(sight.name), arg("fault") = to_python(sight.status.message()),
        arg("circuits") = tuple_of(sight.circuits), arg("dark") = py::tuple(py::cast(sight.dark)));
}

py::dict to_python(const cluster::SwitchProgress& progress) {
    return py::dict(arg("name") = to_python(progress.name),
                    arg("doing") = to_python(progress.doing), arg("done") = progress.is_done,
                    arg("fault") = to_python(progress.fault.message()));
}

py::dict to_python(const comm::SwitchReport& report) {
    return py::dict(
        arg("name") = to_python(report.name), arg("fault") = to_python(report.fault),
        arg("found") = tuple_of(report.found), arg("discarded") = to_python(report.discarded),
        arg("startup") = to_python(report.startup), arg("steps") = tuple_of(report.steps));
}

}  // namespace

py::dict to_python(const cluster::Description& description) {
    return py::dict(arg("devices") = tuple_of(description.devices),
                    arg("switches") = tuple_of(description.switches),
                    arg("phases") = tuple_of(description.phases));
}

py::dict to_python(const cluster::Plan& plan) {
    return py::dict(arg("switches") = tuple_of(plan.switches), arg("moved") = tuple_of(plan.dark),
                    arg("lost") = tuple_of(plan.lost), arg("gained") = tuple_of(plan.gained),
                    arg("seconds") = plan.estimate.count());
}

py::dict to_python(const cluster::Inspection& inspection) {
    return py::dict(arg("phase") = to_python(inspection.phase),
                    arg("switches") = tuple_of(inspection.switches));
}

py::dict to_python(const cluster::Progress& progress) {
    return py::dict(arg("part") = to_python(progress.part),
                    arg("switches") = tuple_of(progress.switches));
}

py::dict to_python(const comm::NetworkReport& report) {
    return py::dict(arg("outcome") = to_python(to_string(report.outcome)),
                    arg("code") = to_python(to_string(report.reason.code())),
                    arg("reason") = to_python(report.reason.message()),
                    arg("total_ms") = in_ms(report.total), arg("dark_ms") = in_ms(report.dark),
                    arg("unrecorded") = to_python(report.unrecorded),
                    arg("switches") = tuple_of(report.switches));
}

}  // namespace pccl::bindings
