// SPDX-License-Identifier: Apache-2.0

// Map of the chunks of all ranks to memory: one number for each place, so that chunks which share
// memory (Placement::kInPlace) share their number.
#pragma once

#include <vector>

#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

class MemoryMap {
   public:
    MemoryMap(const Schedule& schedule, Placement placement);

    /// Returns the chunks in a buffer of a rank, even if the rank does not have that buffer.
    [[nodiscard]] int chunks(Rank rank, Buffer buffer) const;
    /// Returns whether the rank has the buffer: only the root has the input of broadcast and
    /// scatter and the output of reduce and gather.
    [[nodiscard]] bool exists(Rank rank, Buffer buffer) const;
    /// Returns whether steps may write the slice: everything except input that is not also output.
    [[nodiscard]] bool may_write(Rank rank, const Slice& slice) const;

    /// Returns the place of the slice's first chunk; the others follow. `slice` must lie within its
    /// buffer.
    [[nodiscard]] int place(Rank rank, const Slice& slice) const;
    [[nodiscard]] int places() const { return begin_.back(); }

   private:
    [[nodiscard]] bool is_root_only(Buffer buffer) const;

    const Schedule& schedule_;
    bool in_place_;
    int input_chunks_;
    int output_chunks_;
    std::vector<int> begin_;  // the first place of each rank, and the end
};

}  // namespace pccl::schedule
