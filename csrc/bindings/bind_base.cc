// SPDX-License-Identifier: Apache-2.0

// Bindings of base: set_log_level().

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "csrc/base/log.h"
#include "csrc/base/text.h"
#include "csrc/bindings/bind.h"
#include "csrc/bindings/errors.h"
#include "csrc/runtime/flight/flight_dump.h"

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

}  // namespace

void bind_base(extension::Module& module) {
    module.def("set_log_level", &set_level, py::arg("level"));
    module.def(
        "flight_record_json", [] { return runtime::flight_record_json("asked for"); },
        py::call_guard<py::gil_scoped_release>());
}

}  // namespace pccl::bindings
