// SPDX-License-Identifier: Apache-2.0

// Binding functions, one for each bind_*.cc.
#pragma once

#include "csrc/extension/documented.h"

namespace pccl::bindings {

void bind_event(extension::Module& module);
void bind_phases(extension::Module& module);
void bind_communicator(extension::Module& module);
void bind_memory(extension::Module& module);
void bind_operator(extension::Module& module);
void bind_device(extension::Module& module);
void bind_device_memory(extension::Module& module);
void bind_schedule(extension::Module& module);
void bind_topology(extension::Module& module);
void bind_job(extension::Module& module);  // call after bind_topology()
void bind_capsule(extension::Module& module);
void bind_p2p(extension::Module& module);
void bind_p2p_transfer(extension::Module& module);
void bind_bare_socket(extension::Module& module);
void bind_net_plugin(extension::Module& module);
void bind_rdma(extension::Module& module);
void bind_store(extension::Module& module);
void bind_simulator(extension::Module& module);  // call after bind_capsule()

}  // namespace pccl::bindings
