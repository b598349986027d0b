// What the ranks of a group of GPUs must launch alike, in the few bits that every line carries
// (abi::Line).
#pragma once

#include <cstdint>
#include <span>

#include "csrc/comm/collective.h"
#include "csrc/comm/device/lowering.h"

namespace pccl::comm {

/// Of collectives that are called together, and how; as abi::DeviceTeam has it. Two calls that
/// differ have the same one time in 65536.
[[nodiscard]] PCCL_API std::uint32_t launch_fingerprint(std::span<const Collective> collectives,
                                                        const DeviceLaunch& wanted);

}  // namespace pccl::comm
