// One-sided access: a peer's memory is read and written without a call of its program.
//
//     auto mine = transport.add({.data = data, .bytes = bytes});  // peers may reach it now
//     send_somehow(serialise(mine->descriptor()));                // memory_descriptor.h
//
//     auto link = transport.connect(std::move(streams));    // both peers do this
//     link->post(RmaOp::kRead, pieces, ticket);             // as many as it takes now
//     link->notify(notification);                           // the peer sees it after those
//     while (link->poll(completions) == 0)                  // moves bytes, tells what is done
//         link->has_moved() ? backoff.reset() : backoff.pause();
//
// A link is made of a stream in each direction, whose peers have proven themselves to each other
// (link.h); these carry notifications and show whether the peer is there, and where nothing faster
// reaches its memory, the bytes as well.
//
// As with streams, one thread at a time uses a link, nothing blocks, and errors of the link stick.
// What is wrong with one piece or one registration is an error of that post alone.
//
// The rule. A completion is ok only if the owner was there, and the registration the same, AFTER
// the bytes had moved. So what a read brought is what the owner left there for it, and what a write
// brought, the owner's program can have seen. An owner may end a registration, or itself, at any
// moment; when the registration has ended (the object is gone), its memory is the owner's alone: no
// read of what comes later is ok, and nobody writes there any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "csrc/abi/memory.h"
#include "csrc/base/status.h"
#include "csrc/transport/link.h"

namespace pccl::transport {

/// Of the caller, who keeps it for as long as it is registered.
struct Memory {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    abi::MemoryKind kind = abi::MemoryKind::kHost;
    int device = -1;  // of kGpu
    /// Where it lies in a Mapping::shareable(), which peers of this host can map: then they copy
    /// with no system call. -1: elsewhere.
    int file = -1;
    std::uint64_t file_offset = 0;
};

/// What names a registration in all transports and at all peers.
struct MemoryIdentity {
    std::uint64_t id = 0;
    std::uint64_t nonce = 0;  // random, never 0
};
/// A random one.
[[nodiscard]] PCCL_API Result<MemoryIdentity> fresh_identity();

/// What every add() checks.
[[nodiscard]] Status check_memory(const Memory& memory, const MemoryIdentity& identity);
/// Without keys.
[[nodiscard]] abi::MemoryDescriptor descriptor_of(const Memory& memory,
                                                  const MemoryIdentity& identity);

/// Lets peers reach a memory, until it ends. Ending waits for writes under way, some milliseconds
/// at most. For a process that was stopped or killed in the middle of one it takes longer, and sees
/// to it that none reaches the memory when it goes on (shm/ledger.h says how, and what that does
/// for GPUs): two seconds, or for memory in a Mapping::shareable() what make_private() takes, whose
/// pages are other ones then.
class Registration {
   public:
    virtual ~Registration() = default;
    [[nodiscard]] virtual const Memory& memory() const = 0;
    /// With the key of the transport that made it, where that needs one.
    [[nodiscard]] virtual const abi::MemoryDescriptor& descriptor() const = 0;
};

enum class RmaOp : std::uint8_t { kRead, kWrite };

/// `bytes` from here to there, or from there to here; may be none. No alignment is asked for.
struct RmaPiece {
    const Registration* local = nullptr;  // until the completion
    std::size_t at = 0;                   // bytes from its begin
    const abi::MemoryDescriptor* remote = nullptr;
    std::size_t there = 0;  // bytes from its begin
    std::size_t bytes = 0;
};

/// Pieces of the same length between two memories, whose places lie `stride_here` and
/// `stride_there` apart. One at least.
struct RmaRun {
    RmaPiece first;
    std::uint64_t stride_here = 0;  // from begin to begin
    std::uint64_t stride_there = 0;
    std::uint64_t count = 1;
};

/// Of a GPU, and the library's caller.
struct GpuCallerStream {
    void* stream = nullptr;  // a CUstream; null: the default one
    int device = -1;
};

struct RmaCompletion {
    std::uint64_t ticket = 0;
    /// kUnavailable: the peer has ended the registration, or never made it. kUnsupported: it cannot
    /// be reached from here, and why. kPeerLost, kAborted: so does the link. Unless it is ok, the
    /// bytes here, or there while the registration lasts, are any mixture of old and new.
    Status status;
};

/// One-sided access to one peer, and what the peer's link asks of this process.
class RmaLink {
   public:
    /// Of one notification, in bytes: 16 KiB of a program, with room for a head.
    static constexpr std::size_t kMostNotification = 16 * kKiB + 64;

    virtual ~RmaLink() = default;

    [[nodiscard]] virtual TransportKind kind() const = 0;
    /// Takes a prefix of `pieces`, and returns how many; none when it holds enough: poll() makes
    /// room. If that is some, there will be one completion with `ticket` for these. Posts complete
    /// in any order; to post the rest, call again. kInvalidArgument where the first piece is out of
    /// bounds, kUnsupported where it is of a kind of memory that this transport does not move:
    /// these do not stick, and another piece of the kind ends the prefix.
    virtual Result<std::size_t> post(RmaOp op, std::span<const RmaPiece> pieces,
                                     std::uint64_t ticket) = 0;
    /// The same of pieces that need no list: of which it takes the first ones.
    virtual Result<std::size_t> post_run(RmaOp op, const RmaRun& run, std::uint64_t ticket);
    /// Begins to read all pieces, of one memory here and one there, both of GPUs, at once: behind
    /// what a stream has got, and ahead of what it gets from now on. There is one completion; the
    /// stream goes on when the copies end, well or not, and no notification waits for them.
    /// kUnsupported where the bytes do not go by engines of GPUs all the way; errors as of post().
    virtual Status read_in_order(std::span<const RmaPiece> pieces, std::uint64_t ticket,
                                 const GpuCallerStream& order);
    /// Sends the peer a notification (1 to kMostNotification bytes), which it sees after all that
    /// was posted before it is done. If any of that fails, and poll() had not told so before this
    /// call, the notification is dropped: it would speak of bytes that have not come. False when
    /// there is no room now.
    virtual Result<bool> notify(std::span<const std::byte> notification) = 0;
    /// Whether all notifications that notify() took have left, or were dropped: abort() drops the
    /// rest.
    [[nodiscard]] virtual bool is_flushed() const = 0;
    /// Goes on with what was posted, a few MiB at most, and tells what is complete: of each post
    /// once, also when the link has failed. Then, and only when there is nothing to tell, the
    /// link's error.
    virtual Result<std::size_t> poll(std::span<RmaCompletion> into) = 0;
    /// Goes on with what the peer asks for, a few MiB at most. poll() does so, too: a process that
    /// polls nothing must call this now and then, for peers may need its help.
    virtual Status advance() = 0;
    /// Whether the last poll() or advance() moved any bytes. If so, there may be more to do at
    /// once, and nobody rings: who waits must not sleep.
    [[nodiscard]] virtual bool has_moved() const = 0;
    /// Whether engines of GPUs are at work for it, and nobody rings when these are done: who waits
    /// must look often.
    [[nodiscard]] virtual bool awaits_copies() const { return false; }
    /// The next notification of the peer, in the order of its notify(). After the link has failed:
    /// what had come before, then the error.
    virtual Result<std::optional<std::vector<std::byte>>> next_notification() = 0;
    /// The next notification that has come, and is told once memory of GPUs here has what came
    /// before it, or never where that fails; each once.
    virtual std::optional<std::vector<std::byte>> preview_notification() { return std::nullopt; }
    /// Why the peer is gone, as far as that shows; ok where it does not. System calls.
    virtual Status look() = 0;
    /// Ends all that is under way with `reason`, and tells the peer. From any thread.
    virtual void abort(const Status& reason) = 0;
};

/// The two directions of a connection to one peer.
struct RmaStreams {
    std::unique_ptr<SendLink> out;
    std::unique_ptr<RecvLink> in;
};
/// Of each stream.
inline constexpr ChannelId kRmaChannel = 0;

class RmaTransport {
   public:
    virtual ~RmaTransport() = default;

    /// kInvalidArgument for memory of no bytes or no nonce, kUnsupported for a kind of memory that
    /// this transport does not reach, kResourceExhausted where there are too many. From any thread.
    virtual Result<std::unique_ptr<Registration>> add(const Memory& memory,
                                                      const MemoryIdentity& identity) = 0;
    /// With a fresh identity.
    Result<std::unique_ptr<Registration>> add(const Memory& memory);
    /// Whether links of connect() reach such memory of the process that made the descriptor: what
    /// two processes find out of each other before they choose a route; kUnsupported says why not.
    /// Where owners help, always.
    [[nodiscard]] virtual Status reaches(const abi::MemoryDescriptor& /*memory*/) const {
        return Status::ok();
    }
    /// One-sided access to the peer at the other end, which must do the same. Both streams go to
    /// it, and carry nothing else. kInvalidArgument for streams of a transport that this one cannot
    /// use. The link may outlive the transport, not the Waiter of its streams.
    virtual Result<std::unique_ptr<RmaLink>> connect(RmaStreams streams) = 0;
};

}  // namespace pccl::transport
