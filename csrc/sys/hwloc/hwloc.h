// SPDX-License-Identifier: Apache-2.0

// Topology of this machine from hwloc. The library is opened at run time, so that one build works
// with and without it.
#pragma once

#include <string>

#include <pccl/status.h>

namespace pccl::sys {

inline constexpr const char* kHwlocLibrary = "libhwloc.so.15";

/// Returns hwloc's XML, version 2, with PCIe and OS devices. kUnavailable where the library is
/// missing or discovery fails.
[[nodiscard]] PCCL_API Result<std::string> read_hwloc(const char* library = kHwlocLibrary);

}  // namespace pccl::sys
