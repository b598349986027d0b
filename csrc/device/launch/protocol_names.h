// Protocols as users write and read them.
#pragma once

#include <string_view>

#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/kernels/plan.h"

namespace pccl::device {

/// "ll", "direct", "staggered", "copy_engine" or "ll128", as docs/gpus.md explains them.
[[nodiscard]] PCCL_API std::string_view name_of(kernels::Protocol protocol);

/// kInvalidArgument lists those that there are.
[[nodiscard]] PCCL_API Result<kernels::Protocol> protocol_named(std::string_view name);

}  // namespace pccl::device
