// SPDX-License-Identifier: Apache-2.0

// pccl._core: PCCL without torch.

#include <pybind11/pybind11.h>

#include "csrc/bindings/bind.h"

PYBIND11_MODULE(_core, bare) {
    pccl::extension::Module module(bare);
    pccl::bindings::bind_base(module);
    pccl::bindings::bind_event(module);
    pccl::bindings::bind_phases(module);
    pccl::bindings::bind_communicator(module);
    pccl::bindings::bind_memory(module);
    pccl::bindings::bind_operator(module);
    pccl::bindings::bind_device(module);
    pccl::bindings::bind_device_memory(module);
    pccl::bindings::bind_schedule(module);
    pccl::bindings::bind_topology(module);
    pccl::bindings::bind_job(module);
    pccl::bindings::bind_capsule(module);
    pccl::bindings::bind_p2p(module);
    pccl::bindings::bind_bare_socket(module);
    pccl::bindings::bind_store(module);
    pccl::bindings::bind_simulator(module);
}
