// SPDX-License-Identifier: Apache-2.0

// Sessions whose memory of GPUs is reached by RDMA, on the fake libibverbs.
#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/cpp/p2p/gpu_sessions.h"
#include "tests/fakes/verbs_control.h"

namespace pccl::p2p {
namespace {

using testing::HasSubstr;

/// Sessions use the emulated device only where they name RDMA. Real devices of the machine, where
/// there are any, take its place.
[[maybe_unused]] const bool kIsFakeRdma = [] {
    ::setenv("FAKE_VERBS_DEVICES", "rxe0", 1);
    return fakes::use_fake_verbs();
}();

INSTANTIATE_TEST_SUITE_P(
    Rdma, GpuSessionTest,
    testing::Values(RouteCase{"verbs", Place::kGpu, Place::kGpu, "verbs, by RDMA"},
                    RouteCase{"verbs", Place::kHost, Place::kGpu, "verbs, by RDMA"},
                    RouteCase{"verbs", Place::kGpu, Place::kHost, "verbs, by RDMA"}));

using RdmaOrderTest = GpuSessionTest;

TEST_P(RdmaOrderTest, ARdmaReadKeepsNoOrderOfAStream) {
    const Stream stream{driver_.create_stream(0).value(), 0};
    const auto plan =
        Plan::make({mine_.local, Extent{0, kBytes}}, {remote_, Extent{0, kBytes}}).value();
    const auto read = client_->read_in_order(stream, plan, test_deadline());
    EXPECT_EQ(read.status().code(), StatusCode::kUnsupported);
    EXPECT_THAT(read.status().message(), HasSubstr("(the path is RDMA)"));
}

INSTANTIATE_TEST_SUITE_P(Rdma, RdmaOrderTest,
                         testing::Values(RouteCase{"verbs", Place::kGpu, Place::kGpu,
                                                   "verbs, by RDMA"}));

TEST(RdmaRefusalTest, MemoryThatNoDeviceReachesGoesByMessages) {
    if (fakes::has_real_verbs()) GTEST_SKIP() << "real devices reach the memory of emulated GPUs";
    StandIn gpus;
    const auto server = session("server", "verbs");
    const auto client = session("client", "verbs");
    const Mapping memory = Mapping::shareable("gpu", 1000).value();
    gpus.driver.adopt(memory, 0);
    PCCL_FAKE_VERBS(set_dmabuf)(0);
    PCCL_FAKE_VERBS(set_gpu_memory)(memory.memory().data(), memory.memory().size());
    const auto theirs = server->register_gpu_memory(memory.memory(), 0);
    PCCL_FAKE_VERBS(set_gpu_memory)(nullptr, 0);
    PCCL_FAKE_VERBS(set_dmabuf)(1);
    ASSERT_TRUE(theirs.is_ok()) << theirs.status().to_string();
    p2p::Stamped mine(*client, 1000, 2);
    const RemoteMemory remote = seen_by(*client, *server, **theirs);
    const Work written = client->write(mine.all(), all_of(remote)).value();
    EXPECT_EQ(written.wait(test_deadline()).to_string(), "ok");
    EXPECT_EQ(written.stats().path, "verbs, by messages");
    EXPECT_TRUE(std::ranges::equal(memory.memory(), mine.bytes()));
    client->close();
    server->close();
}

}  // namespace
}  // namespace pccl::p2p
