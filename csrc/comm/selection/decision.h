// What a group decides about a collective: what it goes over, and how much at a time.
#pragma once

#include <memory>

#include "csrc/abi/wire.h"
#include "csrc/collective/geometry.h"
#include "csrc/comm/links/link_program.h"
#include "csrc/comm/shm/shm_algorithm.h"

namespace pccl::comm {

/// The same on all ranks, but for what each does in the program. Made by the selector, which keeps
/// it for the next call alike; copied into the operation, which numbers its header.
struct Decision {
    abi::CollectiveHeader header{};
    std::shared_ptr<const LinkProgram> program{};  // null: over shared memory
    Cut cut{};                                     // of the program's windows
    ShmPlan on_shm{};

    [[nodiscard]] bool is_on_shm() const { return program == nullptr; }
};

}  // namespace pccl::comm
