// Where the chunks of all ranks lie: one number for each place in memory, so that chunks which
// share memory (Placement::kInPlace) share their number.
#pragma once

#include <vector>

#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

class MemoryMap {
   public:
    MemoryMap(const Schedule& schedule, Placement placement);

    /// Chunks in a buffer of a rank, whether the rank has that buffer or not.
    [[nodiscard]] int chunks(Rank rank, Buffer buffer) const;
    /// Only the root has the input of broadcast and scatter and the output of reduce and gather.
    [[nodiscard]] bool exists(Rank rank, Buffer buffer) const;
    /// Everything but input that is not output, too.
    [[nodiscard]] bool may_write(Rank rank, const Slice& slice) const;

    /// The place of the slice's first chunk; the others follow. `slice` must be in its buffer.
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
