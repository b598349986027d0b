// SPDX-License-Identifier: Apache-2.0
#include "csrc/bindings/errors.h"

#include <string>

namespace pccl::bindings {

namespace py = pybind11;

void throw_status(const Status& status, std::string_view session) {
    // An exception of a signal handler during the wait has priority.
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
    const py::object error =
        py::module_::import("pccl.errors")
            .attr("error_of")(std::string(to_string(status.code())), status.message(),
                              status.peer(), status.process().host, status.process().pid, session);
    PyErr_SetObject(py::type::of(error).ptr(), error.ptr());
    throw py::error_already_set();
}

}  // namespace pccl::bindings
