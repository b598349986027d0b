// Python's view of the backend: the class ProcessGroupPCCL and its Options.
#pragma once

#include "csrc/docstrings/documented.h"

namespace pccl::backend {

void bind_options(docstrings::Module& module);
void bind_backend(docstrings::Module& module);

}  // namespace pccl::backend
