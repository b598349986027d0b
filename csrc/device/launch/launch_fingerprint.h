// SPDX-License-Identifier: Apache-2.0

// Fingerprint of the properties that all ranks of a GPU group must launch alike, in the few bits of
// each line (abi::LLLine).
#pragma once

#include <cstdint>
#include <span>

#include "csrc/collective/collective.h"
#include "csrc/device/launch/lowering.h"

namespace pccl::device {

/// Returns the fingerprint of collectives that are called together, of the wanted launch, and of
/// the loaded schedules (LoadedSchedules::digest), in the format of abi::DeviceTeam. Two different
/// calls collide once in 65536.
[[nodiscard]] PCCL_API std::uint32_t launch_fingerprint(std::span<const Collective> collectives,
                                                        const DeviceLaunch& wanted,
                                                        std::uint64_t loaded = 0);

}  // namespace pccl::device
