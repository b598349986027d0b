// Copying past the caches.
#pragma once

#include <cstddef>

#include "csrc/base/export.h"

namespace pccl {

/// Whether this processor's instructions are known for it; else it is memcpy.
#if defined(__SSE2__)
inline constexpr bool kStreamsPastCaches = true;
#else
inline constexpr bool kStreamsPastCaches = false;
#endif

/// memcpy that leaves nothing of dst in this core's cache and takes no lines of it out of another
/// core's: for memory that another core has read and will read again. What was written is visible
/// to whoever sees what this thread writes afterwards. Fastest where dst is aligned to cache lines.
PCCL_API void stream_bytes(std::byte* dst, const std::byte* src, std::size_t bytes);

}  // namespace pccl
