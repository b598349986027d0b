// SPDX-License-Identifier: Apache-2.0

// Decision of a group about a collective: its transport, algorithm and cut.
#pragma once

#include <memory>

#include <pccl/deadline.h>
#include "csrc/abi/wire.h"
#include "csrc/collective/geometry.h"
#include "csrc/collective/shm_algorithm.h"
#include "csrc/comm/links/link_program.h"

namespace pccl::comm {

/// Equal on all ranks except for the program. The selector creates it and caches it for the next
/// equal call; the operation copies it and sets the number in its header.
struct Decision {
    abi::CollectiveHeader header{};
    std::shared_ptr<const LinkProgram> program{};  // null: over shared memory
    Cut cut{};                                     // windows of the program
    ShmPlan on_shm{};
    Duration predicted{};  // by the cost model; zero: there is no prediction

    [[nodiscard]] bool is_on_shm() const { return program == nullptr; }
};

}  // namespace pccl::comm
