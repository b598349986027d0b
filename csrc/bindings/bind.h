// One function for each bind_*.cc.
#pragma once

#include "csrc/docstrings/documented.h"

namespace pccl::bindings {

void bind_base(docstrings::Module& module);
void bind_event(docstrings::Module& module);
void bind_communicator(docstrings::Module& module);
void bind_device(docstrings::Module& module);
void bind_schedule(docstrings::Module& module);
void bind_topology(docstrings::Module& module);
void bind_job(docstrings::Module& module);  // after bind_topology

}  // namespace pccl::bindings
