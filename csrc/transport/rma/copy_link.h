// SPDX-License-Identifier: Apache-2.0

// Link whose initiator moves the bytes by itself: on the thread that polls it, or by a device (copy
// engines of GPUs, RDMA). The peer takes no part; the streams carry notifications alone. These
// leave before the bytes have moved where immediates announce the bytes (immediates.h).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/sys/process_memory.h"
#include "csrc/transport/rma.h"
#include "csrc/transport/rma/immediates.h"
#include "csrc/transport/rma/in_flight_copy.h"
#include "csrc/transport/rma/notifications.h"
#include "csrc/transport/rma/piece_queue.h"
#include "csrc/transport/rma/posts.h"
#include "csrc/transport/sticky_status.h"

namespace pccl::transport {

/// Registration of a peer.
class RmaPeerMemory {
   public:
    virtual ~RmaPeerMemory() = default;
    /// Returns whether the registration lasts, as far as this process can see.
    [[nodiscard]] virtual bool is_open() const = 0;
    [[nodiscard]] virtual bool is_of_gpu() const { return false; }
    /// Returns whether a device moves the bytes also between memories of hosts.
    [[nodiscard]] virtual bool is_moved_by_device() const { return is_of_gpu(); }
};

/// One copy: pieces of one registration, within it; their `there` counts from its start, and may be
/// changed. At most sys::kMostProcessPieces, a few MiB together.
struct RmaCopy {
    RmaOp op = RmaOp::kRead;
    std::span<sys::ProcessPiece> pieces;
    /// Together with the copies before and after it, it exceeds the caches.
    bool leaves_caches = false;
};

/// Local bytes that a copy link moves.
struct RmaPiecesHere {
    const Memory* memory = nullptr;
    std::span<sys::ProcessPiece> pieces;
    /// Stream whose order a read between memory of GPUs keeps. Null: none.
    const GpuCallerStream* order = nullptr;
};

/// Interface of a copy link to its kind of transport.
class RmaPeer : public RmaImmediates {
   public:
    /// Bytes between two checks of the registration: a fraction of a millisecond's work.
    static constexpr std::size_t kAtOnce = 4 * kMiB;

    /// Opens a peer's memory. An error applies to the pieces that need it.
    virtual Result<std::shared_ptr<RmaPeerMemory>> open(const abi::MemoryDescriptor& memory) = 0;
    virtual RmaCopied copy(RmaPeerMemory& memory, const RmaCopy& wanted) = 0;
    /// Makes progress on the peer's requests, where it has any. An error ends the link.
    virtual Status advance() { return Status::ok(); }

    // Copies by a device: one of the two sides is memory of a GPU, or is_moved_by_device():

    /// Returns the limit of one copy in flight, in bytes.
    [[nodiscard]] virtual std::size_t most_in_flight(const RmaPeerMemory& /*memory*/,
                                                     const Memory& /*here*/) const {
        return kAtOnce;
    }
    /// Begins a copy like copy(), of at most that many bytes, by the next post_begun() at the
    /// latest. Returns null if earlier copies in flight must land first.
    virtual std::unique_ptr<RmaInFlightCopy> begin(const std::shared_ptr<RmaPeerMemory>& memory,
                                                   RmaOp op, const RmaPiecesHere& here);
    /// Posts the copies that begin() has held back.
    virtual void post_begun() {}
    [[nodiscard]] virtual bool has_immediates() const { return false; }
    /// Does post_begun(), and posts immediates behind all copies that are not complete, where
    /// RmaInFlightCopy::precedes_immediates(). Returns none where there are no such copies, or no
    /// immediates can follow them now.
    virtual std::vector<RmaImmediate> post_immediates() { return {}; }
    /// Returns whether begin() keeps the order of RmaPiecesHere::order between memory of GPUs.
    [[nodiscard]] virtual bool keeps_stream_order() const { return true; }
    /// Returns whether an event ends this process's sleeps when such a copy ends.
    [[nodiscard]] virtual bool rings_at_end() const { return false; }
};

class PCCL_API RmaCopyLink final : public RmaLink {
   public:
    RmaCopyLink(RmaStreams streams, std::unique_ptr<RmaPeer> peer)
        : streams_(std::move(streams)), peer_(std::move(peer)) {}

    [[nodiscard]] TransportKind kind() const override { return streams_.out->kind(); }
    Result<std::size_t> post(RmaOp op, std::span<const RmaPiece> pieces,
                             std::uint64_t ticket) override;
    Status read_in_order(std::span<const RmaPiece> pieces, std::uint64_t ticket,
                         const GpuCallerStream& order) override;
    Result<bool> notify(std::span<const std::byte> notification) override;
    [[nodiscard]] bool is_flushed() const override { return notifications_out_.is_empty(); }
    Result<std::size_t> poll(std::span<RmaCompletion> into) override;
    Status advance() override;
    [[nodiscard]] bool has_moved() const override { return moved_; }
    [[nodiscard]] bool awaits_copies() const override {
        return (!in_flight_.empty() || !ordered_.is_empty()) && !peer_->rings_at_end();
    }
    Result<std::optional<std::vector<std::byte>>> next_notification() override;
    Status look() override;
    void abort(const Status& reason) override;

   private:
    using Name = std::pair<std::uint64_t, std::uint64_t>;  // of a registration: id and nonce
    /// Consecutive pieces of one post, between one local and one remote memory.
    struct Move {
        RmaPost* post;
        RmaOp op;
        const Registration* local;
        const Memory* here;  // memory of `local`
        Name there;
        std::shared_ptr<RmaPeerMemory> memory;
        Status failure;           // found by post(): nothing is moved
        std::size_t pieces = 0;   // pieces that wait
        std::uint64_t bytes = 0;  // total bytes

        [[nodiscard]] bool is_moved_by_device() const {
            return here->kind == abi::MemoryKind::kGpu ||
                   (memory != nullptr && memory->is_moved_by_device());
        }
        [[nodiscard]] bool takes(const RmaPost& next, const Registration& from,
                                 const Name& to) const {
            return post == &next && local == &from && there == to;
        }
    };
    /// Some pieces of a move.
    struct PostPart {
        RmaPost* post;
        std::size_t pieces;
    };
    /// Pieces from the front of the queue that go in one copy: `whole` complete ones, and the start
    /// of the next.
    struct Batch {
        std::size_t whole = 0;
        std::size_t begun = 0;  // bytes of the next piece
    };
    /// Batch that copy engines of GPUs move.
    struct InFlightBatch {
        std::unique_ptr<RmaInFlightCopy> copy;
        std::vector<PostPart> whole;
        RmaPost* begun = nullptr;  // post of a piece of which the batch contains a part, but not
                                   // the last
    };

    Move& move_of(RmaOp op, const RmaPiece& piece, RmaPost& post);
    Result<std::shared_ptr<RmaPeerMemory>> memory_of(const abi::MemoryDescriptor& remote);
    /// Copies the next bytes of the queue, all of one registration and direction.
    Status move_some();
    Status copy_some();
    void fail_all(const Status& status);
    void begin_copies();
    /// Begins copies that the peer may hold back until RmaPeer::post_begun().
    void begin_unposted();
    bool begin_copy();
    /// Begins the waiting copies, and posts immediates behind them. Returns none where the next
    /// notification has to wait for completions.
    std::vector<RmaImmediate> post_immediates();
    Status finish_copies();
    void finish_copy(const InFlightBatch& copy_in_flight, const Status& status);
    void drop_failed();
    [[nodiscard]] bool goes_with(const Move& move, const Move& first) const;
    Batch gather_batch(std::size_t room);
    [[nodiscard]] std::uint64_t most_together() const;
    void add_piece(const sys::ProcessPiece& piece);
    void shorten_first(std::size_t begun);
    /// Removes pieces of the first move from the queue, at most `most`.
    PostPart take_front(std::size_t most);
    void finish_first(std::size_t pieces, const Status& status);
    void finish_part(const PostPart& part, const Status& status);
    /// Drops entries of ended registrations: they may keep pages that the peer has given up.
    void forget_ended();
    [[nodiscard]] RmaProgress progress() const {
        return {.over = over_, .failed = posts_.failed()};
    }
    Status check() { return status_.is_set() ? status_.get() : Status::ok(); }

    RmaStreams streams_;
    const std::unique_ptr<RmaPeer> peer_;
    StickyStatus status_;
    RmaPosts posts_;
    RmaNotificationSender notifications_out_;
    RmaNotificationReceiver notifications_in_;
    std::deque<Move> moves_;
    PieceQueue waiting_;  // of the moves, in their order; `there` counts from the registration's
                          // start
    bool moved_ = false;
    std::uint64_t taken_ = 0;                // pieces taken, ever
    std::uint64_t over_ = 0;                 // pieces completed, ever
    std::vector<sys::ProcessPiece> pieces_;  // of a batch; kept to avoid allocations
    using Known = std::pair<const Name, std::shared_ptr<RmaPeerMemory>>;
    std::map<Name, std::shared_ptr<RmaPeerMemory>> known_;  // by id and nonce
    const Known* latest_ = nullptr;                         // in known_
    std::deque<InFlightBatch> in_flight_;                   // they land in their order
    RmaOrderedReads ordered_;
};

}  // namespace pccl::transport
