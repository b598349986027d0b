// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/cpu/streaming.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "csrc/base/ids.h"
#include "tests/cpp/sys/counted.h"

namespace pccl::sys {
namespace {

TEST(Streaming, CopiesExactlyItsBytesFromAndToAnyAddress) {
    constexpr std::size_t kGuard = 2 * kCacheLine;
    constexpr auto kUntouched = std::byte{0xEE};
    const std::vector<std::byte> source = counted(8 * kCacheLine);
    for (const std::size_t from : {0, 1, 17})
        for (const std::size_t to : {0, 1, 63})
            for (const std::size_t bytes : {0, 1, 63, 64, 65, 200, 384}) {
                std::vector<std::byte> target(bytes + to + kGuard, kUntouched);
                stream_bytes(target.data() + to, source.data() + from, bytes);
                const auto* const begin = target.data() + to;
                EXPECT_TRUE(std::equal(begin, begin + bytes, source.data() + from))
                    << bytes << " bytes from " << from << " to " << to;
                const auto untouched = [](std::byte value) { return value == kUntouched; };
                EXPECT_TRUE(std::all_of(target.data(), target.data() + to, untouched));
                EXPECT_TRUE(std::all_of(begin + bytes, begin + bytes + kGuard, untouched));
            }
}

}  // namespace
}  // namespace pccl::sys
