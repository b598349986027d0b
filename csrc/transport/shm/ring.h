// Single-producer single-consumer byte rings in a memfd, one for each channel of a link.
//
// The memfd holds a header page and then the data of each ring. Every ring is mapped twice in a
// row, so that bytes are contiguous wherever they start. Pages are touched, and so allocated, only
// when used; the file has no name, and is gone when the last process that maps it is. Both ends
// distrust the counters of the other: a value that cannot be is an error, never an access out of
// bounds.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/transport/transport.h"

namespace pccl::transport::shm {

/// Bytes of each ring between the `host_ranks` of a host, in a group of `group_size`: its rings
/// stay near 16 MiB together. A power of two from 16 KiB to 2 MiB; from 64 KiB on where the group
/// has ranks elsewhere, for what goes to these in one message must fit into rings, too. Unless
/// PCCL_SHM_RING_BYTES says otherwise (then rounded down to a power of two).
[[nodiscard]] PCCL_API std::size_t ring_bytes(int host_ranks, int group_size);

/// Positions count bytes since the ring was made; they never wrap in practice (2^64).
struct RingCounters {
    alignas(kCacheLine) std::atomic<std::uint64_t> tail;  // written by the producer
    alignas(kCacheLine) std::atomic<std::uint64_t> head;  // written by the consumer
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

class RingFile {
   public:
    /// A new file with kChannels rings of `bytes` each (a power of two of at least a page).
    static Result<std::unique_ptr<RingFile>> create(std::size_t bytes);
    /// Maps a peer's file, whose rings have the size that it chose. kPeerLost-worthy contents (no
    /// size that it could choose, not sealed) is kInvalidArgument here.
    static Result<std::unique_ptr<RingFile>> map(UniqueFd memfd);
    ~RingFile();
    RingFile(const RingFile&) = delete;
    RingFile& operator=(const RingFile&) = delete;

    /// For the peer; may be closed once it was sent.
    [[nodiscard]] UniqueFd& memfd() { return memfd_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] RingCounters& counters(ChannelId channel) {
        return counters_[static_cast<std::size_t>(channel)];
    }
    /// 2 * bytes() bytes, the second half being the first again.
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
