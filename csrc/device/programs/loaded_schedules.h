// SPDX-License-Identifier: Apache-2.0

// Schedules that were loaded into a group with size ranges (capsules), from which its GPUs choose.
#pragma once

#include <cstdint>
#include <vector>

#include "csrc/collective/collective.h"
#include "csrc/kernels/thresholds.h"
#include "csrc/schedule/catalogue.h"

namespace pccl::device {

class PCCL_API LoadedSchedules {
   public:
    LoadedSchedules() = default;
    /// Takes the schedules of `catalogue` that these GPUs run. For the others, it logs why kernels
    /// run instead.
    LoadedSchedules(const schedule::Catalogue& catalogue, const kernels::Gpus& gpus);

    /// Returns the last loaded schedule for the size of `collective`, whose blocks have one length;
    /// null where there is none.
    [[nodiscard]] schedule::SourcePtr find(const Collective& collective) const;
    /// Does the same for the bytes of the largest buffer.
    [[nodiscard]] schedule::SourcePtr find(CollectiveKind kind, Rank root,
                                           std::uint64_t bytes) const;
    /// Returns a digest that is equal on two ranks that choose alike; 0 where nothing is loaded.
    [[nodiscard]] std::uint64_t digest() const { return digest_; }

   private:
    int ranks_ = 0;
    std::vector<schedule::SourcePtr> sources_;
    std::uint64_t digest_ = 0;
};

}  // namespace pccl::device
