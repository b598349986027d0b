// SPDX-License-Identifier: Apache-2.0

// Sessions whose memory is of GPUs, on a driver whose copies end late (tests/fakes/late_cuda.h).
#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/mapping.h"
#include "tests/cpp/p2p/gpu_sessions.h"
#include "tests/cpp/p2p/pair.h"

namespace pccl::p2p {
namespace {

using testing::HasSubstr;
using transport::Mapping;

TEST_P(GpuSessionTest, ReadsAndWritesByTheReportedPath) {
    const Work read = client_->read(mine_.all(), all_of(remote_)).value();
    ASSERT_EQ(read.wait(test_deadline()).to_string(), "ok");
    EXPECT_TRUE(std::ranges::equal(mine_.bytes(), theirs_.bytes()));
    EXPECT_EQ(read.stats().path, GetParam().path);
    const Stamped other = stamped(*client_, GetParam().here, 3);
    ASSERT_EQ(ended(client_->write(other.all(), all_of(remote_))).to_string(), "ok");
    EXPECT_TRUE(std::ranges::equal(theirs_.bytes(), other.bytes()));
}

TEST_P(GpuSessionTest, ANotificationComesOnceAllDataIsThere) {
    for (unsigned round = 0; round < 5; ++round) {
        const Stamped other = stamped(*client_, GetParam().here, 10 + round);
        const Work work = client_->write(other.all(), all_of(remote_), bytes_of("block 7")).value();
        const auto notified = server_->await_notifications(test_deadline());
        ASSERT_EQ(notified.size(), 1U);
        EXPECT_TRUE(std::ranges::equal(theirs_.bytes(), other.bytes())) << round;
        EXPECT_EQ(work.wait(test_deadline()).to_string(), "ok");
    }
}

/// Against copies that the test makes itself.
TEST_P(GpuSessionTest, ScatteredBlocksLandWhereTheyBelong) {
    constexpr std::uint64_t kBlocks = 60;
    std::mt19937 random(11);
    for (const auto op : {transport::RmaOp::kRead, transport::RmaOp::kWrite}) {
        std::vector<Extent> here;
        std::vector<Extent> there;
        for (std::uint64_t i = 0; i < kBlocks; ++i) {
            const std::uint64_t bytes = random() % (kBytes / kBlocks);
            here.push_back({i * (kBytes / kBlocks), bytes});
            there.push_back({(kBlocks - 1 - i) * (kBytes / kBlocks), bytes});
        }
        const bool reads = op == transport::RmaOp::kRead;
        const Stamped& from = reads ? theirs_ : mine_;
        const Stamped& into = reads ? mine_ : theirs_;
        std::vector<std::byte> expected(into.bytes().begin(), into.bytes().end());
        for (std::uint64_t i = 0; i < kBlocks; ++i) {
            const Extent& source = reads ? there[i] : here[i];
            const Extent& target = reads ? here[i] : there[i];
            std::copy_n(from.bytes().begin() + static_cast<std::ptrdiff_t>(source.offset),
                        source.bytes,
                        expected.begin() + static_cast<std::ptrdiff_t>(target.offset));
        }
        const auto plan = Plan::make({mine_.local, here}, {remote_, there}).value();
        ASSERT_EQ(ended(client_->post(op, plan)).to_string(), "ok");
        EXPECT_TRUE(std::ranges::equal(into.bytes(), expected));
    }
}

/// Blocks that no stage holds a whole number of, and more of one byte than go in one call.
TEST_P(GpuSessionTest, StridedBlocksLandWhereTheyBelong) {
    const std::vector<std::pair<StridedExtents, StridedExtents>> shapes{
        {{5, 1000, 1250, 2500}, {1, 1000, 1001, 2500}}, {{0, 1, 3, 20'000}, {7, 1, 2, 20'000}}};
    for (const auto& [here, there] : shapes) {
        const auto plan = Plan::make({mine_.local, here}, {remote_, there}).value();
        for (const auto op : {transport::RmaOp::kWrite, transport::RmaOp::kRead}) {
            const bool reads = op == transport::RmaOp::kRead;
            const auto from = (reads ? theirs_ : mine_).bytes();
            const auto into = (reads ? mine_ : theirs_).bytes();
            const StridedExtents& source = reads ? there : here;
            const StridedExtents& target = reads ? here : there;
            std::vector<std::byte> expected(into.begin(), into.end());
            for (std::uint64_t i = 0; i < source.count; ++i)
                std::ranges::copy(from.subspan(source.base + i * source.stride, source.bytes),
                                  expected.begin() +
                                      static_cast<std::ptrdiff_t>(target.base + i * target.stride));
            ASSERT_EQ(ended(client_->post(op, plan)).to_string(), "ok");
            EXPECT_TRUE(std::ranges::equal(into, expected)) << reads << ", " << here.bytes;
        }
        const Stamped other = stamped(*client_, GetParam().here, 77);
        std::ranges::copy(other.bytes(), mine_.bytes().begin());
    }
}

TEST_P(GpuSessionTest, MemoryThatIsDeregisteredIsNotReachedAnyMore) {
    ASSERT_EQ(ended(client_->read(mine_.all(), all_of(remote_))).to_string(), "ok");
    ASSERT_EQ(server_->deregister_memory(theirs_.local).to_string(), "ok");
    const std::vector<std::byte> before(theirs_.bytes().begin(), theirs_.bytes().end());
    EXPECT_EQ(ended(client_->write(mine_.all(), all_of(remote_))).code(), StatusCode::kUnavailable);
    EXPECT_EQ(ended(client_->read(mine_.all(), all_of(remote_))).code(), StatusCode::kUnavailable);
    EXPECT_TRUE(std::ranges::equal(theirs_.bytes(), before));
}

TEST_P(GpuSessionTest, MessagesWithTagsGoTheSameRoute) {
    ASSERT_TRUE(server_->load_remote_conn_info(client_->connection_info()).is_ok());
    Transfer incoming = client_->create_transfer("server").value();
    Transfer outgoing = server_->create_transfer("client").value();
    auto got = incoming.post_recv(mine_.all(), 7, test_deadline());
    auto sent = outgoing.post_send(theirs_.all(), 7, test_deadline());
    ASSERT_TRUE(got.is_ok() && sent.is_ok());
    EXPECT_EQ(sent->wait(test_deadline()).to_string(), "ok");
    EXPECT_EQ(got->wait(test_deadline()).to_string(), "ok");
    EXPECT_TRUE(std::ranges::equal(mine_.bytes(), theirs_.bytes()));
}

/// When a transfer has ended, well or not, its memory is its owner's again.
TEST_P(GpuSessionTest, WhoClosesWaitsForEngines) {
    ASSERT_EQ(client_->connect("server", test_deadline()).to_string(), "ok");
    driver_.be_late(1010);
    const Work work = client_->read(mine_.all(), all_of(remote_)).value();
    const Deadline deadline = test_deadline();
    while (!driver_.is_busy(mine_.bytes()) && !work.poll() && !deadline.passed()) {
    }
    client_->close();
    ASSERT_TRUE(work.is_complete());
    EXPECT_FALSE(driver_.is_busy(mine_.bytes()));
}

INSTANTIATE_TEST_SUITE_P(
    Routes, GpuSessionTest,
    testing::Values(RouteCase{"shm", Place::kGpu, Place::kGpu, "shm, by CUDA IPC"},
                    RouteCase{"shm", Place::kHost, Place::kGpu, "shm, through pinned memory"},
                    RouteCase{"shm", Place::kGpu, Place::kHost, "shm, through pinned memory"},
                    RouteCase{"shm", Place::kGpu, Place::kUnshareableGpu, "shm, by messages"},
                    RouteCase{"shm", Place::kHost, Place::kUnshareableGpu, "shm, by messages"},
                    RouteCase{"tcp", Place::kGpu, Place::kGpu, "tcp, by messages"},
                    RouteCase{"tcp", Place::kHost, Place::kGpu, "tcp, by messages"},
                    RouteCase{"tcp", Place::kGpu, Place::kHost, "tcp, by messages"}));

using GpuStageTest = GpuSessionTest;

/// Carries `got` on until `stage` is reached, or time is over.
MessageStage progress_to(const Message& got, Session& session, MessageStage stage) {
    const Deadline deadline = test_deadline();
    while (got.stage() < stage && !deadline.passed()) static_cast<void>(session.notifications());
    return got.stage();
}

TEST_P(GpuStageTest, AReceiveByMessagesHasArrivedBeforeItIsUnpacked) {
    ASSERT_TRUE(server_->load_remote_conn_info(client_->connection_info()).is_ok());
    const std::vector<std::byte> before(mine_.bytes().begin(), mine_.bytes().end());
    Transfer incoming = client_->create_transfer("server").value();
    Transfer outgoing = server_->create_transfer("client").value();
    const Extent part{0, 1 * kMiB};
    const Message got = incoming.post_recv({mine_.local, part}, 7, test_deadline()).value();
    EXPECT_EQ(got.stage(), MessageStage::kPosted);
    driver_.be_late(1000000000);
    const Message sent = outgoing.post_send({theirs_.local, part}, 7, test_deadline()).value();
    EXPECT_EQ(progress_to(got, *client_, MessageStage::kArrived), MessageStage::kArrived);
    EXPECT_TRUE(std::ranges::equal(mine_.bytes(), before));
    EXPECT_EQ(sent.stage(), MessageStage::kPosted);
    driver_.come_at_once();
    EXPECT_EQ(progress_to(got, *client_, MessageStage::kUnpacked), MessageStage::kUnpacked);
    EXPECT_TRUE(
        std::ranges::equal(mine_.bytes().first(part.bytes), theirs_.bytes().first(part.bytes)));
    EXPECT_TRUE(got.is_complete());
    EXPECT_EQ(got.stage(), MessageStage::kConsumed);
    EXPECT_EQ(sent.wait(test_deadline()).to_string(), "ok");
    EXPECT_EQ(sent.stage(), MessageStage::kConsumed);
}

TEST_P(GpuStageTest, OneWhoseMemoryIsLostMeanwhileStaysArrived) {
    ASSERT_TRUE(server_->load_remote_conn_info(client_->connection_info()).is_ok());
    Transfer incoming = client_->create_transfer("server").value();
    Transfer outgoing = server_->create_transfer("client").value();
    const Extent part{0, 4096};
    const Message got = incoming.post_recv({mine_.local, part}, 7, test_deadline()).value();
    driver_.be_late(100'000);
    const Message sent = outgoing.post_send({theirs_.local, part}, 7, test_deadline()).value();
    EXPECT_EQ(progress_to(got, *client_, MessageStage::kArrived), MessageStage::kArrived);
    client_->close();
    EXPECT_EQ(got.wait(test_deadline()).code(), StatusCode::kAborted);
    EXPECT_EQ(got.stage(), MessageStage::kArrived);
}

INSTANTIATE_TEST_SUITE_P(Messages, GpuStageTest,
                         testing::Values(RouteCase{"tcp", Place::kGpu, Place::kHost, "by messages"},
                                         RouteCase{"shm", Place::kUnshareableGpu, Place::kHost,
                                                   "by messages"}));

using GpuBatchTest = GpuSessionTest;

TEST_P(GpuBatchTest, SmallBlocksGoInOneCall) {
    const auto strided = Plan::make({mine_.local, StridedExtents{0, 1024, 2048, 1000}},
                                    {remote_, StridedExtents{0, 1024, 3072, 1000}})
                             .value();
    std::vector<Extent> rows;
    for (std::uint64_t i = 0; i < 1000; ++i) rows.push_back({(i * 7 % 1000) * 2048, 1024});
    const auto listed = Plan::make({mine_.local, rows}, {remote_, rows}).value();
    for (const auto& plan : {strided, listed}) {
        const std::size_t calls = driver_.calls();
        ASSERT_EQ(ended(client_->post(transport::RmaOp::kRead, plan)).to_string(), "ok");
        EXPECT_LE(driver_.calls() - calls, 60U);  // for 1000 blocks, on both sides
    }
    EXPECT_GE(driver_.most_at_once(), 100U);
}

INSTANTIATE_TEST_SUITE_P(
    Routes, GpuBatchTest,
    testing::Values(RouteCase{"shm", Place::kGpu, Place::kGpu, "shm, by CUDA IPC"},
                    RouteCase{"shm", Place::kGpu, Place::kUnshareableGpu, "shm, by messages"},
                    RouteCase{"tcp", Place::kGpu, Place::kGpu, "tcp, by messages"}));

using GpuCopyTest = GpuSessionTest;

TEST_P(GpuCopyTest, AnEngineThatFailsFailsTheTransferAlone) {
    driver_.fail_copies(Status::internal("cuMemcpyAsync: an illegal memory access"));
    const Status status = ended(client_->read(mine_.all(), all_of(remote_)));
    EXPECT_THAT(status.message(), HasSubstr("illegal memory access"));
    driver_.fail_copies(Status::ok());
    EXPECT_EQ(ended(client_->read(mine_.all(), all_of(remote_))).to_string(), "ok");
    EXPECT_TRUE(std::ranges::equal(mine_.bytes(), theirs_.bytes()));
}

using UnorderedReadTest = OrderedReadTest;

TEST_P(UnorderedReadTest, IsRefusedWithTheReason) {
    const Status status = read().status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_THAT(status.message(), HasSubstr("session \"server\""));
    EXPECT_THAT(status.message(), HasSubstr(GetParam().path));  // here: why
    EXPECT_THAT(status.message(), HasSubstr("synchronise the stream"));
    // Nothing is left in use.
    EXPECT_EQ(client_->deregister_memory(mine_.local).to_string(), "ok");
}

INSTANTIATE_TEST_SUITE_P(
    Routes, UnorderedReadTest,
    testing::Values(RouteCase{"shm", Place::kHost, Place::kGpu, "the local memory is the host's"},
                    RouteCase{"shm", Place::kGpu, Place::kHost, "it is the host's"},
                    RouteCase{"shm", Place::kGpu, Place::kUnshareableGpu,
                              "CUDA IPC does not share"},
                    RouteCase{"tcp", Place::kGpu, Place::kGpu, "reached with its help"}));

INSTANTIATE_TEST_SUITE_P(Ipc, GpuCopyTest,
                         testing::Values(RouteCase{"shm", Place::kGpu, Place::kGpu,
                                                   "by CUDA IPC"}));

/// Which is the sender's matter alone: its receiver has found that CUDA IPC shares the memory.
TEST_P(GpuCopyTest, AMessageGoesByMessagesWhereItsSenderCannotOpenTheMemory) {
    ASSERT_TRUE(server_->load_remote_conn_info(client_->connection_info()).is_ok());
    Transfer incoming = client_->create_transfer("server").value();
    Transfer outgoing = server_->create_transfer("client").value();
    auto got = incoming.post_recv(mine_.all(), 7, test_deadline());
    ASSERT_TRUE(got.is_ok()) << got.status().to_string();
    // Who cannot tell on which GPU memory lies opens none.
    driver_.fail("bus_ids", Status::unsupported("cuDeviceGetPCIBusId: not supported"));
    auto sent = outgoing.post_send(theirs_.all(), 7, test_deadline());
    ASSERT_TRUE(sent.is_ok()) << sent.status().to_string();
    EXPECT_EQ(sent->wait(test_deadline()).to_string(), "ok");
    EXPECT_EQ(got->wait(test_deadline()).to_string(), "ok");
    EXPECT_TRUE(std::ranges::equal(mine_.bytes(), theirs_.bytes()));
}

TEST_P(GpuCopyTest, AnotherGpuOfThisProcessIsReachedFirst) {
    Stamped other{Mapping::shareable("gpu", kBytes).value(), nullptr};
    driver_.adopt(other.mapping, 1);
    other.local = client_->register_gpu_memory(other.bytes(), 1).value();
    ASSERT_EQ(ended(client_->read(other.all(), all_of(remote_))).to_string(), "ok");
    EXPECT_TRUE(std::ranges::equal(other.bytes(), theirs_.bytes()));
    EXPECT_TRUE(driver_.reaches(1, 0));
}

TEST(GpuMemory, WithoutCudaIsRefusedInOneLine) {
    if (sys::cuda::process_driver().is_ok()) GTEST_SKIP() << "this machine has CUDA";
    const auto made = session("alone", "shm");
    std::vector<std::byte> bytes(64);
    const Status status = made->register_gpu_memory(bytes, 0).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_THAT(status.message(), HasSubstr("memory of GPUs is not reached: "));
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
}

TEST(GpuMemory, ThatCudaIpcDoesNotShareIsRefusedWithTheReason) {
    StandIn gpus;
    const auto server = session("server", "shm");
    const auto client = session("client", "shm");
    const Mapping gpu = Mapping::anonymous(4096).value();
    gpus.driver.adopt(gpu, 2);
    const auto theirs = server->register_gpu_memory(gpu.memory(), -1).value();
    EXPECT_EQ(theirs->device(), 2);
    EXPECT_LT(theirs->serialised_descriptor().size(), 256U);
    Stamped mine(*client, 4096, 5);
    const RemoteMemory remote = seen_by(*client, *server, *theirs);
    const Work work = client->read(mine.all(), all_of(remote)).value();
    ASSERT_EQ(work.wait(test_deadline()).to_string(), "ok");
    EXPECT_THAT(work.stats().reasons, HasSubstr("CUDA IPC does not share"));
    // Memory of the host goes as fast as ever.
    Stamped host(*server, 4096, 6);
    const RemoteMemory fast = seen_by(*client, *server, *host.local);
    const Work other = client->read(mine.all(), all_of(fast)).value();
    ASSERT_EQ(other.wait(test_deadline()).to_string(), "ok");
    EXPECT_EQ(other.stats().path, "shm, by the kernel");
}

}  // namespace
}  // namespace pccl::p2p
