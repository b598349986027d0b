// SPDX-License-Identifier: Apache-2.0

// One-sided access: a process reads and writes a peer's memory without a call of the peer's
// program.
//
//     auto mine = transport.add({.data = data, .bytes = bytes});  // peers may reach it now
//     send_somehow(serialise(mine->descriptor()));                // memory_descriptor.h
//
//     auto link = transport.connect(std::move(streams));    // both peers do this
//     link->post(RmaOp::kRead, pieces, ticket);             // takes a prefix
//     link->notify(notification);                           // the peer sees it after those
//     while (link->poll(completions) == 0)                  // moves bytes, returns completions
//         link->has_moved() ? backoff.reset() : backoff.pause();
//
// A link consists of one stream in each direction between authenticated peers (link.h). The streams
// carry notifications and show whether the peer is there. They also carry the data where nothing
// faster reaches the peer's memory.
//
// One thread at a time uses a link, nothing blocks, and errors of the link are sticky, as with
// streams. A fault of one piece or one registration is an error of that post alone.
//
// Correctness rule: a completion is ok only if the owner was there, and the registration was the
// same, AFTER the bytes had moved. So the bytes of a read are those that the owner published, and
// the owner's program can have seen the bytes of a write. An owner may end a registration, or
// itself, at any moment. After the registration has ended (the object is gone), the memory belongs
// to the owner alone: no read of later contents is ok, and nobody writes there any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <pccl/status.h>
#include "csrc/abi/memory.h"
#include "csrc/base/ids.h"
#include "csrc/transport/link.h"

namespace pccl::transport {

/// Memory of the caller, which stays valid while it is registered.
struct Memory {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    abi::MemoryKind kind = abi::MemoryKind::kHost;
    int device = -1;  // for kGpu
    /// The Mapping::shareable() file that contains the memory, which peers of this host can map:
    /// they then copy with no system call. -1: none.
    int file = -1;
    std::uint64_t file_offset = 0;
};

/// Identity of a registration in all transports and at all peers.
struct MemoryIdentity {
    std::uint64_t id = 0;
    std::uint64_t nonce = 0;  // random, never 0
};
/// Returns a random identity.
[[nodiscard]] PCCL_API Result<MemoryIdentity> fresh_identity();

/// Checks the arguments that every add() checks.
[[nodiscard]] Status check_memory(const Memory& memory, const MemoryIdentity& identity);
/// Returns a descriptor without keys.
[[nodiscard]] abi::MemoryDescriptor descriptor_of(const Memory& memory,
                                                  const MemoryIdentity& identity);

/// Peers' access to a memory, until the object ends. Its end waits for writes in progress, some
/// milliseconds at most. If a process was stopped or killed during a write, the end takes longer
/// and ensures that no late write reaches the memory (shm/ledger.h explains how, and the case of
/// GPUs): two seconds, or the time of make_private() for memory in a Mapping::shareable(), whose
/// pages it replaces.
class Registration {
   public:
    virtual ~Registration() = default;
    [[nodiscard]] virtual const Memory& memory() const = 0;
    /// Includes the key of the transport that made it, where that needs one.
    [[nodiscard]] virtual const abi::MemoryDescriptor& descriptor() const = 0;
};

using pccl::RmaOp;

/// Transfer of `bytes` bytes, possibly none, between local and remote memory. No alignment is
/// required.
struct RmaPiece {
    const Registration* local = nullptr;  // must live until the completion
    std::size_t at = 0;                   // offset in bytes
    const abi::MemoryDescriptor* remote = nullptr;
    std::size_t there = 0;  // offset in bytes
    std::size_t bytes = 0;
};

/// Pieces of one length between two memories, at offsets `stride_here` and `stride_there` apart.
/// There is at least one.
struct RmaRun {
    RmaPiece first;
    std::uint64_t stride_here = 0;  // from start to start
    std::uint64_t stride_there = 0;
    std::uint64_t count = 1;
};

using pccl::GpuCallerStream;

struct RmaCompletion {
    std::uint64_t ticket = 0;
    /// kUnavailable: the peer has ended the registration, or never made it. kUnsupported: the
    /// memory cannot be reached from here; the message has the reason. kPeerLost, kAborted: the
    /// link has failed, too. Unless the status is ok, the target bytes (for a write: while the
    /// registration lasts) are any mixture of old and new.
    Status status;
};

/// One-sided access to one peer, and service of the peer's requests to this process.
class RmaLink {
   public:
    /// Limit of one notification in bytes: 16 KiB of a program, with room for a header.
    static constexpr std::size_t kMostNotification = 16 * kKiB + 64;

    virtual ~RmaLink() = default;

    [[nodiscard]] virtual TransportKind kind() const = 0;
    /// Takes a prefix of `pieces`, and returns its length; 0 when the link is full: poll() makes
    /// room. There will be one completion with `ticket` for the taken pieces, if there are any.
    /// Posts complete in any order; call again to post the rest. kInvalidArgument where the first
    /// piece is out of bounds, kUnsupported where this transport does not move its kind of memory:
    /// these errors are not sticky, and a later piece of the kind ends the prefix.
    virtual Result<std::size_t> post(RmaOp op, std::span<const RmaPiece> pieces,
                                     std::uint64_t ticket) = 0;
    /// Posts the first pieces of a run, like post(), without a list.
    virtual Result<std::size_t> post_run(RmaOp op, const RmaRun& run, std::uint64_t ticket);
    /// Begins to read all pieces at once, from one remote to one local memory, both of GPUs. The
    /// copies run after the stream's earlier work and before its later work. There is one
    /// completion. The stream continues when the copies end, successful or not, and no notification
    /// waits for them. kUnsupported where copy engines of GPUs do not move the bytes all the way;
    /// errors as of post().
    virtual Status read_in_order(std::span<const RmaPiece> pieces, std::uint64_t ticket,
                                 const GpuCallerStream& order);
    /// Sends the peer a notification (1 to kMostNotification bytes), which arrives after all
    /// earlier posts are done. The notification is dropped if any of them fails and poll() had not
    /// reported that before this call: its bytes would not have come. Returns false when there is
    /// no room now.
    virtual Result<bool> notify(std::span<const std::byte> notification) = 0;
    /// Returns whether all notifications that notify() took have left, or were dropped: abort()
    /// drops the rest.
    [[nodiscard]] virtual bool is_flushed() const = 0;
    /// Makes progress on posts, a few MiB at most, and returns completions: one for each post, also
    /// when the link has failed. Returns the link's error after the last completion.
    virtual Result<std::size_t> poll(std::span<RmaCompletion> into) = 0;
    /// Makes progress on the peer's requests, a few MiB at most. poll() does so, too: a process
    /// that never polls must call this now and then, because peers may need its help.
    virtual Status advance() = 0;
    /// Returns whether the last poll() or advance() moved any bytes. If so, there may be more to do
    /// at once, and no ring announces it: the caller must not sleep.
    [[nodiscard]] virtual bool has_moved() const = 0;
    /// Returns whether copy engines of GPUs work for this link. No ring announces their end: the
    /// caller must poll often.
    [[nodiscard]] virtual bool awaits_copies() const { return false; }
    /// Returns the next notification of the peer, in the order of its notify(). A failed link first
    /// returns the notifications that had come, then its error.
    virtual Result<std::optional<std::vector<std::byte>>> next_notification() = 0;
    /// Returns the next notification that has arrived but is not yet delivered; each once. Delivery
    /// follows when local GPU memory holds the bytes that came before it, or never if that fails.
    virtual std::optional<std::vector<std::byte>> preview_notification() { return std::nullopt; }
    /// Returns why the peer is gone, as far as that shows; ok otherwise. Makes system calls.
    virtual Status look() = 0;
    /// Ends all pending work with `reason`, and sends it to the peer. Thread-safe.
    virtual void abort(const Status& reason) = 0;
};

/// Both directions of a connection to one peer.
struct RmaStreams {
    std::unique_ptr<SendLink> out;
    std::unique_ptr<RecvLink> in;
};
/// Channel of each stream.
inline constexpr ChannelId kRmaChannel = 0;

class RmaTransport {
   public:
    virtual ~RmaTransport() = default;

    /// Registers a memory. kInvalidArgument for memory of no bytes or no nonce, kUnsupported for a
    /// kind of memory that this transport does not reach, kResourceExhausted where there are too
    /// many. Thread-safe.
    virtual Result<std::unique_ptr<Registration>> add(const Memory& memory,
                                                      const MemoryIdentity& identity) = 0;
    /// Registers a memory with a fresh identity.
    Result<std::unique_ptr<Registration>> add(const Memory& memory);
    /// Returns whether links of connect() reach such memory of the process that made the
    /// descriptor: both processes check this before they choose a route. kUnsupported has the
    /// reason if not. A transport whose owners take part in each transfer reaches all.
    [[nodiscard]] virtual Status reaches(const abi::MemoryDescriptor& /*memory*/) const {
        return Status::ok();
    }
    /// Connects one-sided access to the peer at the other end, which must do the same. Both streams
    /// lead to it, and carry nothing else. kInvalidArgument for streams of a transport that this
    /// one cannot use. The link may outlive the transport, but not the Waiter of its streams.
    virtual Result<std::unique_ptr<RmaLink>> connect(RmaStreams streams) = 0;
};

}  // namespace pccl::transport
