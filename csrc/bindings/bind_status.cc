// SPDX-License-Identifier: Apache-2.0

// Bindings of ask_status(), the client of `pccl status`.

#include <cstdint>
#include <string>

#include "csrc/base/config.h"
#include "csrc/bindings/bind.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/seconds.h"
#include "csrc/runtime/ask_status.h"

namespace pccl::bindings {

namespace py = pybind11;

namespace {

py::bytes ask_status(const std::string& door, const py::bytes& group, std::uint32_t first,
                     Seconds timeout_s) {
    throw_unless_ok(check_settings());
    const std::string key = group;
    const Deadline deadline = Deadline::after(duration_of(timeout_s, "timeout_s"));
    return released([&] { return runtime::ask_status(door, key, first, deadline); });
}

}  // namespace

void bind_status(extension::Module& module) {
    module.def("ask_status", &ask_status, py::arg("door"), py::arg("group"), py::arg("first"),
               py::arg("timeout_s"));
}

}  // namespace pccl::bindings
