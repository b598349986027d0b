// SPDX-License-Identifier: Apache-2.0

// The module pccl._torch; torch must be imported before.

#include <pybind11/pybind11.h>

#include "csrc/torch/bind_backend.h"
#include "csrc/torch/errors.h"

PYBIND11_MODULE(TORCH_EXTENSION_NAME, bare) {
    // The base classes are torch's.
    pybind11::module_::import("torch._C._distributed_c10d");
    pccl::backend::register_exception_translator();
    pccl::extension::Module module(bare);
    pccl::backend::bind_options(module);
    pccl::backend::bind_backend(module);
}
