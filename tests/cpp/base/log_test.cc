#include "csrc/base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "csrc/base/scope_exit.h"
#include "tests/fakes/forked_child.h"

namespace pccl {
namespace {

constexpr int kForks = 100;

TEST(LogTest, AForkedChildLogsWhateverThreadsOfItsParentDo) {
    const int usual = ::dup(STDERR_FILENO);
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ::dup2(nowhere, STDERR_FILENO);
    const ScopeExit restore([&] {
        ::dup2(usual, STDERR_FILENO);
        ::close(usual);
        ::close(nowhere);
    });
    std::atomic<bool> stop{false};
    std::thread busy([&] {
        while (!stop) log(LogLevel::kError, "a line of the parent");
    });
    for (int i = 0; i < kForks; ++i) {
        fakes::ForkedChild child([] {
            log(LogLevel::kError, "a line of a child");
            return 0;
        });
        EXPECT_EQ(child.join(), 0);
        if (HasFailure()) break;
    }
    stop = true;
    busy.join();
}

TEST(LogTest, AForkedChildKeepsTheLevel) {
    set_log_level(LogLevel::kError);
    fakes::ForkedChild child(
        [] { return log_enabled(LogLevel::kError) && !log_enabled(LogLevel::kWarning) ? 0 : 1; });
    EXPECT_EQ(child.join(), 0);
    set_log_level(LogLevel::kWarning);
    EXPECT_TRUE(log_enabled(LogLevel::kWarning));
}

}  // namespace
}  // namespace pccl
