// SPDX-License-Identifier: Apache-2.0

// Faults of RDMA links, which the fake libibverbs injects: each ends as an error that names the
// peer and what to look at.
#include <gmock/gmock.h>
#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "csrc/base/bytes.h"
#include "csrc/base/scope_exit.h"
#include "csrc/base/text/text.h"
#include "tests/cpp/transport/verbs_links.h"
#include "tests/fakes/forked_child.h"
#include "tests/fakes/threads_after_fork.h"

namespace pccl::transport::verbs {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::uint32_t kVendorCode = 66;

fake_verbs_rule failing(ibv_wr_opcode opcode, ibv_wc_status status) {
    fake_verbs_rule rule{};
    rule.effect = FAKE_VERBS_FAIL;
    rule.opcode = opcode + 1;
    rule.count = 1;
    rule.status = status;
    rule.vendor_err = kVendorCode;
    return rule;
}

fake_verbs_rule with_effect(fake_verbs_effect effect, ibv_wr_opcode opcode) {
    fake_verbs_rule rule{};
    rule.effect = effect;
    rule.opcode = opcode + 1;
    return rule;
}

/// Matches the message of a failed completion.
auto names_status(ibv_wc_status status) {
    return AllOf(HasSubstr("mlx5_0:1"),
                 HasSubstr(concat("completion status ", static_cast<int>(status))),
                 HasSubstr(concat("vendor code ", kVendorCode)));
}

/// Statuses that end a queue pair, with words of the explanation.
struct StatusWords {
    ibv_wc_status status;
    const char* words;
};
constexpr StatusWords kStatuses[] = {
    {IBV_WC_LOC_LEN_ERR, "did not fit"},
    {IBV_WC_LOC_QP_OP_ERR, "the device refused the request"},
    {IBV_WC_LOC_PROT_ERR, "local memory is not registered"},
    {IBV_WC_WR_FLUSH_ERR, "an earlier request failed"},
    {IBV_WC_REM_INV_REQ_ERR, "the peer refused the request"},
    {IBV_WC_REM_ACCESS_ERR, "the peer's memory is not registered"},
    {IBV_WC_REM_OP_ERR, "the peer's device failed"},
    {IBV_WC_RETRY_EXC_ERR, "the path to it"},
    {IBV_WC_RNR_RETRY_EXC_ERR, "no receive request in time"},
    {IBV_WC_RESP_TIMEOUT_ERR, "the device reports an error"},
    {IBV_WC_FATAL_ERR, "the device failed"},
    {IBV_WC_GENERAL_ERR, "the device reports an error"},
};

class VerbsStatusTest : public testing::TestWithParam<StatusWords> {};

TEST_P(VerbsStatusTest, OfDataIsTheSendersError) {
    VerbsStreamPair pair;
    const fakes::FakeVerbsRule rule(failing(IBV_WR_RDMA_WRITE_WITH_IMM, GetParam().status));
    const Status error = pair.sender_error();
    EXPECT_EQ(error.code(), StatusCode::kPeerLost);
    EXPECT_EQ(error.peer(), 1);
    EXPECT_THAT(std::string(error.message()),
                AllOf(HasSubstr("rank 1 at 127.0.0.1"), HasSubstr(GetParam().words),
                      names_status(GetParam().status)));
    EXPECT_EQ(pair.sender_error().code(), StatusCode::kPeerLost) << "for good";
    pair.stream.out.reset();
    const Status end = pair.receiver_error();
    EXPECT_EQ(end.code(), StatusCode::kPeerLost);
    EXPECT_EQ(end.peer(), 0);
}

TEST_P(VerbsStatusTest, OfCreditIsTheReceiversError) {
    VerbsStreamPair pair;
    const std::vector<std::byte> bytes = numbered(600 * kKiB);
    ASSERT_EQ(pair.out().send(kCollectiveChannel, bytes, Flush::kNow).value(), bytes.size());
    const fakes::FakeVerbsRule rule(failing(IBV_WR_RDMA_WRITE_WITH_IMM, GetParam().status));
    const Status error = pair.receiver_error();
    EXPECT_EQ(error.code(), StatusCode::kPeerLost);
    EXPECT_EQ(error.peer(), 0);
    EXPECT_THAT(std::string(error.message()),
                AllOf(HasSubstr("rank 0 at 127.0.0.1"), HasSubstr(GetParam().words),
                      names_status(GetParam().status)));
    pair.stream.in.reset();
    const Status end = pair.sender_error();
    EXPECT_EQ(end.code(), StatusCode::kPeerLost);
    EXPECT_EQ(end.peer(), 1);
}

TEST_P(VerbsStatusTest, OfAOneSidedRequestIsThatOfThePostOrOfTheLink) {
    const ibv_wc_status status = GetParam().status;
    const bool is_of_owner = status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR;
    const bool is_of_post = status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_LOC_LEN_ERR;
    for (const RmaOp op : {RmaOp::kWrite, RmaOp::kRead}) {
        VerbsRmaPair pair;
        const VerbsMemoryOf local(*pair.here, 64);
        const VerbsMemoryOf remote(*pair.there, 64);
        const VerbsMemoryOf other(*pair.there, 64);
        const auto piece_of = [&](const VerbsMemoryOf& memory) {
            return RmaPiece{.local = local.registration.get(),
                            .remote = &memory.registration->descriptor(),
                            .bytes = 64};
        };
        const fakes::FakeVerbsRule rule(
            failing(op == RmaOp::kWrite ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, status));
        const Status error = pair.complete(op, piece_of(remote));
        if (is_of_owner || is_of_post) {
            EXPECT_EQ(error.code(),
                      is_of_owner ? StatusCode::kUnavailable : StatusCode::kInvalidArgument);
            EXPECT_TRUE(pair.complete(op, piece_of(other)).is_ok()) << "the link goes on";
            continue;
        }
        EXPECT_EQ(error.code(), StatusCode::kPeerLost);
        EXPECT_EQ(error.peer(), 1);
        EXPECT_THAT(std::string(error.message()),
                    AllOf(HasSubstr("rank 1 at 127.0.0.1"), HasSubstr("no RDMA path is left"),
                          HasSubstr(GetParam().words), names_status(status)));
    }
}

INSTANTIATE_TEST_SUITE_P(All, VerbsStatusTest, testing::ValuesIn(kStatuses), [](const auto& test) {
    return concat("status_", static_cast<int>(test.param.status));
});

TEST(VerbsFaultsTest, OneSidedRequestsMoveToAnotherPort) {
    for (const ibv_wc_status status : {IBV_WC_RETRY_EXC_ERR, IBV_WC_REM_OP_ERR, IBV_WC_FATAL_ERR}) {
        VerbsRmaPair pair({.hca = "=mlx5_0,mlx5_1"});
        VerbsMemoryOf local(*pair.here, 64 * kKiB);
        const VerbsMemoryOf remote(*pair.there, 64 * kKiB);
        std::ranges::copy(numbered(64 * kKiB), local.bytes.begin());
        std::vector<RmaPiece> pieces;
        for (std::size_t at = 0; at < local.bytes.size(); at += kKiB)
            pieces.push_back({.local = local.registration.get(),
                              .at = at,
                              .remote = &remote.registration->descriptor(),
                              .there = at,
                              .bytes = kKiB});
        fake_verbs_rule wanted = failing(IBV_WR_RDMA_WRITE, status);
        wanted.skip = 20;
        const fakes::FakeVerbsRule rule(wanted);
        pair.post(RmaOp::kWrite, pieces);
        const Status moved = pair.wait();
        EXPECT_TRUE(moved.is_ok()) << moved.to_string();
        EXPECT_EQ(remote.bytes, local.bytes);
    }
}

TEST(VerbsFaultsTest, ALostLastPieceIsAnErrorAndNoData) {
    VerbsStreamPair pair;
    ASSERT_EQ(pair.exchange(numbered(100)), numbered(100));
    fake_verbs_rule lost = with_effect(FAKE_VERBS_LOSE_LAST, IBV_WR_RDMA_WRITE_WITH_IMM);
    lost.count = 1;
    const fakes::FakeVerbsRule rule(lost);
    const Status error = pair.sender_error();
    EXPECT_EQ(error.code(), StatusCode::kPeerLost);
    EXPECT_EQ(error.peer(), 1);
    EXPECT_TRUE(pair.in().peek(kCollectiveChannel).value().empty());
    pair.stream.out.reset();
    EXPECT_EQ(pair.receiver_error().peer(), 0);
}

/// A port of the fake that is down for as long as it lives.
class PortDown {
   public:
    explicit PortDown(const char* device) : device_(device) {
        PCCL_FAKE_VERBS(set_port)(device_, 1, 0);
    }
    ~PortDown() { PCCL_FAKE_VERBS(set_port)(device_, 1, 1); }
    PortDown(const PortDown&) = delete;
    PortDown& operator=(const PortDown&) = delete;

   private:
    const char* device_;
};

TEST(VerbsFaultsTest, APortThatIsDownIsTheErrorOfItsLinks) {
    {
        VerbsStreamPair pair;
        ASSERT_EQ(pair.exchange(numbered(100)), numbered(100));
        const PortDown down("mlx5_0");
        for (const Status& error : {pair.sender_error(), pair.receiver_error()}) {
            EXPECT_EQ(error.code(), StatusCode::kPeerLost);
            EXPECT_THAT(std::string(error.message()), HasSubstr("mlx5_0"));
        }
        EXPECT_EQ(pair.sender_error().peer(), 1);
        EXPECT_EQ(pair.receiver_error().peer(), 0);
    }
    VerbsStreamPair again;
    EXPECT_EQ(again.exchange(numbered(100)), numbered(100)) << "it is up again";
}

TEST(VerbsFaultsTest, AnIdleLinkNamesThePortThatIsDown) {
    VerbsStreamPair pair;
    const PortDown down("mlx5_0");
    const auto look = [](auto& link) {
        Status error;
        until([&] {
            error = link.look();
            return !error.is_ok();
        });
        return error;
    };
    const Status sender = look(pair.out());
    EXPECT_EQ(sender.peer(), 1);
    EXPECT_THAT(std::string(sender.message()),
                AllOf(HasSubstr("port 1 of the RDMA device mlx5_0 of this host is down"),
                      HasSubstr("cable")));
    EXPECT_EQ(look(pair.in()).peer(), 0);
}

TEST(VerbsFaultsTest, NewLinksUseThePresentGidOfAPort) {
    VerbsStreamPair pair;
    const auto set_address = [](std::uint32_t ipv4) {
        ASSERT_EQ(PCCL_FAKE_VERBS(change_gid)("mlx5_0", 1, ipv4), 0);
    };
    set_address(0x0a4d0909);
    const ScopeExit restore([&] { set_address(0x0a4d0001); });
    auto stream = try_stream(pair.sender, pair.receiver);
    ASSERT_TRUE(stream.is_ok()) << stream.status().to_string();
    pair.stream = std::move(*stream);
    EXPECT_EQ(pair.exchange(numbered(100)), numbered(100));
}

TEST(VerbsFaultsTest, NewLinksAndRegistrationsGoWithoutAFailedDevice) {
    VerbsRmaPair pair({.hca = "=mlx5_0,mlx5_1"});
    ASSERT_EQ(PCCL_FAKE_VERBS(device_fatal)("mlx5_0"), 0);
    const VerbsMemoryOf local(*pair.here, 64);
    const VerbsMemoryOf remote(*pair.there, 64);
    const Status written =
        pair.complete(RmaOp::kWrite, {.local = local.registration.get(),
                                      .remote = &remote.registration->descriptor(),
                                      .bytes = 64});
    EXPECT_TRUE(written.is_ok()) << written.to_string();
    const auto stream = try_stream(pair.initiator, pair.target);
    EXPECT_TRUE(stream.is_ok()) << stream.status().to_string();
}

TEST(VerbsFaultsTest, MemoryIsRegisteredNoMoreOnceAllDevicesHaveFailed) {
    VerbsRmaPair pair;
    ASSERT_EQ(PCCL_FAKE_VERBS(device_fatal)("mlx5_0"), 0);
    std::array<std::byte, 64> memory{};
    const Status refused = pair.here->add({.data = memory.data(), .bytes = memory.size()}).status();
    EXPECT_THAT(std::string(refused.message()), HasSubstr("the RDMA device mlx5_0 of this host"));
}

TEST(VerbsFaultsTest, AFailedDeviceIsTheErrorOfItsLinks) {
    {
        VerbsStreamPair pair;
        ASSERT_EQ(PCCL_FAKE_VERBS(device_fatal)("mlx5_0"), 0);
        const Status sender = pair.sender_error();
        EXPECT_EQ(sender.code(), StatusCode::kPeerLost);
        EXPECT_EQ(sender.peer(), 1);
        EXPECT_THAT(
            std::string(sender.message()),
            AllOf(HasSubstr("the RDMA device mlx5_0 of this host has failed"), HasSubstr("dmesg")));
        const Status receiver = pair.receiver_error();
        EXPECT_EQ(receiver.peer(), 0);
        EXPECT_THAT(std::string(receiver.message()), HasSubstr("mlx5_0"));
    }
    VerbsStreamPair again;
    EXPECT_EQ(again.exchange(numbered(100)), numbered(100)) << "processes that open it anew";
}

class VerbsLimitsTest : public testing::Test {
   protected:
    ~VerbsLimitsTest() override {
        PCCL_FAKE_VERBS(limit_memlock)(~std::uint64_t{0});
        PCCL_FAKE_VERBS(limit_qps)(1024);
        PCCL_FAKE_VERBS(refuse_registrations)(0, 0);
    }
    /// Returns the error of a link that is refused; the receiver has the same.
    Status refusal() {
        const Status why = try_stream(sender_, receiver_).status();
        EXPECT_EQ(why.code(), StatusCode::kResourceExhausted) << why.to_string();
        return why;
    }

    VerbsHost sender_{0};
    VerbsHost receiver_{1};
};

TEST_F(VerbsLimitsTest, LockedMemoryIsNamedWithItsLimit) {
    const auto is_told = AllOf(HasSubstr("mlx5_0"), HasSubstr("the limit of locked memory"),
                               HasSubstr("ulimit -l unlimited"), HasSubstr("limits.conf"));
    const std::uint64_t pinned = fakes::fake_counters().pinned;
    PCCL_FAKE_VERBS(limit_memlock)(pinned + 1);
    EXPECT_THAT(std::string(refusal().message()), is_told) << "of the sender";
    PCCL_FAKE_VERBS(limit_memlock)(pinned + 64 * kKiB);
    EXPECT_THAT(std::string(refusal().message()), is_told) << "of the receiver";
    EXPECT_THAT(std::string(receiver_.refusal().message()), is_told);
    auto rma = sender_.transport().one_sided().value();
    std::vector<std::byte> memory(kMiB);
    const Status registered = rma->add({.data = memory.data(), .bytes = memory.size()}).status();
    EXPECT_EQ(registered.code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(registered.message()), is_told);
    PCCL_FAKE_VERBS(limit_memlock)(~std::uint64_t{0});
    EXPECT_TRUE(try_stream(sender_, receiver_).is_ok());
    EXPECT_EQ(fakes::fake_counters().pinned, pinned) << "nothing is left";
}

TEST_F(VerbsLimitsTest, ARegistrationIsRefusedWithTheReasonOfTheDevice) {
    auto rma = sender_.transport().one_sided().value();
    std::vector<std::byte> memory(kMiB);
    PCCL_FAKE_VERBS(refuse_registrations)(0, EFAULT);
    const Status refused = rma->add({.data = memory.data(), .bytes = memory.size()}).status();
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("mlx5_0"), HasSubstr("1048576 bytes"), HasSubstr("Bad address")));
}

TEST_F(VerbsLimitsTest, QueuePairsAreNamed) {
    const std::uint64_t pairs = fakes::fake_counters().qps;
    for (const std::uint64_t more : {0, 1}) {
        PCCL_FAKE_VERBS(limit_qps)(static_cast<std::uint32_t>(pairs + more));
        EXPECT_THAT(std::string(refusal().message()),
                    HasSubstr("cannot create a queue pair on mlx5_0:1"));
    }
    PCCL_FAKE_VERBS(limit_qps)(1024);
    EXPECT_TRUE(try_stream(sender_, receiver_).is_ok());
    EXPECT_EQ(fakes::fake_counters().qps, pairs) << "nothing is left";
}

TEST(VerbsSlowReceiverTest, ASenderNeverWaitsWithinItsCapacity) {
    // One-byte messages use up the receive requests of a receiver that does not act.
    for (const std::size_t count : {std::size_t{5'000}, std::size_t{32'768}}) {
        VerbsStreamPair pair(one_port(), kManyRanks);
        ASSERT_LE(count, pair.out().capacity(kMessageChannel));
        const std::vector<std::byte> bytes = numbered(count);
        fakes::reset_fake_counters();
        for (const ChannelId channel : {kCollectiveChannel, kMessageChannel})
            for (const std::byte& each : bytes)
                ASSERT_EQ(pair.out().send(channel, {&each, 1}, Flush::kNow).value(), 1U);
        for (const ChannelId channel : {kCollectiveChannel, kMessageChannel})
            until([&] { return pair.out().flush(channel).value(); });
        EXPECT_EQ(fakes::fake_counters().not_ready, 0U);
        for (const ChannelId channel : {kMessageChannel, kCollectiveChannel}) {
            std::vector<std::byte> received(count);
            MutableBytes into(received);
            until([&] {
                into = into.subspan(pair.in().receive(channel, into).value());
                return into.empty();
            });
            EXPECT_EQ(received, bytes);
        }
        EXPECT_EQ(pair.exchange(bytes), bytes) << "it goes on with immediates";
    }
}

TEST(VerbsSlowReceiverTest, AFullRingTakesNoMoreUntilTheReceiverActs) {
    VerbsStreamPair pair(one_port(), kManyRanks);
    const std::vector<std::byte> bytes = numbered(1 * kMiB);
    const std::size_t taken = pair.out().send(kCollectiveChannel, bytes, Flush::kNow).value();
    EXPECT_GE(taken, pair.out().capacity(kCollectiveChannel));
    EXPECT_LT(taken, bytes.size());
    for (int i = 0; i < 1'000; ++i)
        ASSERT_EQ(pair.out().send(kCollectiveChannel, bytes, Flush::kNow).value(), 0U);
    EXPECT_EQ(pair.exchange(numbered(100), kMessageChannel), numbered(100))
        << "the other channel goes on";
    std::vector<std::byte> received(taken);
    MutableBytes into(received);
    until([&] {
        into = into.subspan(pair.in().receive(kCollectiveChannel, into).value());
        return into.empty();
    });
    EXPECT_TRUE(std::equal(received.begin(), received.end(), bytes.begin()));
    until([&] { return pair.out().send(kCollectiveChannel, bytes, Flush::kNow).value() > 0; });
}

TEST(VerbsSlowReceiverTest, RingsWrapAroundManyTimes) {
    for (const VerbsOptions& options :
         {one_port(), VerbsOptions{.hca = "=mlx5_0,mlx5_1", .queue_pairs = 2}}) {
        VerbsStreamPair pair(options, kManyRanks);
        constexpr std::size_t kAll = 256 * kMiB;
        const std::vector<std::byte> source = numbered(2 * kMiB);
        const Bytes all(source);
        std::size_t moved = 0;
        for (std::size_t i = 0; moved < kAll && !testing::Test::HasFailure(); ++i) {
            const std::size_t bytes = 1 + (i * 7919 + i / 13 * 104'729) % (200 * kKiB);
            const Bytes part = all.subspan((i * 4099) % kMiB, bytes);
            const auto channel = static_cast<ChannelId>(i % kChannels);
            EXPECT_TRUE(std::ranges::equal(pair.exchange(part, channel), part)) << i;
            moved += bytes;
        }
    }
}

TEST(VerbsProcessesTest, AChildOfForkTouchesNothingOfItsParent) {
    auto pair = std::make_unique<VerbsStreamPair>();
    ASSERT_EQ(pair->exchange(numbered(100)), numbered(100));
    fakes::ForkedChild child([&] {
        pair.reset();
        return 7;
    });
    EXPECT_EQ(child.join(), 7);
    const std::vector<std::byte> bytes = numbered(4 * kMiB);
    EXPECT_EQ(pair->exchange(bytes), bytes);
}

TEST(VerbsProcessesTest, AKilledPeerIsNamed) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    auto child = std::make_unique<fakes::ForkedChild>([&] {
        VerbsHost receiver(1);
        ByteWriter out;
        receiver.address().write(out);
        const std::string text = out.take();
        if (::write(pipe[1], text.data(), text.size()) != static_cast<ssize_t>(text.size()))
            return 1;
        while (!receiver.has_accepted()) receiver.serve(std::chrono::milliseconds(10));
        const auto link = receiver.take_accepted();
        while (link->peek(kCollectiveChannel).is_ok()) std::this_thread::yield();
        return 0;
    });
    std::array<char, 4096> text{};
    const auto bytes = ::read(pipe[0], text.data(), text.size());
    ASSERT_GT(bytes, 0);
    ByteReader in(std::string_view(text.data(), static_cast<std::size_t>(bytes)));
    const PeerAddress address = PeerAddress::read(in).value();
    VerbsHost sender(0);
    const LinkRequest request{
        .group = kVerbsGroup, .source = 0, .destination = 1, .channel = 0, .group_size = 2};
    const auto pending = sender.transport().connect(address, request, kVerbsSecret).value();
    std::unique_ptr<SendLink> link;
    until([&] {
        auto made = pending->advance();
        EXPECT_TRUE(made.is_ok()) << made.status().to_string();
        if (made.is_ok()) link = std::move(*made);
        return !made.is_ok() || link != nullptr;
    });
    ASSERT_NE(link, nullptr);
    child.reset();
    Status error;
    const std::array<std::byte, 8> some{};
    until([&] {
        error = link->send(kCollectiveChannel, some, Flush::kNow).status();
        return !error.is_ok();
    });
    EXPECT_EQ(error.code(), StatusCode::kPeerLost);
    EXPECT_EQ(error.peer(), 1);
    ::close(pipe[0]);
    ::close(pipe[1]);
}

}  // namespace
}  // namespace pccl::transport::verbs
