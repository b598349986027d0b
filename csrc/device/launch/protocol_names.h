// Protocols as users write and read them.
#pragma once

#include <string_view>

#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/kernels/plan.h"

namespace pccl::device {

/// "ll", "direct", "staggered", "copy_engine" or "ll128", as docs/gpus.md explains them.
[[nodiscard]] PCCL_API std::string_view name_of(kernels::Protocol protocol);

/// Returns the name by which ranks tell each other of a protocol. These were the names that users
/// wrote before.
[[nodiscard]] PCCL_API std::string_view wire_name_of(kernels::Protocol protocol);

/// Takes names of both kinds. kInvalidArgument lists those that users write.
[[nodiscard]] PCCL_API Result<kernels::Protocol> protocol_named(std::string_view name);

}  // namespace pccl::device
