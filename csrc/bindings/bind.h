// One function for each bind_*.cc.
#pragma once

#include <pybind11/pybind11.h>

namespace pccl::bindings {

void bind_base(pybind11::module_& module);
void bind_event(pybind11::module_& module);
void bind_communicator(pybind11::module_& module);
void bind_device(pybind11::module_& module);
void bind_schedule(pybind11::module_& module);
void bind_topology(pybind11::module_& module);
void bind_job(pybind11::module_& module);  // after bind_topology

}  // namespace pccl::bindings
