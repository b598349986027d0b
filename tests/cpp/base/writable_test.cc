// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/writable.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>

namespace pccl {
namespace {

constexpr std::size_t kPage = 4096;

/// Three pages of zeros, of which the last cannot be written.
class WritableTest : public testing::Test {
   protected:
    WritableTest() {
        void* const pages =
            ::mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT_NE(pages, MAP_FAILED);
        memory_ = {static_cast<std::byte*>(pages), 3 * kPage};
        EXPECT_EQ(::mprotect(memory_.data() + 2 * kPage, kPage, PROT_READ), 0);
    }
    ~WritableTest() override { ::munmap(memory_.data(), memory_.size()); }
    WritableTest(const WritableTest&) = delete;
    WritableTest& operator=(const WritableTest&) = delete;

    std::span<std::byte> memory_;
};

TEST_F(WritableTest, ReturnsTheWritableMemory) {
    EXPECT_TRUE(is_writable(memory_.first(2 * kPage)));
    EXPECT_FALSE(is_writable(memory_.last(kPage)));
    EXPECT_FALSE(is_writable(memory_.last(1)));
    EXPECT_FALSE(is_writable(memory_));
    EXPECT_TRUE(is_writable(memory_.subspan(kPage + 1, 7)));
    EXPECT_TRUE(is_writable({}));
}

TEST_F(WritableTest, ChangesNothing) {
    std::array<std::byte, 9> values{};
    values.fill(std::byte{0xA5});
    EXPECT_TRUE(is_writable(std::span(values).subspan(1, 3)));
    for (const std::byte value : values) EXPECT_EQ(value, std::byte{0xA5});
}

}  // namespace
}  // namespace pccl
