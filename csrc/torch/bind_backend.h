// Python's view of the backend: the class ProcessGroupPCCL and its Options.
#pragma once

#include <pybind11/pybind11.h>

namespace pccl::backend {

void bind_options(pybind11::module_& module);
void bind_backend(pybind11::module_& module);

}  // namespace pccl::backend
