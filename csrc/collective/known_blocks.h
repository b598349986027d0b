// SPDX-License-Identifier: Apache-2.0

// Blocks of a collective whose lengths all ranks have.
#pragma once

#include <span>

#include "csrc/collective/collective.h"

namespace pccl {

/// Returns the blocks of one side.
[[nodiscard]] constexpr std::span<const Block> known_blocks(const Collective& collective) {
    return collective.kind == CollectiveKind::kReduceScatter || collective.outputs.empty()
               ? collective.inputs
               : collective.outputs;
}

}  // namespace pccl
