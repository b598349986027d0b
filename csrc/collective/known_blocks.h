// The blocks of a collective whose lengths all ranks know.
#pragma once

#include <span>

#include "csrc/collective/collective.h"

namespace pccl {

/// Those of one side.
[[nodiscard]] constexpr std::span<const Block> known_blocks(const Collective& collective) {
    return collective.kind == CollectiveKind::kReduceScatter || collective.outputs.empty()
               ? collective.inputs
               : collective.outputs;
}

}  // namespace pccl
