// SPDX-License-Identifier: Apache-2.0

// Copies past the caches.
#pragma once

#include <cstddef>

#include <pccl/export.h>

namespace pccl {

/// Whether there is an implementation for this processor; otherwise it is memcpy.
#if defined(__SSE2__)
inline constexpr bool kStreamsPastCaches = true;
#else
inline constexpr bool kStreamsPastCaches = false;
#endif

/// Copies like memcpy, but leaves nothing of dst in this core's cache and takes no lines of dst out
/// of another core's: for memory that another core has read and will read again. A later store of
/// this thread publishes the copied bytes. It is fastest where dst is aligned to cache lines.
PCCL_API void stream_bytes(std::byte* dst, const std::byte* src, std::size_t bytes);

}  // namespace pccl
