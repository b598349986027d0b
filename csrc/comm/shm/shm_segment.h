// SPDX-License-Identifier: Apache-2.0

// Shared-memory segment, in which the ranks of a group on one host exchange data.
//
// Each rank owns an area of the group's region, which the others only read: two buffers for data,
// and for each buffer a header that describes it. A collective runs in rounds. In a round a rank
// writes a buffer, posts it, reads the others' posts, and then publishes that it has read them,
// which lets them reuse that buffer two rounds later. A rank thus publishes data for all readers
// once, a small collective costs one round trip between caches, and no lock is taken. (Flags and
// slots in shared memory as in R. Graham and G. Shipman, "MPI Support for Multi-core
// Architectures", 2008.)
//
// Positions count rounds over all collectives, equally on all ranks; a rank may skip rounds without
// data. Only one thread at a time may use a segment.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/abi/wire.h"
#include "csrc/base/ids.h"
#include "csrc/collective/shm_algorithm.h"
#include "csrc/sys/cpu/shared_copy.h"
#include "csrc/sys/host.h"
#include "csrc/sys/process_memory.h"
#include "csrc/transport/control/close_reason.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/region.h"

namespace pccl::comm {

/// Maximum number of ranks of a segment.
inline constexpr int kMostShmRanks = 256;

/// A round of a collective; positions are ordered.
using Position = std::uint64_t;
inline constexpr std::uint64_t kRoundBits = 24;
/// Number after every round of a collective.
inline constexpr std::uint64_t kLastRound = (std::uint64_t{1} << kRoundBits) - 2;

[[nodiscard]] constexpr Position position_of(std::uint64_t sequence, std::uint64_t round) {
    return (sequence << kRoundBits) + round + 1;
}

/// Memory of a rank that one other rank may read directly, with its length for a comparison.
struct ReadablePiece {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
};

class ShmSegment {
   public:
    /// Uses `region`, which may be completed later; open() waits for that.
    ShmSegment(std::unique_ptr<transport::Region> region, Rank self, int ranks);

    [[nodiscard]] int ranks() const { return ranks_; }
    [[nodiscard]] Rank self() const { return self_; }
    /// Returns the bytes of data in one buffer of an area.
    [[nodiscard]] std::size_t buffer_bytes() const { return buffer_bytes_; }
    /// Returns the bytes of each rank's part of a divided buffer: whole cache lines.
    [[nodiscard]] std::size_t part_bytes() const {
        return buffer_bytes_ / static_cast<std::size_t>(ranks_) / kCacheLine * kCacheLine;
    }
    /// Returns whether every rank can read every other rank's memory directly. Valid once open.
    [[nodiscard]] bool reads_directly() const { return reads_directly_; }
    /// Returns whether posts contain no memory barrier, so that waiting ranks must call
    /// sys::process_barrier() before they sleep. Valid once open.
    [[nodiscard]] bool leaves_barriers_to_sleepers() const { return !posts_with_barrier_; }
    /// Returns whether the ranks outnumber the cores that they may run on. Valid once open.
    [[nodiscard]] bool is_crowded() const { return crowd_.is_short_of_cores(); }
    /// Returns the maximum number of ranks that share a core. Valid once open.
    [[nodiscard]] int ranks_on_core() const { return crowd_.most_on_core(); }
    /// Returns the ranks, and the cores that any of them may run on. Valid once open.
    [[nodiscard]] transport::Crowd crowd() const { return crowd_; }

    /// Returns the number of the next collective on this segment.
    [[nodiscard]] std::uint64_t next_sequence() { return ++sequence_; }
    /// Returns the rank that the latest call was waiting for, or kNoRank.
    [[nodiscard]] Rank awaited() const { return awaits_; }
    /// Returns how often this rank has published the rank that it waits for. Ranks only wake
    /// published waiters: a thread must poll once more after this has changed, before it sleeps.
    [[nodiscard]] std::uint64_t waits() const { return waits_; }

    /// Makes progress with the setup, without blocking. Returns true once all ranks have opened the
    /// segment. kPeerLost names a rank that has left.
    Result<bool> open();
    /// Returns why a rank of the group is gone; costs a system call.
    [[nodiscard]] Status look(Rank rank) const;
    [[nodiscard]] Status look_at_all() const;
    /// Checks the same while the ranks open the segment: a rank that has met all others, and left
    /// the group before this rank has, is not lost.
    [[nodiscard]] Status look_while_opening() const;
    /// Returns the reason of the first rank that left because of a failure.
    [[nodiscard]] Status failure() const;
    /// Returns kMismatch if a rank has posted data in the latest collective that do not match
    /// `ours`. Ranks that neither give nor take data compare nothing during the collective.
    [[nodiscard]] Status compare_latest(const abi::CollectiveHeader& ours) const;
    /// Publishes that this rank has left, and why. Ranks that wait for it or read its memory end
    /// with that reason; after a failure (any reason but kAborted) all waiting ranks do. Call it
    /// before any operation ends whose memory they may be reading.
    void leave(const Status& reason);

    // Writing; `at` must grow from call to call:

    /// Returns whether all have read this rank's post of two rounds before `at`.
    Result<bool> may_write(Position at);
    /// Returns a slot for `parts` parts of `bytes` bytes each; part i is at offset i *
    /// stride(bytes). Together they must fit into a buffer. The slot moves on through the buffer
    /// from round to round, because memory that has left the reader's own cache (`own_cache` bytes)
    /// for the shared one is written faster.
    std::byte* make_slot(Position at, std::size_t parts, std::size_t bytes, std::size_t own_cache);
    /// Copies into a slot, or a part of one, that `reader` has read; this rank stands for all.
    void put(std::byte* slot, const std::byte* data, std::size_t bytes, Rank reader) {
        copies_[static_cast<std::size_t>(reader)].copy(slot, data, bytes);
    }
    [[nodiscard]] static std::size_t stride(std::size_t bytes) {
        return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
    }
    [[nodiscard]] std::span<ReadablePiece> own_pieces(Position at) const {
        return pieces(self_, at);
    }
    void set_header(Position at, const abi::CollectiveHeader& header);
    /// Posts the buffer. `reader` is one rank or each, as in a ShmRound.
    void post(Position at, Rank reader);
    /// Returns whether all have read the post at `at`, the latest.
    Result<bool> is_read(Position at);

    // Reading:

    Result<bool> has_posted(Rank rank, Position at);
    [[nodiscard]] bool shows_posted(Rank rank, Position at) const;
    [[nodiscard]] const abi::CollectiveHeader& header(Rank rank, Position at) const;
    /// Returns part `part` of the post of `rank`, `bytes` long. kPeerLost if its bounds are
    /// invalid.
    Result<const std::byte*> part(Rank rank, Position at, Rank part, std::size_t bytes) const;
    [[nodiscard]] ReadablePiece piece(Rank rank, Position at, Rank reader) const {
        return pieces(rank, at)[static_cast<std::size_t>(reader)];
    }
    /// Copies memory of which `rank` posted a piece. Returns an error if `rank` has left: its
    /// memory may have been reused.
    [[nodiscard]] Status read_directly(Rank rank, std::uint64_t address,
                                       std::span<std::byte> into) const;
    /// Publishes that this rank has read all posts up to `at`.
    void have_read(Position at);

   private:
    enum class OpenState : std::uint32_t { kAbsent, kAttached, kProbed };

    struct BufferState {
        alignas(kCacheLine) std::atomic<Position> posted;
        abi::CollectiveHeader header;  // of the collective of the latest round in this buffer
        std::uint64_t offset;          // of its data in the buffer
        std::uint64_t stride;          // between parts
    };
    struct RankState {
        alignas(kCacheLine) std::atomic<Position> read;
        alignas(kCacheLine) std::atomic<OpenState> state;
        std::atomic<bool> has_left;
        std::atomic<std::uint32_t> core;  // that it last waited on
        std::uint64_t pid;
        sys::ProcessMark mark;
        sys::CoreSet cores;
        bool joins_barriers;
        bool reads_all;  // directly; set with kProbed, and still valid after the rank has left
    };
    struct RankArea {
        std::array<BufferState, 2> buffers;
        RankState progress;
        transport::CloseReason close_reason;  // written once, before has_left
    };
    /// First page of the region.
    struct Front {
        // Indexed by rank: the rank that it sleeps for, plus one. Packed, because every post reads
        // all of them.
        std::array<std::atomic<std::uint32_t>, kMostShmRanks> awaited;
        std::atomic<std::uint32_t>
            failed;  // the first rank that left because of a failure, plus one
    };
    /// Latest post in a buffer.
    struct Posted {
        Position at = 0;
        Rank reader = ShmRound::kEach;
    };

    static std::size_t buffer_of(Position at) { return (at + (at >> kRoundBits)) & 1; }
    [[nodiscard]] RankArea& area(Rank rank) const;
    [[nodiscard]] BufferState& buffer_state(Rank rank, Position at) const {
        return area(rank).buffers[buffer_of(at)];
    }
    /// Returns the distance between the buffers of an area; each holds pieces, then data.
    [[nodiscard]] std::size_t buffer_stride() const {
        return (area_bytes_ - buffer_offset_) / 2 / kCacheLine * kCacheLine;
    }
    [[nodiscard]] std::span<ReadablePiece> pieces(Rank rank, Position at) const;
    [[nodiscard]] std::byte* data(Rank rank, Position at) const;
    [[nodiscard]] Front& front() const {
        return *reinterpret_cast<Front*>(region_->memory().data());
    }
    [[nodiscard]] std::atomic<std::uint32_t>& awaited_by(Rank rank) const {
        return front().awaited[static_cast<std::size_t>(rank)];
    }

    [[nodiscard]] bool has_reached(Rank rank, OpenState state) const {
        return area(rank).progress.state.load() >= state;
    }
    Result<bool> all_have_reached(OpenState state);
    [[nodiscard]] bool has_left(Rank rank) const { return area(rank).progress.has_left.load(); }
    [[nodiscard]] bool can_read_all() const;
    [[nodiscard]] Status read_process_of(Rank rank, std::uint64_t address,
                                         std::span<std::byte> into) const;
    [[nodiscard]] transport::Crowd count_cores() const;
    [[nodiscard]] bool all_join_barriers() const;
    [[nodiscard]] bool all_read_all() const;
    /// Publishes a counter of this rank, and wakes ranks that sleep waiting for it.
    void publish(std::atomic<Position>& counter, Position at);
    void set_state(OpenState state);
    Result<bool> is_read_by_all(const Posted& posted);
    [[nodiscard]] bool has_read(Rank rank, Position at);
    /// Wakes ranks that sleep waiting for this rank.
    void announce();
    [[nodiscard]] Status farewell_of(Rank rank) const;
    /// Records that progress depends on `rank`: returns false, or an error if it can never happen.
    Result<bool> blocked_by(Rank rank);
    void unblocked();
    /// Publishes this thread's core from time to time, and moves on where a core has too many
    /// ranks.
    void spread_over_cores();

    const std::unique_ptr<transport::Region> region_;
    const Rank self_;
    const int ranks_;
    transport::Crowd crowd_;
    int spins_ = 0;
    std::size_t area_bytes_;
    std::size_t buffer_offset_;  // offset of the first buffer in an area
    std::size_t buffer_bytes_;
    std::array<Posted, 2> posted_{};
    std::array<std::size_t, 2> next_slot_{};  // in each buffer
    std::vector<Position> known_read_;        // indexed by rank: lower bound of its read position
    std::vector<SharedCopy> copies_;          // indexed by reader
    std::uint64_t mark_ = 0;                  // random value that identifies this process
    std::uint64_t sequence_ = 0;
    OpenState state_ = OpenState::kAbsent;
    bool reads_directly_ = false;
    bool posts_with_barrier_ = true;
    Rank awaits_ = kNoRank;
    std::uint64_t waits_ = 0;
    int idle_ = 0;
    TimePoint looked_{};
    std::uint32_t core_looks_ = 0;
    TimePoint moved_{};
};

}  // namespace pccl::comm
