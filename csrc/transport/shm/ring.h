// SPDX-License-Identifier: Apache-2.0

// Single-producer single-consumer byte rings in a memfd, one for each channel of a link.
//
// The memfd contains a header page and then the data of each ring. Every ring is mapped twice in a
// row, so that bytes are contiguous wherever they start. Pages are touched, and so allocated, only
// when used; the file has no name, and is gone when the last process that maps it is. Both ends
// distrust the counters of the other: an impossible value is an error, never an access out of
// bounds.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/base/unique_fd.h"
#include "csrc/transport/transport.h"

namespace pccl::transport::shm {

/// Returns the bytes of each ring between the `host_ranks` of a host, in a group of `group_size`:
/// its rings stay near 16 MiB together. A power of two from 16 KiB to 2 MiB; at least 64 KiB where
/// the group has ranks elsewhere, because one message to these must fit into rings, too.
/// PCCL_SHM_RING_BYTES overrides it (rounded down to a power of two).
[[nodiscard]] PCCL_API std::size_t ring_bytes(int host_ranks, int group_size);

/// Positions of a ring. They count bytes since the ring was made, and never wrap in practice
/// (2^64).
struct RingCounters {
    alignas(kCacheLine) std::atomic<std::uint64_t> tail;  // written by the producer
    alignas(kCacheLine) std::atomic<std::uint64_t> head;  // written by the consumer
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

class RingFile {
   public:
    /// Creates a file with kChannels rings of `bytes` each (a power of two of at least a page).
    static Result<std::unique_ptr<RingFile>> create(std::size_t bytes);
    /// Maps a peer's file, whose rings have the size that the peer chose. Invalid contents (an
    /// impossible size, not sealed) give kInvalidArgument; the caller reports kPeerLost.
    static Result<std::unique_ptr<RingFile>> map(UniqueFd memfd);
    ~RingFile();
    RingFile(const RingFile&) = delete;
    RingFile& operator=(const RingFile&) = delete;

    /// Returns the file for the peer; the caller may close it once it was sent.
    [[nodiscard]] UniqueFd& memfd() { return memfd_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] RingCounters& counters(ChannelId channel) {
        return counters_[static_cast<std::size_t>(channel)];
    }
    /// Returns 2 * bytes() bytes, whose second half maps the first again.
    [[nodiscard]] std::byte* data(ChannelId channel) const {
        return data_[static_cast<std::size_t>(channel)];
    }

   private:
    RingFile(UniqueFd memfd, std::size_t bytes) : memfd_(std::move(memfd)), bytes_(bytes) {}
    Status map_all();

    UniqueFd memfd_;
    std::size_t bytes_;
    RingCounters* counters_ = nullptr;
    std::array<std::byte*, kChannels> data_{};
};

}  // namespace pccl::transport::shm
