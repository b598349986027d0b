// What the ranks of a group of GPUs must launch alike, in the few bits that every line carries
// (abi::LLLine).
#pragma once

#include <cstdint>
#include <span>

#include "csrc/collective/collective.h"
#include "csrc/device/launch/lowering.h"

namespace pccl::device {

/// Of collectives that are called together, how, and what is loaded (LoadedSchedules::digest); as
/// abi::DeviceTeam has it. Two calls that differ have the same one time in 65536.
[[nodiscard]] PCCL_API std::uint32_t launch_fingerprint(std::span<const Collective> collectives,
                                                        const DeviceLaunch& wanted,
                                                        std::uint64_t loaded = 0);

}  // namespace pccl::device
