// SPDX-License-Identifier: Apache-2.0

// Parts cover the work once, whoever does them, and an error of one is the error of all.
#include "csrc/sys/cpu/parallel_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "csrc/base/ids.h"

namespace pccl::sys {
namespace {

TEST(ParallelWork, PartsCoverEveryByteOnce) {
    constexpr std::size_t kGrain = 192;
    for (const int helpers : {0, 1, 3}) {
        ParallelWork work(helpers, usable_cores(), "bytes");
        for (const std::size_t bytes : {std::size_t{0}, std::size_t{100}, 700 * kKiB + 5, 3 * kMiB})
            for (int round = 0; round < 12; ++round) {
                std::vector<std::atomic<std::uint8_t>> seen(bytes);
                const int workers = work.workers_for(bytes);
                const Status status = work.run(bytes, kGrain, [&](const ParallelWork::Part& part) {
                    EXPECT_EQ(part.begin % kGrain, 0U);
                    EXPECT_LT(part.worker, workers);
                    for (std::size_t i = 0; i < part.bytes; ++i) ++seen[part.begin + i];
                    return Status::ok();
                });
                EXPECT_TRUE(status.is_ok());
                for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(seen[i], 1) << i;
            }
    }
}

TEST(ParallelWork, AnErrorOfAPartEndsTheWork) {
    ParallelWork work(3, usable_cores(), "parts");
    for (int round = 0; round < 20; ++round) {
        const Status status = work.run(4 * kMiB, 64, [](const ParallelWork::Part& part) {
            return part.begin == 0 ? Status::unavailable("the first part") : Status::ok();
        });
        EXPECT_EQ(status.code(), StatusCode::kUnavailable);
        EXPECT_EQ(status.message(), "the first part");
    }
}

}  // namespace
}  // namespace pccl::sys
