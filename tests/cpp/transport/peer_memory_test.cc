// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/shm/peer_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <numeric>
#include <optional>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/transport/mapping.h"
#include "csrc/transport/shm/rma.h"
#include "tests/fakes/forked_child.h"

namespace pccl::transport::shm {
namespace {

/// A registration of this process, as a peer sees it that maps it.
class MappedMemoryTest : public testing::TestWithParam<bool> {
   protected:
    void SetUp() override {
        theirs_ = mapping_.memory();
        registration_ =
            rma_->add({.data = theirs_.data(), .bytes = theirs_.size(), .file = mapping_.file()})
                .value();
        memory_ = PeerMemory::open(registration_->descriptor(), ::getpid(),
                                   std::make_shared<GpuMemories>())
                      .value();
        std::iota(here_.begin(), here_.end(), 1U);
    }
    std::span<std::byte> here(std::size_t offset, std::size_t bytes) {
        return std::as_writable_bytes(std::span(here_)).subspan(offset, bytes);
    }
    Status copy(RmaOp op, std::vector<sys::ProcessPiece> pieces) {
        return memory_->copy({.op = op, .pieces = pieces, .leaves_caches = GetParam()});
    }

    Mapping mapping_ = Mapping::shareable("test", 1 * kMiB).value();
    std::unique_ptr<ShmRma> rma_ = ShmRma::create().value();
    std::span<std::byte> theirs_;
    std::unique_ptr<Registration> registration_;
    std::shared_ptr<PeerMemory> memory_;
    std::vector<std::uint32_t> here_ = std::vector<std::uint32_t>(1 * kMiB / 4);
};

TEST_P(MappedMemoryTest, PiecesOfAnyLengthAndPlaceAreCopiedWhole) {
    ASSERT_TRUE(memory_->is_mapped());
    const std::span<std::byte> begin = here(0, 100'003);
    const std::span<std::byte> end = here(200'001, 64 * kKiB);
    const std::vector<sys::ProcessPiece> pieces = {{.there = 7, .here = begin},
                                                   {.there = 500'009, .here = end}};
    ASSERT_TRUE(copy(RmaOp::kWrite, pieces).is_ok());
    EXPECT_TRUE(std::ranges::equal(begin, theirs_.subspan(7, begin.size())));
    EXPECT_TRUE(std::ranges::equal(end, theirs_.subspan(500'009, end.size())));
    EXPECT_EQ(std::ranges::count(theirs_.first(7), std::byte{0}), 7);
    EXPECT_EQ(theirs_[7 + begin.size()], std::byte{0});

    const std::vector<std::byte> written(theirs_.begin(), theirs_.end());
    std::ranges::fill(here_, 0U);
    ASSERT_TRUE(copy(RmaOp::kRead, pieces).is_ok());
    EXPECT_TRUE(std::ranges::equal(begin, std::span(written).subspan(7, begin.size())));
    EXPECT_TRUE(std::ranges::equal(end, std::span(written).subspan(500'009, end.size())));
}

TEST_P(MappedMemoryTest, OfAnEndedRegistrationNothingCounts) {
    registration_.reset();
    EXPECT_EQ(copy(RmaOp::kRead, {{.there = 0, .here = here(0, 64 * kKiB)}}).code(),
              StatusCode::kUnavailable);
    EXPECT_EQ(copy(RmaOp::kWrite, {{.there = 0, .here = here(0, 64 * kKiB)}}).code(),
              StatusCode::kUnavailable);
    EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(theirs_, std::byte{0})), theirs_.size());
}

/// Another process that was stopped when it had begun to write, and goes on later.
class StoppedWriterTest : public testing::TestWithParam<bool> {
   protected:
    static constexpr std::size_t kBytes = 3 * kMiB;
    static constexpr int kNobodyMay = 77;

    static bool is_mapped() { return GetParam(); }
    void SetUp() override { ASSERT_EQ(::pipe2(pids_.data(), O_CLOEXEC), 0); }
    /// What a writer does, from its look at the registration on.
    int write(const abi::MemoryDescriptor& memory) {
        MemoryKey key = key_on_this_host(memory).value();
        const PeerLine line = PeerLine::map(key.ledger, key.line).value();
        std::optional<MemoryView> view;
        if (is_mapped()) view.emplace(map_memory(memory).value());
        std::vector<std::byte> here(kBytes, std::byte{9});
        if (!line.enter(memory.nonce)) return 2;
        const sys::ProcessGate gate{line.gate()};
        const pid_t own = ::getpid();
        if (::write(pids_[1], &own, sizeof own) != sizeof own) return 3;
        ::raise(SIGSTOP);
        bool written = false;
        if (is_mapped()) {
            std::ranges::copy(here, view->memory.begin());
        } else {
            const sys::ProcessPiece piece{key.address, here};
            const auto wrote = sys::write_living_process(::getppid(), gate, {&piece, 1});
            if (!wrote.is_ok()) return kNobodyMay;
            written = *wrote;
        }
        return line.leave(memory.nonce) || written ? 1 : 0;
    }
    /// Once it is.
    pid_t stopped() {
        pid_t writer = 0;
        EXPECT_EQ(::read(pids_[0], &writer, sizeof writer), static_cast<ssize_t>(sizeof writer));
        EXPECT_EQ(::waitpid(writer, nullptr, WUNTRACED), writer);
        return writer;
    }

    Mapping mapping_ = Mapping::shareable("test", kBytes).value();
    std::vector<std::byte> plain_ = std::vector<std::byte>(kBytes);
    std::span<std::byte> mine_ = is_mapped() ? mapping_.memory() : std::span(plain_);
    std::unique_ptr<ShmRma> rma_ = ShmRma::create().value();
    std::unique_ptr<Registration> registration_ =
        rma_->add({.data = mine_.data(),
                   .bytes = mine_.size(),
                   .file = is_mapped() ? mapping_.file() : -1})
            .value();

   private:
    std::array<int, 2> pids_{};
};

TEST_P(StoppedWriterTest, ReachesNothingWhenItGoesOnAfterTheEnd) {
    const abi::MemoryDescriptor memory = registration_->descriptor();
    fakes::ForkedChild writer([&] { return write(memory); });
    const pid_t pid = stopped();
    std::ranges::fill(mine_, std::byte{5});
    registration_.reset();
    EXPECT_TRUE(std::ranges::all_of(mine_, [](std::byte each) { return each == std::byte{5}; }));
    std::ranges::fill(mine_, std::byte{7});
    ASSERT_EQ(::kill(pid, SIGCONT), 0);
    const int end = writer.join();
    if (end == kNobodyMay) GTEST_SKIP() << "this machine lets nobody write to another process";
    EXPECT_EQ(end, 0);
    EXPECT_TRUE(std::ranges::all_of(mine_, [](std::byte each) { return each == std::byte{7}; }));
}

TEST_P(StoppedWriterTest, HoldsUpNoOtherRegistration) {
    std::vector<std::byte> others(kBytes);
    const auto other = rma_->add({.data = others.data(), .bytes = others.size()}).value();
    const auto seen = PeerMemory::open(other->descriptor(), ::getpid(), nullptr).value();
    const abi::MemoryDescriptor memory = registration_->descriptor();
    fakes::ForkedChild writer([&] { return write(memory); });
    static_cast<void>(stopped());
    std::vector<std::byte> here(100, std::byte{1});
    std::vector<sys::ProcessPiece> pieces = {{.there = 3, .here = here}};
    ASSERT_EQ(seen->copy({.op = RmaOp::kWrite, .pieces = pieces}, true).to_string(), "ok");
    registration_.reset();
    pieces = {{.there = 103, .here = here}};
    ASSERT_EQ(seen->copy({.op = RmaOp::kWrite, .pieces = pieces}, true).to_string(), "ok");
    EXPECT_EQ(std::ranges::count(others, std::byte{1}), 200);
}

INSTANTIATE_TEST_SUITE_P(Ways, StoppedWriterTest, testing::Bool(),
                         [](const auto& each) { return each.param ? "Mapped" : "ByTheKernel"; });

INSTANTIATE_TEST_SUITE_P(Copies, MappedMemoryTest, testing::Bool(),
                         [](const auto& each) { return each.param ? "PastCaches" : "Plain"; });

}  // namespace
}  // namespace pccl::transport::shm
