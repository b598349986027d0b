// SPDX-License-Identifier: Apache-2.0

// What a peer that does not keep to the rules may send to the target of over_links.h.
#include "csrc/transport/rma/over_links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/base/scope_exit.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/mapping.h"
#include "csrc/transport/rma/frames.h"
#include "tests/fakes/late_cuda.h"
#include "tests/fakes/memory_links.h"

namespace pccl::transport {
namespace {

using fakes::MemoryRecvLink;
using fakes::MemorySendLink;

/// Two ends with streams in memory, of which every byte is counted.
class BytesOnTheWire : public testing::Test {
   protected:
    using Stream = fakes::MemoryStream;

    std::unique_ptr<RmaLink> end(RmaOverLinks& rma, const std::shared_ptr<Stream>& out,
                                 const std::shared_ptr<Stream>& in) {
        return rma
            .connect({.out = std::make_unique<MemorySendLink>(out),
                      .in = std::make_unique<MemoryRecvLink>(in)})
            .value();
    }
    void complete_reads(std::size_t posts) {
        std::vector<RmaCompletion> completed(64);
        for (std::size_t ended = 0; ended < posts;) {
            ASSERT_TRUE(initiator_->advance().is_ok());
            ASSERT_TRUE(target_->advance().is_ok());
            const auto count = initiator_->poll(completed);
            ASSERT_TRUE(count.is_ok()) << count.status().to_string();
            for (std::size_t i = 0; i < *count; ++i) ASSERT_TRUE(completed[i].status.is_ok());
            ended += *count;
        }
    }
    /// Reads strided blocks of 4 bytes, and compares what that takes on the wire with one block of
    /// as many bytes.
    void expect_a_run_takes_as_much_as_one_block(const Memory& mine, const Memory& theirs,
                                                 std::uint64_t count) {
        constexpr std::uint64_t kBytes = 4;
        for (std::size_t i = 0; i < theirs.bytes; ++i)
            theirs.data[i] = static_cast<std::byte>(i * 7 % 251);
        const auto local = here_.add(mine).value();
        const auto remote = there_.add(theirs).value();
        const RmaRun run{.first = {.local = local.get(),
                                   .remote = &remote->descriptor(),
                                   .there = 8,
                                   .bytes = kBytes},
                         .stride_here = kBytes,
                         .stride_there = 12,
                         .count = count};
        ASSERT_EQ(initiator_->post_run(RmaOp::kRead, run, 0).value(), count);
        complete_reads(1);
        for (std::uint64_t i = 0; i < count; ++i)
            ASSERT_EQ(std::memcmp(mine.data + i * kBytes, theirs.data + 8 + i * 12, kBytes), 0)
                << i;
        const std::size_t requested = requests_->bytes.size();
        const std::size_t answered = answered_->bytes.size();
        RmaPiece one = run.first;
        one.bytes = count * kBytes;
        ASSERT_EQ(initiator_->post(RmaOp::kRead, {&one, 1}, 1).value(), 1U);
        complete_reads(1);
        EXPECT_EQ(requests_->bytes.size(), 2 * requested);
        EXPECT_EQ(answered_->bytes.size(), 2 * answered);
        EXPECT_LE(requested, 100U);
        EXPECT_LE(answered, count * kBytes + 200);
    }

    std::shared_ptr<Stream> requests_ = std::make_shared<Stream>();
    std::shared_ptr<Stream> answered_ = std::make_shared<Stream>();
    RmaOverLinks here_;
    RmaOverLinks there_;
    std::unique_ptr<RmaLink> initiator_ = end(here_, requests_, answered_);
    std::unique_ptr<RmaLink> target_ = end(there_, answered_, requests_);
};

TEST_F(BytesOnTheWire, AMillionStridedBlocksTakeAsMuchAsOneOfAsManyBytes) {
    constexpr std::uint64_t kCount = 1'000'000;
    std::vector<std::byte> mine(kCount * 4);
    std::vector<std::byte> theirs(kCount * 12);
    expect_a_run_takes_as_much_as_one_block({.data = mine.data(), .bytes = mine.size()},
                                            {.data = theirs.data(), .bytes = theirs.size()},
                                            kCount);
}

/// On a driver whose copies end late.
TEST_F(BytesOnTheWire, SoDoThoseOfMemoryOfGpus) {
    constexpr std::uint64_t kCount = 100'000;
    fakes::LateCudaDriver driver;
    driver.be_late(2);
    sys::cuda::let_stand_in(&driver);
    const ScopeExit none([] { sys::cuda::let_stand_in(nullptr); });
    const auto on_gpu = [&](std::size_t bytes) {
        auto mapping = Mapping::anonymous(bytes).value();
        driver.adopt(mapping, 0);
        return mapping;
    };
    const Mapping mine = on_gpu(kCount * 4);
    const Mapping theirs = on_gpu(kCount * 12);
    const auto gpu_memory = [](const Mapping& mapping) {
        return Memory{.data = mapping.memory().data(),
                      .bytes = mapping.memory().size(),
                      .kind = abi::MemoryKind::kGpu,
                      .device = 0};
    };
    expect_a_run_takes_as_much_as_one_block(gpu_memory(mine), gpu_memory(theirs), kCount);
    initiator_.reset();  // while there is a driver
    target_.reset();
}

TEST_F(BytesOnTheWire, ListedBlocksTakeTwentyBytesEach) {
    constexpr std::size_t kCount = 10'000;
    std::vector<std::byte> mine(kCount);
    std::vector<std::byte> theirs(kCount);
    std::mt19937 random(5);
    for (std::byte& each : theirs) each = static_cast<std::byte>(random());
    const auto local = here_.add({.data = mine.data(), .bytes = mine.size()}).value();
    const auto remote = there_.add({.data = theirs.data(), .bytes = theirs.size()}).value();
    std::vector<RmaPiece> pieces(kCount);
    for (std::size_t i = 0; i < kCount; ++i)
        pieces[i] = {.local = local.get(),
                     .at = i,
                     .remote = &remote->descriptor(),
                     .there = kCount - 1 - i,
                     .bytes = 1};
    ASSERT_EQ(initiator_->post(RmaOp::kRead, pieces, 0).value(), kCount);
    complete_reads(1);
    EXPECT_TRUE(std::ranges::equal(mine, std::vector(theirs.rbegin(), theirs.rend())));
    EXPECT_LE(requests_->bytes.size() + answered_->bytes.size() - kCount, 20 * kCount);
}

}  // namespace
}  // namespace pccl::transport
