// SPDX-License-Identifier: Apache-2.0

// Registry of the dialects.
#pragma once

#include <string>
#include <string_view>

#include <pccl/export.h>
#include "csrc/cluster/drivers/dialect.h"

namespace pccl::cluster {

/// Returns null if there is no dialect of this name.
[[nodiscard]] PCCL_API const Dialect* find_dialect(std::string_view name);
/// Returns "pccl, polatis, ...".
[[nodiscard]] PCCL_API std::string dialect_names(bool electrical);

}  // namespace pccl::cluster
