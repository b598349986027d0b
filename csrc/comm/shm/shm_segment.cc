// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/shm/shm_segment.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "csrc/base/assert.h"
#include "csrc/base/text/text.h"
#include "csrc/collective/fingerprint.h"
#include "csrc/comm/shm/core_spread.h"
#include "csrc/sys/cpu/relax.h"
#include "csrc/sys/crypto/sha256.h"
#include "csrc/sys/memory_barrier.h"

namespace pccl::comm {
namespace {

constexpr std::size_t kPage = 4096;
// If every rank has its own core, most actions of a peer take no longer than this number of polls;
// otherwise spinning keeps the core from the peer.
constexpr int kSpins = 64;
// Reading the clock costs more than polling a cache line, and a system call much more.
constexpr int kFreeLooks = 64;
constexpr Duration kBetweenLooks = std::chrono::milliseconds(20);
// Above this number of ranks, every post contains a barrier: process_barrier() of a sleeping rank
// would interrupt all of them.
constexpr int kMostInterrupted = 32;
// A move to another core costs about 20 us, and the kernel may reverse it.
constexpr std::uint32_t kLooksBetweenCores = 64;  // divides 2^32, as the number wraps
constexpr Duration kBetweenMoves = std::chrono::milliseconds(20);

}  // namespace

ShmSegment::ShmSegment(std::unique_ptr<transport::Region> region, Rank self, int ranks)
    : region_(std::move(region)),
      self_(self),
      ranks_(ranks),
      known_read_(static_cast<std::size_t>(ranks), 0),
      copies_(static_cast<std::size_t>(ranks)) {
    const std::size_t usable = region_->memory().size() - kPage;
    area_bytes_ = usable / static_cast<std::size_t>(ranks) / kPage * kPage;
    buffer_offset_ = stride(sizeof(RankArea));
    buffer_bytes_ =
        buffer_stride() - stride(static_cast<std::size_t>(ranks) * sizeof(ReadablePiece));
    static_assert(sizeof(Front) <= kPage);
    PCCL_ASSERT(ranks <= kMostShmRanks);
}

ShmSegment::RankArea& ShmSegment::area(Rank rank) const {
    return *reinterpret_cast<RankArea*>(region_->memory().data() + kPage +
                                        static_cast<std::size_t>(rank) * area_bytes_);
}

std::span<ReadablePiece> ShmSegment::pieces(Rank rank, Position at) const {
    auto* const first = reinterpret_cast<std::byte*>(&area(rank)) + buffer_offset_ +
                        buffer_of(at) * buffer_stride();
    return {reinterpret_cast<ReadablePiece*>(first), static_cast<std::size_t>(ranks_)};
}

std::byte* ShmSegment::data(Rank rank, Position at) const {
    const std::span<ReadablePiece> before = pieces(rank, at);
    return reinterpret_cast<std::byte*>(before.data()) + stride(before.size_bytes());
}

Result<bool> ShmSegment::open() {
    if (state_ == OpenState::kAbsent) {
        PCCL_ASSIGN_OR_RETURN(const bool complete, region_->is_complete());
        if (!complete) return false;
        PCCL_TRY(sys::fill_random({reinterpret_cast<std::uint8_t*>(&mark_), sizeof mark_}));
        RankState& progress = area(self_).progress;
        progress.pid = static_cast<std::uint64_t>(::getpid());
        progress.mark = {.address = reinterpret_cast<std::uint64_t>(&mark_), .value = mark_};
        progress.cores = sys::usable_cores();
        progress.core.store(static_cast<std::uint32_t>(sys::current_core()));
        progress.joins_barriers = sys::join_process_barriers();
        set_state(OpenState::kAttached);
    }
    if (state_ == OpenState::kAttached) {
        PCCL_ASSIGN_OR_RETURN(const bool all, all_have_reached(OpenState::kAttached));
        if (!all) return false;
        area(self_).progress.reads_all = can_read_all();
        set_state(OpenState::kProbed);
    }
    PCCL_ASSIGN_OR_RETURN(const bool all, all_have_reached(OpenState::kProbed));
    if (!all) return false;
    crowd_ = count_cores();
    spins_ = is_crowded() ? 0 : kSpins;
    // Ranks that share a core sleep frequently.
    posts_with_barrier_ = is_crowded() || ranks_ > kMostInterrupted || !all_join_barriers();
    reads_directly_ = all_read_all();
    return true;
}

void ShmSegment::set_state(OpenState state) {
    state_ = state;
    area(self_).progress.state.store(state);
    announce();
}

Result<bool> ShmSegment::all_have_reached(OpenState state) {
    for (Rank rank = 0; rank < ranks_; ++rank) {
        if (has_reached(rank, state)) continue;
        Result<bool> blocked = blocked_by(rank);
        // Actions before its departure still count.
        if (blocked.is_ok() || !has_reached(rank, state)) return blocked;
    }
    unblocked();
    return true;
}

bool ShmSegment::can_read_all() const {
    bool all = true;
    for (Rank rank = 0; rank < ranks_; ++rank) {
        const RankState& theirs = area(rank).progress;
        // A pid may refer to another process here (pid namespaces).
        all &= sys::read_process_pieces(static_cast<pid_t>(theirs.pid), theirs.mark, {}).is_ok();
    }
    return all;
}

bool ShmSegment::all_join_barriers() const {
    bool all = true;
    for (Rank rank = 0; rank < ranks_; ++rank) all &= area(rank).progress.joins_barriers;
    return all;
}

bool ShmSegment::all_read_all() const {
    bool all = true;
    for (Rank rank = 0; rank < ranks_; ++rank) all &= area(rank).progress.reads_all;
    return all;
}

transport::Crowd ShmSegment::count_cores() const {
    sys::CoreSet cores;
    for (Rank rank = 0; rank < ranks_; ++rank) cores |= area(rank).progress.cores;
    return {.processes = static_cast<std::uint32_t>(ranks_),
            .cores = static_cast<std::uint32_t>(std::max<std::size_t>(cores.count(), 1))};
}

void ShmSegment::leave(const Status& reason) {
    area(self_).close_reason = transport::close_reason_for(reason);
    area(self_).progress.has_left.store(true);
    // The fence precedes all later writes of this rank's callers to their memory: see
    // read_directly().
    std::atomic_thread_fence(std::memory_order_seq_cst);
    announce();
    std::uint32_t none = 0;
    if (reason.code() != StatusCode::kAborted)
        front().failed.compare_exchange_strong(none, static_cast<std::uint32_t>(self_) + 1);
    for (Rank rank = 0; rank < ranks_; ++rank)
        if (rank != self_ && awaited_by(rank).load() != 0) region_->ring(rank);
}

Status ShmSegment::farewell_of(Rank rank) const {
    return transport::why_gone(area(rank).close_reason,
                               {.self = self_, .leaver = rank, .ranks = ranks_});
}

Status ShmSegment::look(Rank rank) const {
    if (has_left(rank)) return farewell_of(rank);
    return region_->look(rank);
}

Status ShmSegment::failure() const {
    const std::uint32_t failed = front().failed.load();
    if (failed == 0 || failed > static_cast<std::uint32_t>(ranks_)) return Status::ok();
    return farewell_of(static_cast<Rank>(failed) - 1);
}

Status ShmSegment::compare_latest(const abi::CollectiveHeader& ours) const {
    const Position first = position_of(sequence_, 0);
    for (Rank rank = 0; rank < ranks_; ++rank) {
        const std::atomic<Position>& posted = buffer_state(rank, first).posted;
        const Position before = posted.load(std::memory_order_acquire);
        if (rank == self_ || before >> kRoundBits != sequence_) continue;
        const abi::CollectiveHeader theirs = header(rank, first);
        std::atomic_thread_fence(std::memory_order_acquire);
        // The rank may have continued meanwhile, and written the header of another collective.
        const bool is_whole = posted.load(std::memory_order_relaxed) >> kRoundBits == sequence_;
        if (!is_whole || theirs.sequence != ours.sequence) continue;
        PCCL_TRY(compare(ours, theirs, {self_, rank}));
    }
    return Status::ok();
}

Status ShmSegment::look_at_all() const {
    for (Rank rank = 0; rank < ranks_; ++rank)
        if (rank != self_) PCCL_TRY(look(rank));
    return Status::ok();
}

Status ShmSegment::look_while_opening() const {
    const auto is_done = [this](Rank rank) {
        constexpr auto kDone = static_cast<std::uint32_t>(StatusCode::kAborted);
        return has_left(rank) && has_reached(rank, OpenState::kProbed) &&
               area(rank).close_reason.code == kDone;
    };
    for (Rank rank = 0; rank < ranks_; ++rank) {
        if (rank == self_) continue;
        const Status gone = look(rank);
        if (!gone.is_ok() && !is_done(rank)) return gone;
    }
    return Status::ok();
}

void ShmSegment::announce() {
    // This rank stores its counter and then reads which ranks wait; a waiting rank publishes its
    // wait and then reads the counter. With a barrier between the two steps on both sides, at least
    // one rank sees the other's store.
    const auto own = static_cast<std::uint32_t>(self_) + 1;
    for (Rank rank = 0; rank < ranks_; ++rank)
        if (awaited_by(rank).load(std::memory_order_seq_cst) == own) region_->ring(rank);
}

Result<bool> ShmSegment::blocked_by(Rank rank) {
    if (awaits_ != rank) {
        awaits_ = rank;
        ++waits_;
        awaited_by(self_).store(static_cast<std::uint32_t>(rank) + 1, std::memory_order_seq_cst);
    }
    if (has_left(rank)) return farewell_of(rank);
    PCCL_TRY(failure());
    spread_over_cores();
    if (++idle_ < kFreeLooks) return false;
    const TimePoint now = system_clock().now();
    if (now - looked_ < kBetweenLooks) return false;
    looked_ = now;
    PCCL_TRY(region_->look(rank));
    return false;
}

void ShmSegment::spread_over_cores() {
    if (++core_looks_ % kLooksBetweenCores != 0) return;
    area(self_).progress.core.store(static_cast<std::uint32_t>(sys::current_core()),
                                    std::memory_order_relaxed);
    const TimePoint now = system_clock().now();
    if (now - moved_ < kBetweenMoves) return;
    std::array<std::uint32_t, kMostShmRanks> cores{};
    for (Rank rank = 0; rank < ranks_; ++rank)
        cores[static_cast<std::size_t>(rank)] =
            area(rank).progress.core.load(std::memory_order_relaxed);
    moved_ = now;
    const auto core = emptier_core(std::span(cores).first(static_cast<std::size_t>(ranks_)), self_,
                                   sys::usable_cores());
    if (core && move_to_core(*core))
        area(self_).progress.core.store(static_cast<std::uint32_t>(*core),
                                        std::memory_order_relaxed);
}

void ShmSegment::unblocked() {
    idle_ = 0;
    if (awaits_ == kNoRank) return;
    awaits_ = kNoRank;
    awaited_by(self_).store(0, std::memory_order_relaxed);
}

Result<bool> ShmSegment::may_write(Position at) { return is_read_by_all(posted_[buffer_of(at)]); }

Result<bool> ShmSegment::is_read(Position at) { return is_read_by_all(posted_[buffer_of(at)]); }

Result<bool> ShmSegment::is_read_by_all(const Posted& posted) {
    if (posted.at == 0) return true;
    for (Rank rank = 0; rank < ranks_; ++rank) {
        if (rank == self_ || (posted.reader != ShmRound::kEach && posted.reader != rank)) continue;
        if (has_read(rank, posted.at)) continue;
        Result<bool> blocked = blocked_by(rank);
        // Actions before its departure still count.
        if (blocked.is_ok() || !has_read(rank, posted.at)) return blocked;
    }
    unblocked();
    return true;
}

bool ShmSegment::has_read(Rank rank, Position at) {
    Position& known = known_read_[static_cast<std::size_t>(rank)];
    if (known >= at) return true;
    const auto& read = area(rank).progress.read;
    for (int spin = 0;; ++spin) {
        known = read.load(std::memory_order_seq_cst);
        if (known >= at) return true;
        if (spin == spins_) return false;
        relax();
    }
}

void ShmSegment::set_header(Position at, const abi::CollectiveHeader& header) {
    buffer_state(self_, at).header = header;
}

std::byte* ShmSegment::make_slot(Position at, std::size_t parts, std::size_t bytes,
                                 std::size_t own_cache) {
    const std::size_t all = parts * stride(bytes);
    PCCL_ASSERT(all <= buffer_bytes_);
    std::size_t& next = next_slot_[buffer_of(at)];
    if (next + all > std::min(buffer_bytes_, bytes_in_turn(all, own_cache))) next = 0;
    buffer_state(self_, at).offset = next;
    buffer_state(self_, at).stride = stride(bytes);
    return data(self_, at) + std::exchange(next, next + all);
}

Result<const std::byte*> ShmSegment::part(Rank rank, Position at, Rank part,
                                          std::size_t bytes) const {
    const BufferState& theirs = buffer_state(rank, at);
    const std::uint64_t offset = theirs.offset;
    const std::uint64_t step = theirs.stride;
    const bool fits = offset <= buffer_bytes_ && step <= buffer_bytes_ &&
                      offset + static_cast<std::uint64_t>(part) * step + bytes <= buffer_bytes_;
    if (fits) return data(rank, at) + offset + static_cast<std::uint64_t>(part) * step;
    return Status::peer_lost(rank, concat("rank ", rank, " posted data beyond its memory"));
}

void ShmSegment::post(Position at, Rank reader) {
    posted_[buffer_of(at)] = {at, reader};
    publish(buffer_state(self_, at).posted, at);
}

void ShmSegment::publish(std::atomic<Position>& counter, Position at) {
    if (posts_with_barrier_) {
        counter.store(at, std::memory_order_seq_cst);
    } else {
        counter.store(at, std::memory_order_release);
        // The sleeping rank provides the barrier; only the compiler must keep the order here.
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    announce();
}

Result<bool> ShmSegment::has_posted(Rank rank, Position at) {
    for (int spin = 0; !shows_posted(rank, at); ++spin) {
        if (spin < spins_) {
            relax();
            continue;
        }
        Result<bool> blocked = blocked_by(rank);
        // Actions before its departure still count.
        if (blocked.is_ok() || !shows_posted(rank, at)) return blocked;
    }
    unblocked();
    // A rank posts a round only after it has read the previous one.
    Position& known = known_read_[static_cast<std::size_t>(rank)];
    known = std::max(known, at - 1);
    return true;
}

bool ShmSegment::shows_posted(Rank rank, Position at) const {
    return buffer_state(rank, at).posted.load(std::memory_order_seq_cst) >= at;
}

const abi::CollectiveHeader& ShmSegment::header(Rank rank, Position at) const {
    return buffer_state(rank, at).header;
}

/// Reads memory of a process. Reading its mark costs as much as the read itself, so the mark is
/// checked only if the process shows no sign of life.
Status ShmSegment::read_process_of(Rank rank, std::uint64_t address,
                                   std::span<std::byte> into) const {
    const RankState& theirs = area(rank).progress;
    const auto pid = static_cast<pid_t>(theirs.pid);
    if (!region_->is_process_alive(rank))
        return sys::read_process_memory(pid, theirs.mark, address, into);
    PCCL_TRY(sys::read_living_process(pid, address, into));
    if (region_->is_process_alive(rank)) return Status::ok();
    return sys::read_process_pieces(pid, theirs.mark, {});
}

Status ShmSegment::read_directly(Rank rank, std::uint64_t address,
                                 std::span<std::byte> into) const {
    Status read = read_process_of(rank, address, into);
    // A read that returns data written after leave() also finds here that the rank has left.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (read.is_ok() && !has_left(rank)) return read;
    PCCL_TRY(look(rank));
    return Status::peer_lost(rank, concat("rank ", rank, ": ", read.message()));
}

void ShmSegment::have_read(Position at) { publish(area(self_).progress.read, at); }

}  // namespace pccl::comm
