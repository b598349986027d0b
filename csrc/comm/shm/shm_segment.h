// A shared-memory segment: where the ranks of a group that share a host put what they have for one
// another.
//
// Each rank owns an area of the group's region, which the others only read: two buffers for data,
// and for each buffer a header that describes it. A collective moves in rounds. In a round a rank
// writes a buffer, posts it, reads what the others posted, and then says so, which lets them write
// that buffer again two rounds later. So a rank publishes once what all others read, a small
// collective costs one round trip between caches, and nobody takes a lock. (Flags and slots in
// shared memory as in R. Graham and G. Shipman, "MPI Support for Multi-core Architectures", 2008.)
//
// Positions count rounds, collective by collective, the same on all ranks; a rank may skip rounds
// that hold nothing for anybody. One thread at a time may use a segment.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "csrc/abi/wire.h"
#include "csrc/base/clock.h"
#include "csrc/base/shared_copy.h"
#include "csrc/comm/shm/shm_algorithm.h"
#include "csrc/sys/host.h"
#include "csrc/sys/process_memory.h"
#include "csrc/transport/control/close_reason.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/region.h"

namespace pccl::comm {

/// The most ranks that a segment is made for.
inline constexpr int kMostShmRanks = 256;

/// A round of a collective, in order.
using Position = std::uint64_t;
inline constexpr std::uint64_t kRoundBits = 24;
/// Behind every round of its collective.
inline constexpr std::uint64_t kLastRound = (std::uint64_t{1} << kRoundBits) - 2;

[[nodiscard]] constexpr Position position_of(std::uint64_t sequence, std::uint64_t round) {
    return (sequence << kRoundBits) + round + 1;
}

/// Memory of a rank that one other rank may read directly, and its length for both to compare.
struct Piece {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
};

class ShmSegment {
   public:
    /// `region` may be completed later; open() sees to it.
    ShmSegment(std::unique_ptr<transport::Region> region, Rank self, int ranks);

    [[nodiscard]] int ranks() const { return ranks_; }
    [[nodiscard]] Rank self() const { return self_; }
    /// Bytes of data in one buffer of an area.
    [[nodiscard]] std::size_t buffer_bytes() const { return buffer_bytes_; }
    /// Bytes of each rank's part of it, where it is divided: whole cache lines.
    [[nodiscard]] std::size_t part_bytes() const {
        return buffer_bytes_ / static_cast<std::size_t>(ranks_) / kCacheLine * kCacheLine;
    }
    /// Whether every rank can read every other's memory directly. Known once open.
    [[nodiscard]] bool reads_directly() const { return reads_directly_; }
    /// Whether a rank that posts passes no barrier, so that those who wait must pass a
    /// sys::process_barrier() before they sleep. Known once open.
    [[nodiscard]] bool leaves_barriers_to_sleepers() const { return !posts_with_barrier_; }
    /// Whether the ranks outnumber the cores that they may run on. Known once open.
    [[nodiscard]] bool is_crowded() const { return crowd_.is_short_of_cores(); }
    /// The most that share one. Known once open.
    [[nodiscard]] int ranks_on_core() const { return crowd_.most_on_core(); }
    /// The ranks, and the cores that any of them may run on. Known once open.
    [[nodiscard]] transport::Crowd crowd() const { return crowd_; }

    /// Of the next collective on this segment.
    [[nodiscard]] std::uint64_t next_sequence() { return ++sequence_; }
    /// The rank that the latest call was waiting for, or kNoRank.
    [[nodiscard]] Rank awaited() const { return awaits_; }
    /// How often this rank has said for whom it waits. Ranks ring those whom they see waiting for
    /// them: who means to sleep must have looked once more since this grew.
    [[nodiscard]] std::uint64_t waits() const { return waits_; }

    /// Meets the others, without blocking: false until all are there. kPeerLost names who left.
    Result<bool> open();
    /// Why a rank of the group is gone; a system call for each.
    [[nodiscard]] Status look(Rank rank) const;
    [[nodiscard]] Status look_at_all() const;
    /// The same while the ranks meet: who has met them all, and was done with the group before this
    /// rank had, is no loss.
    [[nodiscard]] Status look_while_opening() const;
    /// What made the first rank leave that left because of a failure.
    [[nodiscard]] Status failure() const;
    /// kMismatch where a rank has given something in the latest collective that is not what `ours`
    /// says: who gives and takes nothing compares nothing while it runs.
    [[nodiscard]] Status compare_latest(const abi::CollectiveHeader& ours) const;
    /// Tells the others that this rank has left, and why: those who wait for it, or read its
    /// memory, end with that, and after a failure (any reason but kAborted) so do all who wait for
    /// anybody. To be called before any operation ends whose memory they may be reading.
    void leave(const Status& reason);

    // Writing. `at` must grow from call to call.

    /// Whether all have read what this rank posted two rounds before `at`.
    Result<bool> may_write(Position at);
    /// A slot for `parts` parts of `bytes` each, part i at i * stride() of it. Together they fit
    /// into a buffer. The slot moves on through the buffer from round to round: what has left the
    /// reader's own cache, of so many bytes, for the shared one is written faster than what has
    /// not.
    std::byte* make_slot(Position at, std::size_t parts, std::size_t bytes, std::size_t own_cache);
    /// Copies into a slot, or a part of one, that `reader` has read; this rank stands for all.
    void put(std::byte* slot, const std::byte* data, std::size_t bytes, Rank reader) {
        copies_[static_cast<std::size_t>(reader)].copy(slot, data, bytes);
    }
    [[nodiscard]] static std::size_t stride(std::size_t bytes) {
        return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
    }
    [[nodiscard]] std::span<Piece> own_pieces(Position at) const { return pieces(self_, at); }
    void set_header(Position at, const abi::CollectiveHeader& header);
    /// `reader` as in a Round: one, or each.
    void post(Position at, Rank reader);
    /// Whether all have read what was posted at `at`, the latest.
    Result<bool> is_read(Position at);

    // Reading.

    Result<bool> has_posted(Rank rank, Position at);
    [[nodiscard]] bool shows_posted(Rank rank, Position at) const;
    [[nodiscard]] const abi::CollectiveHeader& header(Rank rank, Position at) const;
    /// `bytes` of part `part` of what `rank` posted. kPeerLost where there is no such thing.
    Result<const std::byte*> part(Rank rank, Position at, Rank part, std::size_t bytes) const;
    [[nodiscard]] Piece piece(Rank rank, Position at, Rank reader) const {
        return pieces(rank, at)[static_cast<std::size_t>(reader)];
    }
    /// Copies memory that `rank` posted a piece of. Why `rank` has left, where it has: then its
    /// memory may have been in use for something else.
    [[nodiscard]] Status read_directly(Rank rank, std::uint64_t address,
                                       std::span<std::byte> into) const;
    /// This rank has read all that it reads up to `at`.
    void have_read(Position at);

   private:
    enum class OpenState : std::uint32_t { kAbsent, kAttached, kProbed };

    struct BufferState {
        alignas(kCacheLine) std::atomic<Position> posted;
        abi::CollectiveHeader header;  // of the collective that the latest round here is of
        std::uint64_t offset;          // of its data in the buffer
        std::uint64_t stride;          // from part to part
    };
    struct RankState {
        alignas(kCacheLine) std::atomic<Position> read;
        alignas(kCacheLine) std::atomic<OpenState> state;
        std::atomic<bool> has_left;
        std::uint64_t pid;
        sys::ProcessMark mark;
        sys::CoreSet cores;
        bool joins_barriers;
        bool reads_all;  // directly; said once kProbed, and still true of a rank that has left
    };
    struct RankArea {
        std::array<BufferState, 2> buffers;
        RankState progress;
        transport::CloseReason close_reason;  // written once, before has_left
    };
    /// The first page of the region.
    struct Front {
        // By rank: the rank that it sleeps for, plus one. Packed, for every post looks at all of
        // them.
        std::array<std::atomic<std::uint32_t>, kMostShmRanks> awaited;
        std::atomic<std::uint32_t>
            failed;  // the first rank that left because of a failure, plus one
    };
    /// The latest post in a buffer.
    struct Posted {
        Position at = 0;
        Rank reader = Round::kEach;
    };

    static std::size_t buffer_of(Position at) { return (at + (at >> kRoundBits)) & 1; }
    [[nodiscard]] RankArea& area(Rank rank) const;
    [[nodiscard]] BufferState& buffer_state(Rank rank, Position at) const {
        return area(rank).buffers[buffer_of(at)];
    }
    /// From buffer to buffer of an area: pieces, then data.
    [[nodiscard]] std::size_t buffer_stride() const {
        return (area_bytes_ - buffer_offset_) / 2 / kCacheLine * kCacheLine;
    }
    [[nodiscard]] std::span<Piece> pieces(Rank rank, Position at) const;
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
    /// Publishes a counter of this rank, and wakes those who sleep waiting for it.
    void publish(std::atomic<Position>& counter, Position at);
    void enter(OpenState state);
    Result<bool> is_read_by_all(const Posted& posted);
    [[nodiscard]] bool has_read(Rank rank, Position at);
    /// Wakes those who sleep waiting for this rank.
    void announce();
    [[nodiscard]] Status farewell_of(Rank rank) const;
    /// Nothing moves before `rank` does: false, or why it never will.
    Result<bool> blocked_by(Rank rank);
    void unblocked();

    const std::unique_ptr<transport::Region> region_;
    const Rank self_;
    const int ranks_;
    transport::Crowd crowd_;
    int spins_ = 0;
    std::size_t area_bytes_;
    std::size_t buffer_offset_;  // of the first buffer in an area
    std::size_t buffer_bytes_;
    std::array<Posted, 2> posted_{};
    std::array<std::size_t, 2> next_slot_{};  // in each buffer
    std::vector<Position> known_read_;        // by rank: at least so much
    std::vector<SharedCopy> copies_;          // by reader
    std::uint64_t mark_ = 0;                  // of this process
    std::uint64_t sequence_ = 0;
    OpenState state_ = OpenState::kAbsent;
    bool reads_directly_ = false;
    bool posts_with_barrier_ = true;
    Rank awaits_ = kNoRank;
    std::uint64_t waits_ = 0;
    int idle_ = 0;
    TimePoint looked_{};
};

}  // namespace pccl::comm
