// SPDX-License-Identifier: Apache-2.0

// Work on a range of memory that idle cores share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string_view>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/sys/cpu/helper_count.h"
#include "csrc/sys/cpu/helper_pool.h"

namespace pccl::sys {

/// One kind of work, whose speed decides how many helpers take part. One thread at a time.
class PCCL_API ParallelWork {
   public:
    /// Bytes [begin, begin + bytes) of the work, for a worker below workers().
    struct Part {
        int worker = 0;
        std::size_t begin = 0;
        std::size_t bytes = 0;
    };
    /// Has no helpers.
    ParallelWork() = default;
    /// At most `most` helpers, which are created on `cores`. `what` names the work in the log.
    ParallelWork(int most, const CoreSet& cores, std::string_view what)
        : most_(std::min(most, HelperPool::kMost)), cores_(cores), count_(most_, what) {}

    /// Returns the bound of Part::worker in the next run() over so many bytes.
    [[nodiscard]] int workers_for(std::size_t bytes) const { return count_.next(bytes) + 1; }
    /// Calls `body` for parts that cover `bytes` bytes, concurrently where helpers gain. Parts
    /// begin at multiples of `grain`. Returns an error of a part, after all calls have returned;
    /// parts that have not begun by then are left out.
    template <typename Body>
    Status run(std::size_t bytes, std::size_t grain, const Body& body) {
        if (most_ == 0 || bytes < HelperCount::kFewestBytes)
            return body(Part{.worker = 0, .begin = 0, .bytes = bytes});
        return run_timed(bytes, grain, std::cref(body));
    }

   private:
    using AnyBody = std::function<Status(const Part&)>;
    Status run_timed(std::size_t bytes, std::size_t grain, const AnyBody& body);
    Status share(int helpers, std::size_t bytes, std::size_t part, const AnyBody& body) const;

    int most_ = 0;
    CoreSet cores_;
    HelperCount count_;
};

}  // namespace pccl::sys
