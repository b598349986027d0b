// SPDX-License-Identifier: Apache-2.0

// Names of protocols, as users read and write them.
#pragma once

#include <string_view>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/kernels/plan.h"

namespace pccl::device {

/// Returns "ll", "direct", "staggered", "copy_engine" or "ll128", as docs/reference/gpus.md
/// explains them.
[[nodiscard]] PCCL_API std::string_view name_of(kernels::Protocol protocol);

/// Returns the name by which ranks exchange a protocol. These names were formerly those of users.
[[nodiscard]] PCCL_API std::string_view wire_name_of(kernels::Protocol protocol);

/// Returns the protocol with that name, of either kind. kInvalidArgument lists the names for users.
[[nodiscard]] PCCL_API Result<kernels::Protocol> protocol_named(std::string_view name);

}  // namespace pccl::device
