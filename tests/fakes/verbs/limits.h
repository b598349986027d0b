// SPDX-License-Identifier: Apache-2.0

// What a device can do at most, which ibv_query_device returns.
#pragma once

#include <cstdint>

namespace pccl::fake_verbs {

inline constexpr int kMaxRequests = 32768;
inline constexpr int kMaxSge = 30;
inline constexpr int kMaxCqe = 4194303;
inline constexpr int kMaxReads = 16;
inline constexpr uint32_t kMaxInline = 220;

}  // namespace pccl::fake_verbs
