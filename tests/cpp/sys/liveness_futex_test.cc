// SPDX-License-Identifier: Apache-2.0

// A word that tells whether a thread of another process lives.
#include "csrc/sys/liveness_futex.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <new>
#include <thread>

#include <pccl/deadline.h>
#include "tests/fakes/forked_child.h"

namespace pccl::sys {
namespace {

class LivenessFutexTest : public testing::Test {
   protected:
    LivenessFutexTest()
        : page_(::mmap(nullptr, sizeof(LivenessWord), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
          word_(*new(page_) LivenessWord(0)) {}
    ~LivenessFutexTest() override { ::munmap(page_, sizeof(LivenessWord)); }

    [[nodiscard]] bool is_held_in_time() const {
        const Deadline deadline = Deadline::after(std::chrono::seconds(20));
        while (!is_held_by_the_living(word_) && !deadline.passed()) std::this_thread::yield();
        return is_held_by_the_living(word_);
    }

    void* const page_;
    LivenessWord& word_;
};

TEST_F(LivenessFutexTest, IsThereAsLongAsItsHolder) {
    EXPECT_FALSE(is_held_by_the_living(word_));
    for (int i = 0; i < 2; ++i) {
        const LivenessFutex sign(word_);
        EXPECT_TRUE(is_held_by_the_living(word_));
    }
    EXPECT_FALSE(is_held_by_the_living(word_));
}

TEST_F(LivenessFutexTest, AProcessThatIsKilledHasNoneOnceItsEndIsKnown) {
    for (int round = 0; round < 20; ++round) {
        word_.store(0);
        {
            const fakes::ForkedChild child([this] {
                std::thread([this] {
                    const LivenessFutex sign(word_);
                    for (;;) ::pause();
                }).detach();
                for (;;) ::pause();
                return 0;
            });
            ASSERT_TRUE(is_held_in_time());
        }  // kills it, and waits for its end
        ASSERT_FALSE(is_held_by_the_living(word_)) << round;
    }
}

TEST_F(LivenessFutexTest, AProcessThatBecomesAnotherProgramHasNone) {
    fakes::ForkedChild child([this] {
        std::thread([this] {
            const LivenessFutex sign(word_);
            for (;;) ::pause();
        }).detach();
        if (!is_held_in_time()) return 1;
        ::execl("/bin/true", "true", nullptr);
        return 2;
    });
    EXPECT_EQ(child.join(), 0);
    EXPECT_FALSE(is_held_by_the_living(word_));
    EXPECT_NE(word_.load(), 0U) << "the kernel has marked it";
}

}  // namespace
}  // namespace pccl::sys
