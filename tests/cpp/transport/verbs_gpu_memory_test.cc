// SPDX-License-Identifier: Apache-2.0

// Memory of GPUs that RDMA devices read and write: ways of registration, flushes, bounds.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/mapping.h"
#include "csrc/transport/verbs/gpu_way.h"
#include "tests/cpp/transport/verbs_links.h"
#include "tests/fakes/late_cuda.h"

namespace pccl::transport::verbs {
namespace {

using sys::cuda::DeviceWrites;

VerbsOptions one_port_with(std::vector<GpuWay> ways) {
    VerbsOptions options = one_port();
    options.gpu_ways = std::move(ways);
    return options;
}

/// GPUs of this process, and devices that reach their memory or not, while it lives.
class VerbsGpuTest : public testing::Test {
   protected:
    static constexpr std::size_t kBytes = 3 * kMiB + 17;
    static constexpr std::size_t kPage = 4096;

    VerbsGpuTest() { sys::cuda::let_stand_in(&driver_); }
    ~VerbsGpuTest() override {
        sys::cuda::let_stand_in(nullptr);
        PCCL_FAKE_VERBS(set_dmabuf)(1);
        PCCL_FAKE_VERBS(set_peermem)(0);
        PCCL_FAKE_VERBS(set_gpu_memory)(nullptr, 0);
    }

    /// Memory of GPU 0, which CPUs do not reach.
    Mapping gpu_memory(std::size_t bytes = kBytes) {
        Mapping mapping = Mapping::shareable("gpu", bytes).value();
        driver_.adopt(mapping, 0);
        PCCL_FAKE_VERBS(set_gpu_memory)(mapping.memory().data(), bytes);
        return mapping;
    }
    /// A part of a memory of a GPU, which begins and ends within a page.
    static Memory part_of(const Mapping& mapping, std::size_t at, std::size_t bytes) {
        return {.data = mapping.memory().data() + at,
                .bytes = bytes,
                .kind = abi::MemoryKind::kGpu,
                .device = 0};
    }
    static Memory all_of(const Mapping& mapping) {
        return part_of(mapping, 0, mapping.memory().size());
    }

    fakes::LateCudaDriver driver_;
};

/// One port registers memory of a GPU.
class VerbsGpuWaysTest : public VerbsGpuTest {
   protected:
    /// Returns the error of a registration, with the ways of `setting`.
    Status registered(std::string_view setting) {
        VerbsHost host(0, one_port_with(parse_gpu_ways(setting).value()));
        return host.transport().one_sided().value()->add(all_of(memory_)).status();
    }

    const Mapping memory_ = gpu_memory();
};

TEST_F(VerbsGpuWaysTest, ADmaBufComesFirst) {
    EXPECT_EQ(registered("auto").to_string(), "ok");
    EXPECT_EQ(registered("dmabuf").to_string(), "ok");
    EXPECT_EQ(registered("peermem").code(), StatusCode::kUnsupported) << "it is not loaded";
}

TEST_F(VerbsGpuWaysTest, PeermemComesNext) {
    PCCL_FAKE_VERBS(set_dmabuf)(0);
    EXPECT_EQ(registered("auto").code(), StatusCode::kUnsupported);
    PCCL_FAKE_VERBS(set_peermem)(1);
    EXPECT_EQ(registered("auto").to_string(), "ok");
    EXPECT_EQ(registered("peermem").to_string(), "ok");
    EXPECT_EQ(registered("dmabuf").code(), StatusCode::kUnsupported);
}

TEST_F(VerbsGpuWaysTest, TheErrorHasTheReasonOfEachWay) {
    PCCL_FAKE_VERBS(set_dmabuf)(0);
    const Status refused = registered("auto");
    EXPECT_EQ(refused.message(),
              "RDMA does not reach memory of GPU 0: dmabuf: the driver of the RDMA device mlx5_0 "
              "registers no dma-bufs; peermem: the RDMA device mlx5_0 cannot register 3145745 "
              "bytes: Bad address; the module nvidia_peermem is not loaded");
}

TEST_F(VerbsGpuWaysTest, MemoryThatTheDriverDoesNotExportIsRegisteredByPeermem) {
    driver_.fail("export_range", Status::unsupported("mapped piece by piece"));
    const Status refused = registered("auto");
    EXPECT_NE(refused.message().find("dmabuf: mapped piece by piece"), std::string::npos);
    PCCL_FAKE_VERBS(set_peermem)(1);
    EXPECT_EQ(registered("auto").to_string(), "ok");
}

TEST_F(VerbsGpuWaysTest, OffRegistersNothing) {
    PCCL_FAKE_VERBS(set_peermem)(1);
    const Status refused = registered("off");
    EXPECT_EQ(refused.code(), StatusCode::kUnsupported);
    EXPECT_EQ(refused.message(), "PCCL_IB_GPU=off keeps RDMA devices from memory of GPUs");
}

TEST_F(VerbsGpuWaysTest, AReasonIsShownOnce) {
    PCCL_FAKE_VERBS(set_dmabuf)(0);
    PCCL_FAKE_VERBS(set_peermem)(1);
    VerbsHost host(0, one_port());
    const auto rma = host.transport().one_sided().value();
    testing::internal::CaptureStderr();
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(rma->add(all_of(memory_)).is_ok());
    const std::string shown = testing::internal::GetCapturedStderr();
    const std::string reason = "RDMA device mlx5_0 does not reach memory of GPUs by dmabuf: ";
    const std::size_t first = shown.find(reason);
    ASSERT_NE(first, std::string::npos) << shown;
    EXPECT_EQ(shown.find(reason, first + 1), std::string::npos) << shown;
}

TEST_F(VerbsGpuWaysTest, MemoryOfNoGpuIsRefused) {
    VerbsHost host(0, one_port());
    Memory wrong = all_of(memory_);
    wrong.device = 1;
    EXPECT_EQ(host.transport().one_sided().value()->add(wrong).status().code(),
              StatusCode::kInvalidArgument);
}

TEST(VerbsGpuSettingTest, OthersAreRefused) {
    EXPECT_EQ(parse_gpu_ways("dma_buf").status().message(),
              "\"dma_buf\" is no way to memory of GPUs; use auto, dmabuf, peermem or off");
}

/// A peer's memory of a GPU, and local memory of the host or of a GPU.
class VerbsGpuTransferTest : public VerbsGpuTest {
   protected:
    static constexpr std::size_t kAt = 100;  // of the registered part
    static constexpr std::size_t kPart = 2 * kMiB;

    void SetUp() override {
        // The first access opens the queue pairs.
        ASSERT_TRUE(pair_.complete(RmaOp::kWrite, to_gpu(0, 1)).is_ok());
    }
    RmaPiece to_gpu(std::size_t at, std::size_t bytes) const {
        return {.local = host_.registration.get(),
                .at = at,
                .remote = &gpu_->descriptor(),
                .there = at,
                .bytes = bytes};
    }
    /// From host memory of the peer into memory of a GPU, or out of it.
    RmaPiece of_own_gpu(std::size_t at, std::size_t bytes) const {
        return {.local = own_gpu_.get(),
                .at = at,
                .remote = &peer_host_.registration->descriptor(),
                .there = at,
                .bytes = bytes};
    }
    /// Returns what a transfer did.
    fake_verbs_counters counts_of(RmaOp op, const std::vector<RmaPiece>& pieces) {
        fakes::reset_fake_counters();
        pair_.post(op, pieces);
        EXPECT_EQ(pair_.wait().to_string(), "ok");
        return fakes::fake_counters();
    }

    VerbsRmaPair pair_;
    Mapping memory_ = gpu_memory();
    std::unique_ptr<Registration> gpu_ = pair_.there->add(part_of(memory_, kAt, kPart)).value();
    std::unique_ptr<Registration> own_gpu_ = pair_.here->add(part_of(memory_, kAt, kPart)).value();
    VerbsMemoryOf host_{*pair_.here, kPart};
    VerbsMemoryOf peer_host_{*pair_.there, kPart};
};

TEST_F(VerbsGpuTransferTest, DataGoesIntoMemoryOfAGpuAndBack) {
    const std::vector<std::byte> bytes = numbered(kPart);
    std::ranges::copy(bytes, host_.bytes.begin());
    ASSERT_EQ(pair_.complete(RmaOp::kWrite, to_gpu(0, kPart)).to_string(), "ok");
    const std::span<std::byte> there = memory_.memory().subspan(kAt, kPart);
    EXPECT_TRUE(std::ranges::equal(there, bytes));
    EXPECT_EQ(memory_.memory()[kAt - 1], std::byte{});
    EXPECT_EQ(memory_.memory()[kAt + kPart], std::byte{});
    std::ranges::fill(host_.bytes, std::byte{});
    ASSERT_EQ(pair_.complete(RmaOp::kRead, to_gpu(0, kPart)).to_string(), "ok");
    EXPECT_EQ(host_.bytes, bytes);
}

TEST_F(VerbsGpuTransferTest, AWriteIsReadBack) {
    const auto counts = counts_of(RmaOp::kWrite, {to_gpu(8, 8)});
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_WRITE], 1U);
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_READ], 1U);
    EXPECT_EQ(counts.doorbells, 1U);
    EXPECT_EQ(counts.signalled, 1U);
    EXPECT_EQ(counts.bytes, 9U) << "8 written, 1 read";
}

TEST_F(VerbsGpuTransferTest, WritesOfOneDoorbellAreReadBackOnce) {
    std::vector<RmaPiece> pieces;
    for (std::size_t i = 0; i < 16; ++i) pieces.push_back(to_gpu(64 * i, 8));
    const auto counts = counts_of(RmaOp::kWrite, pieces);
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_WRITE], 16U);
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_READ], 1U);
    EXPECT_EQ(counts.doorbells, 1U);
}

TEST_F(VerbsGpuTransferTest, EachDoorbellOfAListHasAReadBehindIt) {
    std::vector<RmaPiece> pieces;
    for (std::size_t i = 0; i < 1000; ++i) pieces.push_back(to_gpu(64 * i, 8));
    const auto counts = counts_of(RmaOp::kWrite, pieces);
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_WRITE], 1000U);
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_READ], counts.doorbells);
    EXPECT_LE(counts.doorbells, (1000U + 30) / 31);
}

TEST_F(VerbsGpuTransferTest, ReadsOfAPeersGpuNeedNoFlush) {
    const auto counts = counts_of(RmaOp::kRead, {to_gpu(8, 8)});
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_READ], 1U);
    EXPECT_EQ(driver_.flushes(), 0);
}

TEST_F(VerbsGpuTransferTest, AWriteOutOfOwnGpuIsNeitherInlineNorFlushed) {
    driver_.take_writes(DeviceWrites::kUnordered);
    const auto counts = counts_of(RmaOp::kWrite, {of_own_gpu(8, 8)});
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_WRITE], 1U);
    EXPECT_EQ(counts.inline_requests, 0U) << "a CPU would read memory of the GPU";
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_READ], 0U);
}

TEST_F(VerbsGpuTransferTest, AReadIntoOwnGpuNeedsNoFlushWhereTheGpuKeepsOrder) {
    const auto counts = counts_of(RmaOp::kRead, {of_own_gpu(8, 8)});
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_READ], 1U);
    EXPECT_EQ(driver_.flushes(), 0);
}

TEST_F(VerbsGpuTransferTest, AReadIntoOwnGpuIsFlushedByTheDriver) {
    driver_.take_writes(DeviceWrites::kFlushed);
    const auto counts = counts_of(RmaOp::kRead, {of_own_gpu(8, 8)});
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_READ], 1U);
    EXPECT_EQ(driver_.flushes(), 1);
}

TEST_F(VerbsGpuTransferTest, AFailedFlushIsTheErrorOfTheRead) {
    driver_.take_writes(DeviceWrites::kFlushed);
    driver_.fail("flush_device_writes", Status::internal("no flush"));
    EXPECT_EQ(pair_.complete(RmaOp::kRead, of_own_gpu(8, 8)).message(), "no flush");
    EXPECT_EQ(pair_.complete(RmaOp::kWrite, of_own_gpu(8, 8)).to_string(), "ok");
}

TEST_F(VerbsGpuTransferTest, AReadIntoOwnGpuIsFlushedByARead) {
    driver_.take_writes(DeviceWrites::kUnordered);
    const std::vector<std::byte> bytes = numbered(kPart);
    std::ranges::copy(bytes, peer_host_.bytes.begin());
    const auto counts = counts_of(RmaOp::kRead, {of_own_gpu(8, 8)});
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_READ], 2U) << "one of them of the device's own memory";
    EXPECT_EQ(driver_.flushes(), 0);
    ASSERT_EQ(pair_.complete(RmaOp::kRead, of_own_gpu(0, kPart)).to_string(), "ok");
    EXPECT_TRUE(std::ranges::equal(memory_.memory().subspan(kAt, kPart), bytes));
}

TEST_F(VerbsGpuTransferTest, NoBytesNeedNoFlush) {
    driver_.take_writes(DeviceWrites::kUnordered);
    EXPECT_EQ(counts_of(RmaOp::kRead, {of_own_gpu(8, 0)}).requests[IBV_WR_RDMA_READ], 1U);
    EXPECT_EQ(counts_of(RmaOp::kWrite, {to_gpu(8, 0)}).requests[IBV_WR_RDMA_READ], 1U);
}

/// A request of `opcode`, after `skip` others, fails as if the path were gone.
fake_verbs_rule lost_path(ibv_wr_opcode opcode, std::uint64_t skip = 0) {
    fake_verbs_rule rule{};
    rule.effect = FAKE_VERBS_FAIL;
    rule.opcode = opcode + 1;
    rule.skip = skip;
    rule.count = 1;
    rule.status = IBV_WC_RETRY_EXC_ERR;
    return rule;
}

TEST_F(VerbsGpuTransferTest, AFailedFlushByAReadIsTheErrorOfTheReadAlone) {
    driver_.take_writes(DeviceWrites::kUnordered);
    {
        const fakes::FakeVerbsRule rule(lost_path(IBV_WR_RDMA_READ, 1));
        const Status failed = pair_.complete(RmaOp::kRead, of_own_gpu(8, 8));
        EXPECT_NE(failed.message().find("cannot flush data into memory of a GPU"),
                  std::string::npos)
            << failed.to_string();
    }
    EXPECT_EQ(pair_.complete(RmaOp::kRead, of_own_gpu(8, 8)).to_string(), "ok");
}

/// Reads that the fake holds from the `skip`th on.
fake_verbs_rule held_reads(std::uint64_t skip = 0) {
    fake_verbs_rule rule{};
    rule.effect = FAKE_VERBS_STALL;
    rule.opcode = IBV_WR_RDMA_READ + 1;
    rule.skip = skip;
    return rule;
}

TEST_F(VerbsGpuTransferTest, AWriteIsCompleteOnlyWithItsFlush) {
    fakes::FakeVerbsRule rule(held_reads());
    const RmaPiece piece = to_gpu(8, 8);
    pair_.post(RmaOp::kWrite, {&piece, 1});
    for (int i = 0; i < 100; ++i) pair_.poll();
    EXPECT_EQ(pair_.posts, 1U);
    rule.end();
    EXPECT_EQ(pair_.wait().to_string(), "ok");
}

TEST_F(VerbsGpuTransferTest, AReadIntoOwnGpuIsCompleteOnlyWithItsFlush) {
    driver_.take_writes(DeviceWrites::kUnordered);
    fakes::FakeVerbsRule rule(held_reads(1));
    const RmaPiece piece = of_own_gpu(8, 8);
    pair_.post(RmaOp::kRead, {&piece, 1});
    for (int i = 0; i < 100; ++i) pair_.poll();
    EXPECT_EQ(pair_.posts, 1U);
    rule.end();
    EXPECT_EQ(pair_.wait().to_string(), "ok");
}

TEST_F(VerbsGpuTransferTest, NotificationsBehindWritesIntoAGpuWaitForTheirFlush) {
    fakes::FakeVerbsRule rule(held_reads());
    const RmaPiece piece = to_gpu(8, 8);
    const std::array<std::byte, 1> notification{};
    pair_.post(RmaOp::kWrite, {&piece, 1});
    ASSERT_TRUE(pair_.link->notify(notification).value());
    for (int i = 0; i < 100; ++i) {
        pair_.poll();
        ASSERT_FALSE(pair_.peer->next_notification().value().has_value());
    }
    rule.end();
    EXPECT_EQ(pair_.wait().to_string(), "ok");
    until([&] {
        pair_.poll();
        return pair_.peer->next_notification().value().has_value();
    });
}

TEST_F(VerbsGpuTransferTest, NotificationsKeepTheirOrderBetweenTransfersOfAllKinds) {
    constexpr std::uint32_t kMany = 1'000;
    std::uint32_t seen = 0;
    const auto take_all = [&] {
        pair_.poll();
        while (const auto next = pair_.peer->next_notification().value()) {
            std::uint32_t number = 0;
            std::memcpy(&number, next->data(), sizeof number);
            ASSERT_EQ(number, seen++);
            const std::size_t at = 8 * std::size_t{number};
            const auto there = number % 2 == 0 ? memory_.memory().subspan(kAt + at, 8)
                                               : std::span(peer_host_.bytes).subspan(at, 8);
            ASSERT_TRUE(std::ranges::equal(there, std::span(host_.bytes).subspan(at, 8)));
        }
    };
    std::ranges::copy(numbered(kPart), host_.bytes.begin());
    for (std::uint32_t i = 0; i < kMany && !HasFailure(); ++i) {
        RmaPiece piece = to_gpu(8 * std::size_t{i}, 8);
        if (i % 2 == 1) piece.remote = &peer_host_.registration->descriptor();
        pair_.post(RmaOp::kWrite, {&piece, 1});
        const RmaPiece read = of_own_gpu(kPart - 8, 8);
        if (i % 5 == 4) pair_.post(RmaOp::kRead, {&read, 1});
        until([&] {
            const bool taken = pair_.link->notify(std::as_bytes(std::span(&i, 1))).value();
            if (!taken || i % 3 == 0) take_all();
            return taken || HasFailure();
        });
    }
    until([&] {
        take_all();
        return seen == kMany || HasFailure();
    });
    EXPECT_EQ(pair_.wait().to_string(), "ok");
}

TEST_F(VerbsGpuTransferTest, ADeregisteredMemoryIsReachedNoMore) {
    const abi::MemoryDescriptor ended = gpu_->descriptor();
    RmaPiece piece = to_gpu(0, 8);
    piece.remote = &ended;
    gpu_.reset();
    EXPECT_EQ(pair_.complete(RmaOp::kWrite, piece).code(), StatusCode::kUnavailable);
    EXPECT_EQ(pair_.complete(RmaOp::kRead, piece).code(), StatusCode::kUnavailable);
    EXPECT_EQ(pair_.complete(RmaOp::kWrite, of_own_gpu(0, 8)).to_string(), "ok")
        << "the link goes on";
}

TEST_F(VerbsGpuTransferTest, NoPeerReachesTheRestOfAPage) {
    abi::MemoryDescriptor longer = gpu_->descriptor();
    longer.bytes += kPage;
    RmaPiece piece = to_gpu(kPart - 8, 16);
    piece.remote = &longer;
    piece.at = 0;
    EXPECT_FALSE(pair_.complete(RmaOp::kWrite, piece).is_ok());
    EXPECT_EQ(memory_.memory()[kAt + kPart], std::byte{});
}

TEST_F(VerbsGpuTransferTest, AReadKeepsNoOrderOfAStream) {
    const RmaPiece piece{.local = own_gpu_.get(), .remote = &gpu_->descriptor(), .bytes = 8};
    EXPECT_EQ(pair_.link->read_in_order({&piece, 1}, 1, {}).code(), StatusCode::kUnsupported);
}

/// Two ports, one of which fails.
class VerbsGpuPortsTest : public VerbsGpuTest, public testing::WithParamInterface<ibv_wr_opcode> {};

TEST_P(VerbsGpuPortsTest, WritesMoveToAnotherPortWithTheirFlush) {
    VerbsRmaPair pair({.hca = "=mlx5_0,mlx5_1:1"});
    const Mapping memory = gpu_memory();
    const auto gpu = pair.there->add(all_of(memory)).value();
    VerbsMemoryOf host(*pair.here, kBytes);
    std::vector<RmaPiece> pieces;
    for (std::size_t i = 0; i < 100; ++i)
        pieces.push_back({.local = host.registration.get(),
                          .at = 64 * i,
                          .remote = &gpu->descriptor(),
                          .there = 64 * i,
                          .bytes = 32});
    pair.post(RmaOp::kWrite, pieces);
    ASSERT_EQ(pair.wait().to_string(), "ok");
    std::ranges::copy(numbered(kBytes), host.bytes.begin());
    const fakes::FakeVerbsRule rule(lost_path(GetParam()));
    fakes::reset_fake_counters();
    pair.post(RmaOp::kWrite, pieces);
    ASSERT_EQ(pair.wait().to_string(), "ok");
    for (const RmaPiece& each : pieces)
        EXPECT_TRUE(std::ranges::equal(memory.memory().subspan(each.there, each.bytes),
                                       std::span(host.bytes).subspan(each.at, each.bytes)));
    EXPECT_GT(fakes::fake_counters().requests[IBV_WR_RDMA_WRITE], 100U)
        << "writes whose flush did not come are made again";
}

INSTANTIATE_TEST_SUITE_P(Requests, VerbsGpuPortsTest,
                         testing::Values(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ),
                         [](const auto& test) {
                             return test.param == IBV_WR_RDMA_WRITE ? "write" : "flush";
                         });

}  // namespace
}  // namespace pccl::transport::verbs
