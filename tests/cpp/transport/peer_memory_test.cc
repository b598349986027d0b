#include "csrc/transport/shm/peer_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "csrc/transport/mapping.h"
#include "csrc/transport/shm/rma.h"

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

INSTANTIATE_TEST_SUITE_P(Copies, MappedMemoryTest, testing::Bool(),
                         [](const auto& each) { return each.param ? "PastCaches" : "Plain"; });

}  // namespace
}  // namespace pccl::transport::shm
