// Schedules that were loaded into a group with sizes of their own (capsules), as its GPUs choose
// from them.
#pragma once

#include <cstdint>
#include <vector>

#include "csrc/collective/collective.h"
#include "csrc/schedule/catalogue.h"

namespace pccl::device {

class PCCL_API LoadedSchedules {
   public:
    LoadedSchedules() = default;
    /// Those of `catalogue` that GPUs run; the log says of the others why kernels are left to it.
    LoadedSchedules(const schedule::Catalogue& catalogue, int ranks);

    /// Of those for the size of `collective`, whose blocks have one length, the last that was
    /// loaded; null where there is none.
    [[nodiscard]] schedule::SourcePtr find(const Collective& collective) const;
    /// The same by the bytes of the largest buffer.
    [[nodiscard]] schedule::SourcePtr find(CollectiveKind kind, Rank root,
                                           std::uint64_t bytes) const;
    /// The same on two ranks that choose alike; 0 where nothing is loaded.
    [[nodiscard]] std::uint64_t digest() const { return digest_; }

   private:
    int ranks_ = 0;
    std::vector<schedule::SourcePtr> sources_;
    std::uint64_t digest_ = 0;
};

}  // namespace pccl::device
