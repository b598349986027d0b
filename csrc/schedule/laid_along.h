// A source that follows orders, laid along one of them for good.
#pragma once

#include "csrc/schedule/source.h"

namespace pccl::schedule {

/// Has its own digest, and the same programs whatever order it is asked for. kInvalidArgument for
/// an order that does not have every rank once. Needs a source that follows orders.
[[nodiscard]] PCCL_API Result<SourcePtr> laid_along(const SourcePtr& source, RankOrder order);

}  // namespace pccl::schedule
