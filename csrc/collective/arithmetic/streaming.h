// Copying past the caches.
#pragma once

#include <cstddef>

namespace pccl::arithmetic {

/// memcpy that leaves nothing of dst in this core's cache and takes no lines of it out of another
/// core's: for memory that another core has read and will read again. What was written is visible
/// to whoever sees what this thread writes afterwards. Fastest where dst is aligned to cache lines.
void stream_bytes(std::byte* dst, const std::byte* src, std::size_t bytes);

}  // namespace pccl::arithmetic
