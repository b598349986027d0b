// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/process_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>
#include <vector>

#include "csrc/base/unique_fd.h"
#include "tests/fakes/forked_child.h"

namespace pccl::sys {
namespace {

using testing::HasSubstr;

/// A child with a copy of this process's memory, until become_another_program().
class Child {
   public:
    Child() {
        std::array<int, 2> wake{};
        std::array<int, 2> gone{};
        EXPECT_EQ(::pipe2(wake.data(), O_CLOEXEC), 0);
        EXPECT_EQ(::pipe2(gone.data(), O_CLOEXEC), 0);
        pid_ = ::fork();
        if (pid_ == 0) {
            char byte = 0;
            if (::read(wake[0], &byte, 1) == 1) ::execl("/bin/sleep", "sleep", "60", nullptr);
            ::_exit(1);
        }
        ::close(wake[0]);
        ::close(gone[1]);
        wake_.reset(wake[1]);
        gone_.reset(gone[0]);
    }
    ~Child() { end(); }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    [[nodiscard]] pid_t pid() const { return pid_; }
    void become_another_program() {
        char byte = 1;
        EXPECT_EQ(::write(wake_.get(), &byte, 1), 1);
        // The pipe that the child holds closes with its memory.
        EXPECT_EQ(::read(gone_.get(), &byte, 1), 0);
    }
    void end() {
        if (std::exchange(has_ended_, true)) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }

   private:
    pid_t pid_ = 0;
    bool has_ended_ = false;
    UniqueFd wake_;
    UniqueFd gone_;
};

class ProcessMemoryTest : public testing::Test {
   protected:
    Status read(pid_t pid) {
        return read_process_memory(pid, mark(), reinterpret_cast<std::uint64_t>(there_.data()),
                                   here_);
    }
    [[nodiscard]] ProcessMark mark() const {
        return {.address = reinterpret_cast<std::uint64_t>(&value_), .value = value_};
    }

    [[nodiscard]] ProcessGate gate() const {
        return {.address = reinterpret_cast<std::uint64_t>(gate_.data())};
    }

    std::vector<std::uint64_t> gate_ = std::vector<std::uint64_t>(1);
    const std::uint64_t value_ = 0x5EED'1234'5678'9ABC;
    const std::vector<std::byte> there_ = std::vector<std::byte>(100'000, std::byte{7});
    std::vector<std::byte> here_ = std::vector<std::byte>(there_.size());
};

TEST_F(ProcessMemoryTest, IsReadWhereItLies) {
    const Child child;
    if (const Status status = read(child.pid()); !status.is_ok())
        GTEST_SKIP() << "this machine lets nobody read a child: " << status.to_string();
    EXPECT_EQ(here_, there_);
}

TEST_F(ProcessMemoryTest, ALivingProcessIsWrittenToAndReadUntilItEnds) {
    Child child;
    const auto address = reinterpret_cast<std::uint64_t>(there_.data());
    std::vector<std::byte> written(5000, std::byte{9});
    const ProcessPiece piece{address + 3, written};
    const auto wrote = write_living_process(child.pid(), gate(), {&piece, 1});
    if (!wrote.is_ok())
        GTEST_SKIP() << "this machine lets nobody write to a child: " << wrote.status().to_string();
    EXPECT_TRUE(*wrote);
    ASSERT_EQ(read(child.pid()).to_string(), "ok");
    auto expected = there_;
    std::ranges::copy(written, expected.begin() + 3);
    EXPECT_EQ(here_, expected);
    std::vector<std::byte> again(5000);
    const ProcessPiece same{address + 3, again};
    ASSERT_TRUE(read_living_process(child.pid(), {&same, 1}).is_ok());
    EXPECT_EQ(again, written);
    child.end();
    EXPECT_EQ(read_living_process(child.pid(), {&same, 1}).code(), StatusCode::kUnavailable);
    EXPECT_EQ(write_living_process(child.pid(), gate(), {&piece, 1}).status().code(),
              StatusCode::kUnavailable);
}

TEST_F(ProcessMemoryTest, PiecesAreWrittenAndReadWhereTheyLie) {
    const Child child;
    const auto address = reinterpret_cast<std::uint64_t>(there_.data());
    std::vector<std::byte> bytes(300, std::byte{1});
    const std::span<std::byte> here(bytes);
    const std::array<ProcessPiece, 3> pieces{{{address + 7, here.first(100)},
                                              {address + 50'001, here.subspan(100, 0)},
                                              {address + 99'800, here.last(200)}}};
    const auto wrote = write_process_pieces(child.pid(), mark(), gate(), pieces);
    if (!wrote.is_ok())
        GTEST_SKIP() << "this machine lets nobody write to a child: " << wrote.status().to_string();
    EXPECT_TRUE(*wrote);
    ASSERT_TRUE(read(child.pid()).is_ok());
    std::vector<std::byte> expected = there_;
    std::fill_n(expected.begin() + 7, 100, std::byte{1});
    std::fill_n(expected.begin() + 99'800, 200, std::byte{1});
    EXPECT_EQ(here_, expected);

    std::vector<std::byte> again(300);
    const std::array<ProcessPiece, 2> swapped{
        {{address + 99'800, std::span(again).first(200)}, {address, std::span(again).last(100)}}};
    ASSERT_TRUE(read_process_pieces(child.pid(), mark(), swapped).is_ok());
    EXPECT_EQ(again[199], std::byte{1});
    EXPECT_EQ(again[206], std::byte{7});
    EXPECT_EQ(again[207], std::byte{1});
}

TEST_F(ProcessMemoryTest, AnotherMarkIsNotWrittenTo) {
    std::vector<std::byte> target(10, std::byte{3});
    const ProcessMark other{.address = mark().address, .value = value_ + 1};
    const ProcessPiece piece{reinterpret_cast<std::uint64_t>(target.data()),
                             std::span(here_).first(10)};
    EXPECT_EQ(write_process_pieces(::getpid(), other, gate(), {&piece, 1}).status().code(),
              StatusCode::kUnavailable);
    EXPECT_EQ(target, std::vector<std::byte>(10, std::byte{3}));
}

TEST_F(ProcessMemoryTest, NothingIsWrittenThroughAGateThatIsShut) {
    auto* const page =
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    const ProcessGate own{reinterpret_cast<std::uint64_t>(page)};
    std::vector<std::byte> target(10, std::byte{3});
    const ProcessPiece piece{reinterpret_cast<std::uint64_t>(target.data()),
                             std::span(here_).first(10)};
    for (const int rights : {PROT_READ, PROT_NONE}) {
        ASSERT_EQ(::mprotect(page, 4096, rights), 0);
        EXPECT_FALSE(write_living_process(::getpid(), own, {&piece, 1}).value());
        EXPECT_FALSE(write_process_pieces(::getpid(), mark(), own, {&piece, 1}).value());
        EXPECT_EQ(target, std::vector<std::byte>(10, std::byte{3}));
    }
    ASSERT_EQ(::mprotect(page, 4096, PROT_READ | PROT_WRITE), 0);
    EXPECT_TRUE(write_living_process(::getpid(), own, {&piece, 1}).value());
    EXPECT_EQ(target, std::vector<std::byte>(10, std::byte{0}));
    ::munmap(page, 4096);
}

TEST_F(ProcessMemoryTest, APieceThatIsNotThereIsNoGate) {
    const ProcessPiece nowhere{0, std::span(here_).first(10)};
    EXPECT_EQ(write_living_process(::getpid(), gate(), {&nowhere, 1}).status().code(),
              StatusCode::kUnavailable);
}

TEST_F(ProcessMemoryTest, ARefusalIsExplained) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
    const Child child;
    fakes::ForkedChild stranger([&] {
        if (::setresuid(65534, 65534, 65534) != 0) return 2;
        const Status refused = read(child.pid());
        return refused.message().find("ptrace") != std::string::npos ? 0 : 1;
    });
    EXPECT_EQ(stranger.join(), 0);
}

TEST_F(ProcessMemoryTest, WhatIsNotThereIsNotRead) {
    const Status nothing = read_process_memory(::getpid(), mark(), 0, here_);
    EXPECT_EQ(nothing.code(), StatusCode::kUnavailable);
    EXPECT_THAT(nothing.message(), HasSubstr("cannot read 100000 bytes of process"));
}

TEST_F(ProcessMemoryTest, AnotherMarkMeansAnotherProcess) {
    const ProcessMark other{.address = mark().address, .value = value_ + 1};
    const Status status = read_process_memory(
        ::getpid(), other, reinterpret_cast<std::uint64_t>(there_.data()), here_);
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_EQ(read_process_memory(::getpid(), other, other.address, {}).code(),
              StatusCode::kUnavailable);
    EXPECT_TRUE(read_process_memory(::getpid(), mark(), other.address, {}).is_ok());
}

TEST_F(ProcessMemoryTest, AnotherProgramInTheSameProcessIsNotRead) {
    Child child;
    if (const Status status = read(child.pid()); !status.is_ok())
        GTEST_SKIP() << "this machine lets nobody read a child: " << status.to_string();
    child.become_another_program();
    EXPECT_EQ(read(child.pid()).code(), StatusCode::kUnavailable);
}

TEST_F(ProcessMemoryTest, AProcessThatHasEndedIsNotRead) {
    Child child;
    child.end();
    EXPECT_EQ(read(child.pid()).code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace pccl::sys
