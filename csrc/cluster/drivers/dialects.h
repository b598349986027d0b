// The makes of switches that there are.
#pragma once

#include <string>
#include <string_view>

#include "csrc/base/export.h"
#include "csrc/cluster/drivers/dialect.h"

namespace pccl::cluster {

/// Null for none of that name.
[[nodiscard]] PCCL_API const Dialect* find_dialect(std::string_view name);
/// "pccl, polatis, ..."
[[nodiscard]] PCCL_API std::string dialect_names(bool electrical);

}  // namespace pccl::cluster
