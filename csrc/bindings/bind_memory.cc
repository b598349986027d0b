// Memory and Workspace: what Communicator.memory gives.

#include <pybind11/stl.h>

#include "csrc/bindings/bind.h"
#include "csrc/bindings/py_memory.h"

namespace pccl::bindings {

namespace py = pybind11;
using py::arg;

void bind_memory(extension::Module& module) {
    extension::Class<PyWorkspace>(module, "Workspace")
        .def_property_readonly("name", &PyWorkspace::name)
        .def_property_readonly("nbytes", &PyWorkspace::bytes)
        .def_property_readonly("local", &PyWorkspace::local)
        .def("peer", &PyWorkspace::peer, arg("rank"))
        .def("release", &PyWorkspace::release)
        .def("__enter__", [](py::object self) { return self; })
        .def(
            "__exit__",
            [](PyWorkspace& self, const py::object& /*type*/, const py::object& /*error*/,
               const py::object& /*traceback*/) { self.release(); },
            arg("type"), arg("error"), arg("traceback"))
        .def("__repr__", &PyWorkspace::described);
    extension::Class<PyMemory>(module, "Memory")
        .def("allocate", &PyMemory::allocate, arg("name"), arg("nbytes"), arg("device") = "cpu",
             py::kw_only(), arg("timeout") = py::none())
        .def_property_readonly("names", &PyMemory::names)
        .def("__repr__", &PyMemory::described);
}

}  // namespace pccl::bindings
