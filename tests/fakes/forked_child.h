// SPDX-License-Identifier: Apache-2.0

// Children of fork(), for tests of what they do to their parents.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <utility>

namespace pccl::fakes {

class ForkedChild {
   public:
    /// Runs `body` in a child, which ends with what that returns; SIGALRM ends a child that hangs.
    explicit ForkedChild(const std::function<int()>& body) : pid_(::fork()) {
        if (pid_ != 0) return;
        ::alarm(kLimitSeconds);
        ::_exit(body());
    }
    /// Ends it.
    ~ForkedChild() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        static_cast<void>(join());
    }
    ForkedChild(const ForkedChild&) = delete;
    ForkedChild& operator=(const ForkedChild&) = delete;

    /// Waits for its end: its exit code, or the negative number of the signal that ended it.
    [[nodiscard]] int join() {
        int status = -1;
        ::waitpid(std::exchange(pid_, -1), &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }

   private:
    static constexpr unsigned kLimitSeconds = 20;
    pid_t pid_;
};

}  // namespace pccl::fakes
