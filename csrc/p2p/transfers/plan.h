// SPDX-License-Identifier: Apache-2.0

// Pieces of a plan. Blocks that are adjacent on both sides are sent as one piece, a long block as
// several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <pccl/memory.h>
#include "csrc/transport/rma.h"

namespace pccl::p2p {

/// Position in a plan, or in a selection of its blocks.
struct PlanCursor {
    std::uint64_t block = 0;
    std::uint64_t bytes = 0;  // bytes of the block that are done
};

struct PlanStep {
    transport::RmaPiece piece;
    PlanCursor after;
};

/// Fills `steps` with the next pieces from `from` on, and returns their number; 0 at the end. The
/// pieces are those of the blocks `indices`, or of all blocks where that is empty.
std::size_t steps_from(const Plan& plan, PlanCursor from, std::span<const std::uint32_t> indices,
                       std::span<PlanStep> steps);
/// Returns all blocks from `from` on as one run, or nullopt where they need a list or are better
/// joined or cut.
[[nodiscard]] std::optional<transport::RmaRun> run_from(const Plan& plan, const PlanCursor& from);

}  // namespace pccl::p2p
