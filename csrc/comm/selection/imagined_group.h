// SPDX-License-Identifier: Apache-2.0

// Choices of a hypothetical group.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "csrc/bootstrap/layout.h"
#include "csrc/collective/collective.h"
#include "csrc/collective/prediction.h"
#include "csrc/schedule/generators/generators.h"
#include "csrc/topo/job/job.h"

namespace pccl::comm {

struct ImaginedChoice {
    std::vector<Prediction> ways;  // as Communicator::explain() returns them
    bootstrap::LinksCountedOn counted_on;
};

/// Returns the algorithms of `catalogue` for a collective whose largest buffer has `bytes` bytes,
/// with the ranks placed on hosts by `job`, and with the algorithm that PCCL_ALGORITHM requests. It
/// assumes that ranks of one host share memory and read each other's memory directly, that each
/// rank has its own core, and that hosts use TCP. kInvalidArgument if the job's ranks are not
/// numbered from 0, or if a requested algorithm does not fit.
[[nodiscard]] PCCL_API Result<ImaginedChoice> explain(
    const topo::JobTopology& job, CollectiveKind kind, std::size_t bytes,
    std::shared_ptr<const schedule::Catalogue> catalogue = schedule::built_in());

}  // namespace pccl::comm
