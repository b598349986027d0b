// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/log/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/base/unique_fd.h"
#include "tests/fakes/forked_child.h"

namespace pccl {
namespace {

using testing::Each;
using testing::EndsWith;

constexpr Duration kLong = std::chrono::seconds(30);

/// Unlike a UniqueFd, it is the same in a child of fork().
class SharedEnd {
   public:
    SharedEnd() = default;
    ~SharedEnd() { reset(-1); }
    SharedEnd(const SharedEnd&) = delete;
    SharedEnd& operator=(const SharedEnd&) = delete;

    [[nodiscard]] int get() const { return fd_; }
    void reset(int fd) {
        if (fd_ >= 0) ::close(fd_);
        fd_ = fd;
    }

   private:
    int fd_ = -1;
};

class Pipe {
   public:
    Pipe() {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
        reader.reset(ends[0]);
        writer.reset(ends[1]);
        ::fcntl(reader.get(), F_SETFL, O_NONBLOCK);
    }
    /// To the last byte; says how many there are.
    [[nodiscard]] std::size_t fill() const {
        const UniqueFd end(
            ::open(concat("/proc/self/fd/", writer.get()).c_str(), O_WRONLY | O_NONBLOCK));
        std::size_t bytes = 0;
        while (::write(end.get(), "\n", 1) > 0) ++bytes;
        return bytes;
    }
    void signal() const {
        if (::write(writer.get(), "!", 1) != 1) std::abort();
    }
    /// What comes until it is so much, or until nobody can write any more.
    std::string drain(std::size_t bytes) const {
        const Deadline deadline = Deadline::after(kLong);
        std::string all;
        while (all.size() < bytes && !deadline.passed()) {
            pollfd polled{.fd = reader.get(), .events = POLLIN, .revents = 0};
            if (::poll(&polled, 1, 20) <= 0) continue;
            std::array<char, 4096> piece{};
            const ssize_t count = ::read(reader.get(), piece.data(), piece.size());
            if (count == 0) break;
            if (count > 0) all.append(piece.data(), static_cast<std::size_t>(count));
        }
        return all;
    }
    std::string drain_to_end() {
        writer.reset(-1);
        return drain(std::string::npos);
    }

    SharedEnd reader;
    SharedEnd writer;
};

/// Lines of the log, without what stood in the pipe before.
std::vector<std::string> lines_in(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t from = 0, end = 0; (end = text.find('\n', from)) != std::string::npos;
         from = end + 1)
        if (text.compare(from, 5, "[pccl") == 0) lines.push_back(text.substr(from, end - from));
    return lines;
}

/// A process whose stderr is `pipe`.
class Child {
   public:
    Child(const Pipe& pipe, const std::function<void()>& body) : pid_(::fork()) {
        if (pid_ != 0) return;
        ::dup2(pipe.writer.get(), STDERR_FILENO);
        body();
        ::_exit(0);
    }
    ~Child() {
        if (pid_ == 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    [[nodiscard]] bool ends_well() {
        const Deadline deadline = Deadline::after(kLong);
        int status = 0;
        while (::waitpid(pid_, &status, WNOHANG) == 0) {
            if (deadline.passed()) return false;
            system_clock().sleep_for(std::chrono::milliseconds(5));
        }
        return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }

   private:
    pid_t pid_;
};

TEST(LogTest, NobodyWaitsForAReaderWhoDoesNotRead) {
    const Pipe pipe;
    ASSERT_GT(pipe.fill(), 0U);
    Child child(pipe, [] {
        for (int i = 0; i < 10'000; ++i) log(LogLevel::kWarning, "line ", i);
    });
    EXPECT_TRUE(child.ends_well());
}

/// What a reader finds that comes back after so many lines, before one more is written.
std::vector<std::string> lines_after_a_pause(int count) {
    Pipe pipe;
    const std::size_t stuffing = pipe.fill();
    const Pipe paused;
    const Pipe resumed;
    Child child(pipe, [&] {
        for (int i = 0; i < count; ++i) log(LogLevel::kWarning, "line ", i);
        paused.signal();
        resumed.drain(1);
        log(LogLevel::kWarning, "the last");
    });
    paused.drain(1);
    pipe.drain(stuffing);
    resumed.signal();
    const std::string text = pipe.drain_to_end();
    EXPECT_TRUE(child.ends_well());
    return lines_in(text);
}

TEST(LogTest, AReaderWhoComesBackFindsEveryLineInOrder) {
    const auto lines = lines_after_a_pause(100);
    ASSERT_EQ(lines.size(), 101U);
    for (std::size_t i = 0; i < 100; ++i) EXPECT_THAT(lines[i], EndsWith(concat("] line ", i)));
    EXPECT_THAT(lines.back(), EndsWith("] the last"));
}

TEST(LogTest, WhatIsTooMuchIsCounted) {
    const auto lines = lines_after_a_pause(10'000);
    ASSERT_GT(lines.size(), 500U);
    const std::size_t kept = lines.size() - 2;
    for (std::size_t i = 0; i < kept; ++i) EXPECT_THAT(lines[i], EndsWith(concat("] line ", i)));
    EXPECT_EQ(lines[kept], concat("[pccl] lost ", 10'000 - kept, " lines here: nobody read them"));
    EXPECT_THAT(lines.back(), EndsWith("] the last"));
}

TEST(LogTest, TheEndOfAProcessGivesTheReaderAMoment) {
    Pipe pipe;
    ASSERT_GT(pipe.fill(), 0U);
    const Pipe logged;
    Child child(pipe, [&] {
        for (int i = 0; i < 10; ++i) log(LogLevel::kWarning, "line ", i);
        logged.signal();
        std::exit(0);
    });
    logged.drain(1);
    const auto lines = lines_in(pipe.drain_to_end());
    EXPECT_TRUE(child.ends_well());
    ASSERT_EQ(lines.size(), 10U);
    EXPECT_THAT(lines.back(), EndsWith("] line 9"));
}

TEST(LogTest, AReaderWhoReadsGetsEveryLineOfEveryThread) {
    constexpr int kThreads = 4;
    constexpr int kLines = 2000;
    Pipe pipe;
    Child child(pipe, [] {
        std::vector<std::thread> threads;
        for (int thread = 0; thread < kThreads; ++thread)
            threads.emplace_back([thread] {
                for (int i = 0; i < kLines; ++i) log(LogLevel::kWarning, thread, " writes ", i);
            });
        for (std::thread& thread : threads) thread.join();
    });
    std::array<int, kThreads> next{};
    for (const std::string& line : lines_in(pipe.drain_to_end())) {
        const std::size_t place = line.find("] ") + 2;
        const auto thread = static_cast<std::size_t>(line[place] - '0');
        ASSERT_LT(thread, next.size()) << line;
        EXPECT_THAT(line, EndsWith(concat("] ", thread, " writes ", next[thread]++)));
    }
    EXPECT_THAT(next, Each(kLines));
    EXPECT_TRUE(child.ends_well());
}

TEST(LogTest, OthersOfThePipeFindItAsItWas) {
    const Pipe pipe;
    ASSERT_GT(pipe.fill(), 0U);
    Child child(pipe, [] { log(LogLevel::kWarning, "line"); });
    EXPECT_TRUE(child.ends_well());
    EXPECT_EQ(::fcntl(pipe.writer.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(LogTest, AChildForkedWhileOthersLogMayLogAsWell) {
    Pipe pipe;
    Child family(pipe, [] {
        std::atomic<bool> done{false};
        std::thread other([&] {
            while (!done) log(LogLevel::kWarning, "of the parent");
        });
        for (int i = 0; i < 100; ++i) {
            const pid_t child = ::fork();
            if (child == 0) {
                log(LogLevel::kWarning, "of the child");
                ::_exit(0);
            }
            if (::waitpid(child, nullptr, 0) != child) ::_exit(1);
        }
        done = true;
        other.join();
    });
    const std::string text = pipe.drain_to_end();
    EXPECT_TRUE(family.ends_well());
    std::size_t of_children = 0;
    for (const std::string& line : lines_in(text)) of_children += line.ends_with("of the child");
    EXPECT_EQ(of_children, 100U);
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
