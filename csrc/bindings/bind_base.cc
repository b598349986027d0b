// SPDX-License-Identifier: Apache-2.0

// Bindings of functions of the whole process: its log level, its flight record, and ask_status(),
// the client of `pccl status`.

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

py::bytes ask_status(const std::string& door, const py::bytes& group, std::uint32_t first,
                     Seconds timeout_s) {
    throw_unless_ok(check_settings());
    const std::string key = group;
    const Deadline deadline = Deadline::after(duration_of(timeout_s, "timeout_s"));
    return released([&] { return runtime::ask_status(door, key, first, deadline); });
}

}  // namespace

void bind_base(extension::Module& module) {
    module.def("set_log_level", &set_level, py::arg("level"));
    module.def(
        "flight_record_json", [] { return runtime::flight_record_json("asked for"); },
        py::call_guard<py::gil_scoped_release>());
    module.def("ask_status", &ask_status, py::arg("door"), py::arg("group"), py::arg("first"),
               py::arg("timeout_s"));
}

}  // namespace pccl::bindings
