// SPDX-License-Identifier: Apache-2.0

// Executor for shared memory: it runs one rank's part of a collective over shared memory without
// blocking.
//
// The schedules are the all-pairs ones of csrc/schedule (one_shot, two_shot), but data for all
// ranks are written once. Data pass in windows through the buffers of the segment. With kDirect
// they are read from the owner's memory; every rank then stays until its readers are done. An
// executor that has run a collective of the same size allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "csrc/abi/wire.h"
#include "csrc/collective/arithmetic/reduction.h"
#include "csrc/collective/awaited.h"
#include "csrc/collective/collective.h"
#include "csrc/collective/shm_algorithm.h"
#include "csrc/comm/shm/shm_segment.h"
#include "csrc/sys/cpu/parallel_work.h"

namespace pccl::comm {

class ShmExecutor {
   public:
    /// Keeps a reference to `segment`, which is open and must outlive it. Up to `helpers` threads
    /// of the process share long copies and reductions.
    ShmExecutor(ShmSegment& segment, int helpers);

    /// Starts a collective. `collective` and its blocks must stay valid until it is done.
    void start(const ShmPlan& plan, const abi::CollectiveHeader& header,
               const Collective& collective);

    /// Makes progress; sets `moved` if anything moved, and returns true when all is done.
    Result<bool> progress(bool& moved);

    /// Returns whether all data of this rank is posted, and its buffers may be reused.
    [[nodiscard]] bool is_flushed() const { return stage_ == ShmStage::kDone; }
    /// Returns the peers it waits for: "rank 2 (to send), rank 3 (to receive)".
    [[nodiscard]] AwaitedRanks awaited() const;

   private:
    enum class ShmStage : std::uint8_t { kPost, kConsume, kLinger, kDone };

    /// Returns false if it has to wait.
    Result<bool> step(bool& moved);
    Result<bool> post(bool& moved);
    void publish();
    void post_whole();
    void give_parts();
    void set_piece(Rank reader, std::span<std::byte> span);
    Result<bool> consume(bool& moved);
    Status check(Rank source) const;
    Status copy_from(Rank source);
    void copy_own();
    [[nodiscard]] bool copies_own_last() const;
    void copy_block(std::span<std::byte> to, const std::byte* from);
    Status reduce();
    Status reduce_directly();
    /// Reduces a part of this rank's data, in blocks of `block` bytes.
    Status reduce_part(std::span<std::byte> to, const sys::ParallelWork::Part& part,
                       std::size_t block);
    void begin_round();
    void end_round();

    [[nodiscard]] Position now() const { return position_of(sequence_, round_); }
    [[nodiscard]] bool goes_directly(std::size_t bytes) const;
    [[nodiscard]] std::size_t count_rounds() const;
    [[nodiscard]] std::size_t source_count() const;
    [[nodiscard]] Rank source(std::size_t index) const;
    [[nodiscard]] std::span<std::byte> window_of(const Block& block) const;
    [[nodiscard]] std::span<std::byte> part_of(const Block& block, Rank rank) const;
    [[nodiscard]] std::span<std::byte> outgoing(Rank reader) const;
    [[nodiscard]] std::span<std::byte> incoming(Rank giver) const;
    [[nodiscard]] std::span<std::byte> own_contribution() const;
    /// Returns the index of this rank's part in the data of `giver`.
    [[nodiscard]] Rank own_part(Rank giver) const;

    ShmSegment& segment_;
    ShmPlan plan_;
    abi::CollectiveHeader header_{};
    const Collective* collective_ = nullptr;
    std::size_t element_bytes_ = 1;
    arithmetic::Reduction reduction_;  // for collectives that reduce
    std::uint64_t sequence_ = 0;
    std::size_t rounds_ = 0;
    std::size_t round_ = 0;
    ShmRound doing_;
    ShmStage stage_ = ShmStage::kDone;
    std::size_t taken_ = 0;      // number of sources of this round that were ready
    bool lends_memory_ = false;  // others read this rank's own memory
    std::vector<const std::byte*> contributions_;  // of each worker
    std::vector<std::byte> scratch_;               // of each worker
    sys::ParallelWork reads_;                      // of other ranks' memory
    sys::ParallelWork copies_;                     // within this rank's memory
    sys::ParallelWork reductions_;
};

}  // namespace pccl::comm
