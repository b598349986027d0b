// SPDX-License-Identifier: Apache-2.0

// The module pccl._core: PCCL without torch. Its functions of the whole process are bound here: the
// log level, the flight record, and request_status(), the client of `pccl status`.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"
#include "csrc/bindings/bind.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/seconds.h"
#include "csrc/bootstrap/locality.h"
#include "csrc/extension/gil.h"
#include "csrc/runtime/flight/flight_dump.h"
#include "csrc/runtime/status_report.h"

namespace pccl::bindings {

namespace py = pybind11;

namespace {

constexpr std::array<std::pair<std::string_view, LogLevel>, 6> kLevels{{
    {"trace", LogLevel::kTrace},
    {"debug", LogLevel::kDebug},
    {"info", LogLevel::kInfo},
    {"warning", LogLevel::kWarning},
    {"error", LogLevel::kError},
    {"off", LogLevel::kOff},
}};

void set_level(const std::string& name) {
    for (const auto& [known, level] : kLevels) {
        if (name == known) return set_log_level(level);
    }
    throw_status(Status::invalid_argument(
        concat("'", name, "' is no log level: trace, debug, info, warning, error, off")));
}

template <transport::StatusSubject Subject>
py::bytes request(const std::string& door, const py::bytes& group, std::uint32_t first,
                  Seconds timeout_s) {
    throw_unless_ok(check_settings());
    const transport::StatusQuestion question{
        .group = value_or_throw(runtime::group_of(group)), .first = first, .subject = Subject};
    const Deadline deadline = Deadline::after(duration_of(timeout_s, "timeout_s"));
    return released([&] { return runtime::request_status(door, question, deadline); });
}

void bind_process(extension::Module& module) {
    module.def("set_log_level", &set_level, py::arg("level"));
    module.def("usable_cores", &bootstrap::usable_cores);
    module.def(
        "flight_record_json", [] { return runtime::flight_record_json("asked for"); },
        py::call_guard<extension::ReleasedGil>());
    module.def("request_status", &request<transport::StatusSubject::kMembers>, py::arg("door"),
               py::arg("group"), py::arg("first"), py::arg("timeout_s"));
    module.def("request_history", &request<transport::StatusSubject::kHistory>, py::arg("door"),
               py::arg("group"), py::arg("first"), py::arg("timeout_s"));
}

}  // namespace
}  // namespace pccl::bindings

PYBIND11_MODULE(_core, bare) {
    pccl::extension::Module module(bare);
    pccl::bindings::bind_process(module);
    pccl::bindings::bind_event(module);
    pccl::bindings::bind_phases(module);
    pccl::bindings::bind_communicator(module);
    pccl::bindings::bind_memory(module);
    pccl::bindings::bind_operator(module);
    pccl::bindings::bind_device(module);
    pccl::bindings::bind_device_memory(module);
    pccl::bindings::bind_schedule(module);
    pccl::bindings::bind_topology(module);
    pccl::bindings::bind_job(module);
    pccl::bindings::bind_capsule(module);
    pccl::bindings::bind_p2p(module);
    pccl::bindings::bind_bare_socket(module);
    pccl::bindings::bind_net_plugin(module);
    pccl::bindings::bind_rdma(module);
    pccl::bindings::bind_store(module);
    pccl::bindings::bind_simulator(module);
}
