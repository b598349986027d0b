// What a group would choose that exists nowhere.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "csrc/bootstrap/links_counted_on.h"
#include "csrc/collective/collective.h"
#include "csrc/collective/prediction.h"
#include "csrc/schedule/generators/generators.h"
#include "csrc/topo/job/job.h"

namespace pccl::comm {

struct ImaginedChoice {
    std::vector<Prediction> ways;  // as Communicator::explain() gives them
    bootstrap::LinksCountedOn counted_on;
};

/// What `catalogue` has for a collective whose largest buffer has `bytes`, of ranks that lie on
/// hosts as `job` says, by the algorithm that PCCL_ALGORITHM wants. Ranks of one host share memory,
/// and read each other's directly; each has a core to itself; hosts reach each other over TCP.
/// kInvalidArgument where the job's ranks are not numbered from 0 on, or an algorithm is wanted
/// that does not fit.
[[nodiscard]] PCCL_API Result<ImaginedChoice> explain(
    const topo::JobTopology& job, CollectiveKind kind, std::size_t bytes,
    std::shared_ptr<const schedule::Catalogue> catalogue = schedule::built_in());

}  // namespace pccl::comm
