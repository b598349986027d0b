// SPDX-License-Identifier: Apache-2.0

// Python bindings of the backend: the class ProcessGroupPCCL and its Options.
#pragma once

#include "csrc/extension/documented.h"

namespace pccl::backend {

void bind_options(extension::Module& module);
void bind_backend(extension::Module& module);

}  // namespace pccl::backend
