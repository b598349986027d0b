// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/rotation.h"

#include <algorithm>

namespace pccl::schedule {
namespace {

class Rotation {
   public:
    Rotation(const Shape& shape, Symmetry symmetry, Rank rank)
        : shape_(shape), symmetry_(symmetry), rank_(rank) {}

    [[nodiscard]] Program of(Program program) const {
        for (Lane& lane : program.lanes)
            for (Step& step : lane) {
                turn(step.from);
                turn(step.to);
                turn(step.src);
                turn(step.dst);
            }
        return program;
    }

   private:
    void turn(PeerPort& port) const {
        if (port.is_used()) port.peer = (port.peer + rank_) % shape_.ranks;
    }

    void turn(Slices& slices) const {
        Slices turned;
        for (const Slice& slice : slices) add_turned(turned, slice);
        slices = std::move(turned);
    }

    /// Adds a rotated slice; a slice that exceeds its buffer continues at the beginning.
    void add_turned(Slices& slices, const Slice& slice) const {
        if (slice.buffer == Buffer::kScratch) return slices.add(slice);
        const int blocks = pccl::schedule::blocks(shape_.kind, slice.buffer, shape_.ranks);
        const long long far = shift(blocks) * rank_;
        if (far == 0) return slices.add(slice);
        const long long size = static_cast<long long>(blocks) * shape_.chunks;
        const long long begin = (slice.offset + far) % size;
        const long long here = std::min<long long>(slice.count, size - begin);
        slices.add({slice.buffer, static_cast<int>(begin), static_cast<int>(here)});
        slices.add({slice.buffer, 0, slice.count - static_cast<int>(here)});
    }

    /// Returns the shift in chunks from one rank to the next.
    [[nodiscard]] long long shift(int blocks) const {
        if (blocks > 1) return shape_.chunks;
        const bool turns = symmetry_ == Symmetry::kRotatedChunks;
        return turns ? shape_.chunks / shape_.ranks : 0;
    }

    const Shape& shape_;
    Symmetry symmetry_;
    Rank rank_;
};

bool holds(const Schedule& schedule, Symmetry symmetry) {
    const Program& first = schedule.programs.front();
    for (Rank rank = 1; rank < schedule.shape.ranks; ++rank)
        if (rotated(first, schedule.shape, symmetry, rank) !=
            schedule.programs[static_cast<std::size_t>(rank)])
            return false;
    return true;
}

}  // namespace

std::string_view to_string(Symmetry symmetry) {
    switch (symmetry) {
        case Symmetry::kNone:
            return "a program for each rank";
        case Symmetry::kRotated:
            return "rank 0's, rotated";
        case Symmetry::kRotatedChunks:
            return "rank 0's, rotated with its chunks";
    }
    return "unknown";
}

Program rotated(const Program& first, const Shape& shape, Symmetry symmetry, Rank rank) {
    return Rotation(shape, symmetry, rank).of(first);
}

std::vector<Program> rotations(const Program& first, const Shape& shape, Symmetry symmetry) {
    std::vector<Program> programs;
    programs.reserve(static_cast<std::size_t>(shape.ranks));
    for (Rank rank = 0; rank < shape.ranks; ++rank)
        programs.push_back(rotated(first, shape, symmetry, rank));
    return programs;
}

Symmetry symmetry_of(const Schedule& schedule) {
    if (holds(schedule, Symmetry::kRotated)) return Symmetry::kRotated;
    if (schedule.shape.chunks % schedule.shape.ranks == 0 &&
        holds(schedule, Symmetry::kRotatedChunks))
        return Symmetry::kRotatedChunks;
    return Symmetry::kNone;
}

}  // namespace pccl::schedule
