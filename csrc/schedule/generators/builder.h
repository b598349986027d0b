// SPDX-License-Identifier: Apache-2.0

// Helpers with which a generator reads like the paper that describes it.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

/// Rank for which a program is made, with the arithmetic of its position.
struct Member {
    Shape shape;
    Rank rank = 0;

    [[nodiscard]] int n() const { return shape.ranks; }
    [[nodiscard]] int chunks() const { return shape.chunks; }
    [[nodiscard]] bool is_root() const { return rank == shape.root; }

    /// Returns the rank `offset` places after this rank on the ring; -n < offset < n.
    [[nodiscard]] Rank at(int offset) const { return (rank + offset + n()) % n(); }
    /// Returns this rank's distance behind the root on the ring; 0 for the root.
    [[nodiscard]] int from_root() const { return (rank - shape.root + n()) % n(); }
    /// Returns the rank `position` places after the root.
    [[nodiscard]] Rank of_position(int position) const { return (position + shape.root) % n(); }

    /// Returns blocks [first, first + count) of a buffer.
    [[nodiscard]] Slice block(Buffer buffer, int first, int count = 1) const {
        return {buffer, first * chunks(), count * chunks()};
    }
};

/// Returns part `piece` of `pieces` equal parts of a one-block buffer: [piece / pieces, (piece + 1)
/// / pieces).
[[nodiscard]] inline Slice part(const Member& me, Buffer buffer, int piece, int pieces) {
    const int size = me.chunks() / pieces;
    return {buffer, piece * size, size};
}

[[nodiscard]] inline Slice one_chunk(Buffer buffer, int chunk) { return {buffer, chunk, 1}; }

/// Reserves scratch for `blocks` blocks behind the scratch reserved before.
inline Slice add_scratch_blocks(Program& program, const Member& me, int blocks) {
    const int count = blocks * me.chunks();
    const int offset = std::exchange(program.scratch_chunks, program.scratch_chunks + count);
    return {Buffer::kScratch, offset, count};
}

/// Reserves the scratch chunks that have the lengths of the chunks of `slice`, a slice of one
/// block.
inline Slice add_scratch_like(Program& program, Slice slice) {
    program.scratch_chunks = std::max(program.scratch_chunks, slice.offset + slice.count);
    return {Buffer::kScratch, slice.offset, slice.count};
}

/// Appends steps to one lane of `program`, which must outlive the builder. The lane is created with
/// its first step. Each call returns the place of its step, on which other steps can depend.
class LaneBuilder {
   public:
    explicit LaneBuilder(Program& program, ChannelId channel = 0)
        : program_(program), channel_(channel) {}

    /// Makes the next step wait for `step` of another lane.
    LaneBuilder& wait_for(Dependency step) {
        pending_.push_back(step);
        return *this;
    }
    LaneBuilder& wait_for(const std::vector<Dependency>& steps) {
        pending_.insert(pending_.end(), steps.begin(), steps.end());
        return *this;
    }

    Dependency copy(const Slices& src, const Slices& dst) {
        return add({.action = Action::kCopy, .src = src, .dst = dst});
    }
    Dependency reduce(const Slices& src, const Slices& dst) {
        return add({.action = Action::kReduce, .src = src, .dst = dst});
    }
    Dependency send(const Slices& src, Rank to) {
        return add({.action = Action::kSend, .src = src, .to = port(to)});
    }
    Dependency recv(Rank from, const Slices& dst) {
        return add({.action = Action::kRecv, .dst = dst, .from = port(from)});
    }
    Dependency recv_copy_send(Rank from, const Slices& dst, Rank to) {
        return add(
            {.action = Action::kRecvCopySend, .dst = dst, .from = port(from), .to = port(to)});
    }
    /// Appends dst = src (+) incoming.
    Dependency recv_reduce(Rank from, const Slices& src, const Slices& dst) {
        return add({.action = Action::kRecvReduce, .src = src, .dst = dst, .from = port(from)});
    }
    /// Appends dst = dst (+) incoming.
    Dependency recv_accumulate(Rank from, const Slices& dst) { return recv_reduce(from, {}, dst); }
    Dependency recv_reduce_send(Rank from, const Slices& src, Rank to) {
        return add(
            {.action = Action::kRecvReduceSend, .src = src, .from = port(from), .to = port(to)});
    }
    /// Appends dst = src (+) incoming, or dst (+) incoming if src is empty; sends the result.
    Dependency recv_reduce_copy_send(Rank from, const Slices& src, const Slices& dst, Rank to) {
        return add({.action = Action::kRecvReduceCopySend,
                    .src = src,
                    .dst = dst,
                    .from = port(from),
                    .to = port(to)});
    }

   private:
    [[nodiscard]] PeerPort port(Rank peer) const { return {peer, channel_}; }

    Dependency add(Step step) {
        if (lane_ < 0) {
            lane_ = static_cast<int>(program_.lanes.size());
            program_.lanes.emplace_back();
        }
        Lane& lane = program_.lanes[static_cast<std::size_t>(lane_)];
        step.after = std::exchange(pending_, {});
        lane.push_back(std::move(step));
        return {lane_, static_cast<int>(lane.size()) - 1};
    }

    Program& program_;
    ChannelId channel_;
    int lane_ = -1;
    std::vector<Dependency> pending_;
};

}  // namespace pccl::schedule
