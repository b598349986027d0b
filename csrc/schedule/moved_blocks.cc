// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/moved_blocks.h"

#include <algorithm>
#include <utility>

namespace pccl::schedule {
namespace {

/// Symbolic run of a program on the names of blocks.
class BlockWalk {
   public:
    BlockWalk(const Program& program, const Shape& shape, Rank rank)
        : program_(program),
          shape_(shape),
          rank_(rank),
          done_(program.lanes.size()),
          held_(static_cast<std::size_t>(program.scratch_chunks), rank) {
        for (const Lane& lane : program.lanes) moved_.emplace_back(lane.size());
    }

    std::vector<std::vector<MovedBlocks>> run() && {
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t lane = 0; lane < done_.size(); ++lane)
                for (; may_run(lane); ++done_[lane], moved = true) perform(lane, done_[lane]);
        }
        return std::move(moved_);
    }

   private:
    [[nodiscard]] bool may_run(std::size_t lane) const {
        const Lane& steps = program_.lanes[lane];
        return done_[lane] < steps.size() &&
               std::ranges::all_of(steps[done_[lane]].after, [this](const Dependency& after) {
                   return done_[static_cast<std::size_t>(after.lane)] >
                          static_cast<std::size_t>(after.step);
               });
    }

    void perform(std::size_t lane, std::size_t index) {
        const Step& step = program_.lanes[lane][index];
        MovedBlocks& blocks = moved_[lane][index];
        ChunkWalk read(step.src);
        ChunkWalk written(step.dst);
        while (read.has_next() || written.has_next()) {
            const Slice from = read.has_next() ? read.next() : Slice{};
            const Slice to = written.has_next() ? written.next() : Slice{};
            blocks.push_back(block_of(step, from, to));
            if (is_scratch(to)) held(to) = blocks.back();
        }
    }

    [[nodiscard]] static bool is_scratch(const Slice& chunk) {
        return chunk.count > 0 && chunk.buffer == Buffer::kScratch;
    }
    [[nodiscard]] static bool is_placed(const Slice& chunk) {
        return chunk.count > 0 && chunk.buffer != Buffer::kScratch;
    }
    [[nodiscard]] Rank& held(const Slice& chunk) {
        return held_[static_cast<std::size_t>(chunk.offset)];
    }

    /// Returns the owner of a chunk; the chunks of a one-block buffer belong to this rank.
    [[nodiscard]] Rank owner_of(const Slice& placed) const {
        return blocks(shape_.kind, placed.buffer, shape_.ranks) == 1
                   ? rank_
                   : placed.offset / shape_.chunks;
    }

    Rank block_of(const Step& step, const Slice& from, const Slice& to) {
        if (is_placed(from) && is_placed(to) && owner_of(from) != owner_of(to)) return kNoRank;
        if (is_placed(from)) return owner_of(from);
        if (is_placed(to)) return owner_of(to);
        if (is_scratch(from)) return held(from);
        const bool is_overwritten =
            step.action == Action::kRecv || step.action == Action::kRecvCopySend;
        return is_overwritten ? rank_ : held(to);
    }

    const Program& program_;
    const Shape& shape_;
    const Rank rank_;
    std::vector<std::size_t> done_;  // number of steps, by lane
    std::vector<Rank> held_;         // by chunk of scratch
    std::vector<std::vector<MovedBlocks>> moved_;
};

}  // namespace

std::vector<std::vector<MovedBlocks>> moved_blocks(const Program& program, const Shape& shape,
                                                   Rank rank) {
    if (!has_known_blocks(shape.kind)) return {};
    return BlockWalk(program, shape, rank).run();
}

}  // namespace pccl::schedule
