// SPDX-License-Identifier: Apache-2.0

// Even distribution of ranks over cores.
//
// The kernel may leave three of four ranks on one of two cores: a rank that is alone on its core
// sleeps so often that its core counts as hardly loaded, while the others yield to each other and
// are never placed anew. Two ranks that sleep and wake each other may share one of two cores. A
// collective then takes three to twenty times as long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <pccl/types.h>
#include "csrc/base/ids.h"
#include "csrc/sys/host.h"

namespace pccl::comm {

/// Returns the core that rank `self` should move to; none where it should stay. `cores` has the
/// latest core of each rank, `allowed` the cores that `self` may run on. A rank moves only if its
/// core has at least two ranks more than the other, and of the ranks of one core only the last.
[[nodiscard]] std::optional<std::size_t> emptier_core(std::span<const std::uint32_t> cores,
                                                      Rank self, const sys::CoreSet& allowed);

/// Moves the calling thread to `core`; it may run on the same cores as before afterwards. Returns
/// false where the kernel refuses this.
bool move_to_core(std::size_t core);

}  // namespace pccl::comm
