// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/verifier/memory_map.h"

#include <algorithm>

namespace pccl::schedule {

MemoryMap::MemoryMap(const Schedule& schedule, Placement placement)
    : schedule_(schedule),
      in_place_(placement == Placement::kInPlace),
      input_chunks_(blocks(schedule.shape.kind, Buffer::kInput, schedule.shape.ranks) *
                    schedule.shape.chunks),
      output_chunks_(blocks(schedule.shape.kind, Buffer::kOutput, schedule.shape.ranks) *
                     schedule.shape.chunks) {
    begin_.reserve(schedule.programs.size() + 1);
    begin_.push_back(0);
    const int buffers =
        in_place_ ? std::max(input_chunks_, output_chunks_) : input_chunks_ + output_chunks_;
    for (const Program& program : schedule.programs) {
        begin_.push_back(begin_.back() + buffers + program.scratch_chunks);
    }
}

int MemoryMap::chunks(Rank rank, Buffer buffer) const {
    switch (buffer) {
        case Buffer::kInput:
            return input_chunks_;
        case Buffer::kOutput:
            return output_chunks_;
        case Buffer::kScratch:
            return schedule_.programs[static_cast<std::size_t>(rank)].scratch_chunks;
    }
    return 0;
}

bool MemoryMap::is_root_only(Buffer buffer) const {
    const CollectiveKind kind = schedule_.shape.kind;
    if (buffer == Buffer::kInput) {
        return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kScatter;
    }
    return buffer == Buffer::kOutput &&
           (kind == CollectiveKind::kReduce || kind == CollectiveKind::kGather);
}

bool MemoryMap::exists(Rank rank, Buffer buffer) const {
    return rank == schedule_.shape.root || !is_root_only(buffer);
}

bool MemoryMap::may_write(Rank rank, const Slice& slice) const {
    if (slice.buffer != Buffer::kInput) return true;
    if (!in_place_ || !exists(rank, Buffer::kOutput)) return false;
    if (input_chunks_ <= output_chunks_) return true;
    const int own = rank * schedule_.shape.chunks;
    return slice.offset >= own && slice.offset + slice.count <= own + output_chunks_;
}

int MemoryMap::place(Rank rank, const Slice& slice) const {
    const int begin = begin_[static_cast<std::size_t>(rank)];
    const int own_block = rank * schedule_.shape.chunks;
    const int scratch = begin_[static_cast<std::size_t>(rank) + 1] - chunks(rank, Buffer::kScratch);
    switch (slice.buffer) {
        case Buffer::kInput:
            return begin + slice.offset +
                   (in_place_ && input_chunks_ < output_chunks_ ? own_block : 0);
        case Buffer::kOutput:
            if (!in_place_) return begin + input_chunks_ + slice.offset;
            return begin + slice.offset + (output_chunks_ < input_chunks_ ? own_block : 0);
        case Buffer::kScratch:
            return scratch + slice.offset;
    }
    return begin;
}

}  // namespace pccl::schedule
