// SPDX-License-Identifier: Apache-2.0

// Executors that run the collectives of a group, one at a time. They are created once, with the
// memory that they need.
#pragma once

#include <optional>

#include "csrc/comm/links/link_executor.h"
#include "csrc/comm/shm/shm_executor.h"

namespace pccl::comm {

struct Executors {
    LinkExecutor over_links;
    std::optional<ShmExecutor> over_shm;  // for a group that has a segment
};

}  // namespace pccl::comm
