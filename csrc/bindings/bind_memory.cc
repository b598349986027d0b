// SPDX-License-Identifier: Apache-2.0

// Bindings of Memory, Workspace and GpuWorkspace, for Communicator.memory.

#include <pybind11/stl.h>

#include "csrc/bindings/bind.h"
#include "csrc/bindings/py_gpu_workspace.h"
#include "csrc/bindings/py_memory.h"

namespace pccl::bindings {

namespace py = pybind11;
using py::arg;

namespace {

/// Binds the common members of workspaces.
template <typename Workspace>
extension::Class<Workspace> bind_workspace(extension::Module& module, const char* name) {
    extension::Class<Workspace> bound(module, name);
    bound.def_property_readonly("name", &Workspace::name)
        .def_property_readonly("nbytes", &Workspace::bytes)
        .def_property_readonly("local", &Workspace::local)
        .def("peer", &Workspace::peer, arg("rank"))
        .def("release", &Workspace::release)
        .def("__enter__", [](py::object self) { return self; })
        .def(
            "__exit__",
            [](Workspace& self, const py::object& /*type*/, const py::object& /*error*/,
               const py::object& /*traceback*/) { self.release(); },
            arg("type"), arg("error"), arg("traceback"))
        .def("__repr__", &Workspace::described);
    return bound;
}

void bind_gpu_memory(extension::Module& module) {
    extension::Class<PyGpuMemory>(module, "GpuMemory")
        .def_property_readonly("address", &PyGpuMemory::address)
        .def_property_readonly("nbytes", &PyGpuMemory::bytes)
        .def_property_readonly("__cuda_array_interface__", &PyGpuMemory::interface)
        .def(
            "__dlpack__",
            [](const PyGpuMemory& self, const py::object& /*stream*/,
               const py::object& /*max_version*/, const py::object& /*dl_device*/,
               const py::object& /*copy*/) { return self.tensor(); },
            py::kw_only(), arg("stream") = py::none(), arg("max_version") = py::none(),
            arg("dl_device") = py::none(), arg("copy") = py::none())
        .def("__dlpack_device__", &PyGpuMemory::dlpack_device)
        .def("__repr__", &PyGpuMemory::described);
    bind_workspace<PyGpuWorkspace>(module, "GpuWorkspace")
        .def_property_readonly("device", &PyGpuWorkspace::device);
}

}  // namespace

void bind_memory(extension::Module& module) {
    bind_workspace<PyWorkspace>(module, "Workspace");
    bind_gpu_memory(module);
    extension::Class<PyMemory>(module, "Memory")
        .def("allocate", &PyMemory::allocate, arg("name"), arg("nbytes"), arg("device") = "cpu",
             py::kw_only(), arg("timeout") = py::none())
        .def_property_readonly("names", &PyMemory::names)
        .def("__repr__", &PyMemory::described);
}

}  // namespace pccl::bindings
