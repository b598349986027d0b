// SPDX-License-Identifier: Apache-2.0

// A source that follows orders, fixed to one order.
#pragma once

#include "csrc/schedule/source.h"

namespace pccl::schedule {

/// Returns a source with its own digest whose programs ignore the order passed to them. Requires a
/// source that follows orders. kInvalidArgument: `order` does not contain every rank exactly once.
[[nodiscard]] PCCL_API Result<SourcePtr> laid_along(const SourcePtr& source, RankOrder order);

}  // namespace pccl::schedule
