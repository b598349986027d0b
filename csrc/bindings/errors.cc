#include "csrc/bindings/errors.h"

#include <string>

namespace pccl::bindings {

namespace py = pybind11;

void throw_status(const Status& status) {
    const py::object error = py::module_::import("pccl.errors")
                                 .attr("error_of")(std::string(to_string(status.code())),
                                                   status.message(), status.peer());
    PyErr_SetObject(py::type::of(error).ptr(), error.ptr());
    throw py::error_already_set();
}

}  // namespace pccl::bindings
