// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/loopback/loopback_fabric.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "csrc/base/ids.h"
#include "tests/cpp/transport/group_identity.h"
#include "tests/fakes/connect.h"
#include "tests/fakes/host.h"
#include "tests/fakes/loopback/manual_clock.h"

namespace pccl::transport::loopback {
namespace {

/// All processes of a fabric on the test's own thread: nothing here depends on scheduling.
class LoopbackWorld {
   public:
    explicit LoopbackWorld(const FabricOptions& options, int processes = 3)
        : fabric_(LoopbackFabric::create(options)) {
        for (int i = 0; i < processes; ++i) hosts_.push_back(std::make_unique<Host>(*fabric_));
    }

    Result<std::unique_ptr<SendLink>> open_link(Rank source, Rank destination,
                                                ChannelId channel = 0) {
        const LinkRequest request{
            .group = kGroup, .source = source, .destination = destination, .channel = channel};
        return fakes::connect(host(source).transport(), host(destination).address(), request,
                              kSecret, Deadline::after(std::chrono::seconds(30)));
    }
    std::pair<std::unique_ptr<SendLink>, std::unique_ptr<RecvLink>> connect(Rank source,
                                                                            Rank destination,
                                                                            ChannelId channel = 0) {
        auto sender = open_link(source, destination, channel);
        EXPECT_TRUE(sender.is_ok()) << sender.status().to_string();
        return {std::move(sender.value()), std::move(host(destination).links[{source, channel}])};
    }
    LoopbackFabric& fabric() { return *fabric_; }
    void close(Rank rank) { hosts_[static_cast<std::size_t>(rank)].reset(); }

   private:
    struct Host final : fakes::Host {
        explicit Host(LoopbackFabric& fabric)
            : fakes::Host([&fabric](Waiter& own) { return fakes::loopback_member(fabric, own); }) {
            static_cast<LoopbackControlPlane&>(control()).answer_inline(*this);
        }
        std::optional<Secret> secret_of(const GroupId&) override { return kSecret; }
        void accepted(const LinkRequest& request, std::unique_ptr<RecvLink> link) override {
            links[{request.source, request.channel}] = std::move(link);
        }
        void refused(std::string_view, const Status& why) override { FAIL() << why.to_string(); }

        std::map<std::pair<Rank, ChannelId>, std::unique_ptr<RecvLink>> links;
    };
    Host& host(Rank rank) { return *hosts_[static_cast<std::size_t>(rank)]; }

    std::shared_ptr<LoopbackFabric> fabric_;
    std::vector<std::unique_ptr<Host>> hosts_;
};

std::vector<std::byte> numbered(std::size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
    return bytes;
}

/// What each call moved, up to `calls` calls or the first error: a trace of the faults.
std::vector<long> trace_of(SendLink& sender, RecvLink& receiver, int calls) {
    std::vector<long> trace;
    std::array<std::byte, 4096> into{};
    const auto bytes = numbered(1000);
    for (int i = 0; i < calls; ++i) {
        const auto sent = sender.send(i % 2, bytes, Flush::kNow);
        const auto got = receiver.receive(i % 2, into);
        trace.push_back(sent.is_ok() ? static_cast<long>(sent.value()) : -1);
        trace.push_back(got.is_ok() ? static_cast<long>(got.value()) : -1);
    }
    return trace;
}

TEST(LoopbackTest, TheSameSeedMeetsTheSameFaults) {
    const auto run = [](std::uint64_t seed, bool other_traffic) {
        LoopbackWorld world(
            {.faults = {.seed = seed, .short_write = 0.5, .short_read = 0.5, .reset = 0.01}});
        const auto other = world.connect(2, 1);
        auto [sender, receiver] = world.connect(0, 1);
        if (other_traffic) trace_of(*other.first, *other.second, 50);
        return trace_of(*sender, *receiver, 300);
    };
    EXPECT_EQ(run(1, false), run(1, false));
    EXPECT_EQ(run(1, false), run(1, true)) << "other links must not matter";
    EXPECT_NE(run(1, false), run(2, false));
}

TEST(LoopbackTest, ShortReadsAndWritesLoseNothing) {
    LoopbackWorld world(
        {.faults = {.seed = 3, .short_write = 0.9, .short_read = 0.9}, .capacity = 700});
    auto [sender, receiver] = world.connect(0, 1);
    const auto all = numbered(50'000);
    std::vector<std::byte> received;
    std::size_t sent = 0;
    std::size_t shortened = 0;
    while (received.size() < all.size()) {
        const Bytes next = Bytes(all).subspan(sent, std::min<std::size_t>(500, all.size() - sent));
        const std::size_t taken = sender->send(0, next, Flush::kNow).value();
        shortened += taken < next.size() ? 1 : 0;
        sent += taken;
        const Bytes here = receiver->peek(0).value();
        received.insert(received.end(), here.begin(), here.end());
        receiver->consume(0, here.size());
    }
    EXPECT_EQ(received, all);
    EXPECT_GT(shortened, 20U);
}

TEST(LoopbackTest, DelayedBytesArriveByTheClock) {
    ManualClock clock;
    LoopbackWorld world(
        {.faults = {.seed = 4, .longest_delay = std::chrono::seconds(10)}, .clock = &clock});
    auto [sender, receiver] = world.connect(0, 1);
    ASSERT_EQ(sender->send(0, numbered(100), Flush::kNow).value(), 100U);
    EXPECT_TRUE(receiver->peek(0)->empty());
    clock.advance(std::chrono::seconds(10));
    EXPECT_EQ(receiver->peek(0)->size(), 100U);
}

TEST(LoopbackTest, StreamsOvertakeEachOtherButStayInOrder) {
    ManualClock clock;
    LoopbackWorld world(
        {.faults = {.seed = 5, .longest_delay = std::chrono::seconds(10)}, .clock = &clock});
    auto [sender, receiver] = world.connect(0, 1);
    std::array<std::string, kChannels> received;
    bool second_led = false;
    bool first_led = false;
    for (int round = 0; round < 40; ++round) {
        const std::byte mark{static_cast<unsigned char>('a' + round % 26)};
        for (ChannelId channel = 0; channel < kChannels; ++channel)
            ASSERT_EQ(sender->send(channel, {&mark, 1}, Flush::kNow).value(), 1U);
        clock.advance(std::chrono::seconds(1));
        for (ChannelId channel = 0; channel < kChannels; ++channel) {
            std::array<std::byte, 64> into{};
            const std::size_t got = receiver->receive(channel, into).value();
            for (std::size_t i = 0; i < got; ++i)
                received[static_cast<std::size_t>(channel)] += static_cast<char>(into[i]);
        }
        first_led |= received[0].size() > received[1].size();
        second_led |= received[1].size() > received[0].size();
    }
    EXPECT_TRUE(first_led && second_led);
    for (const std::string& text : received)
        for (std::size_t i = 0; i < text.size(); ++i)
            EXPECT_EQ(text[i], static_cast<char>('a' + i % 26)) << text;
}

TEST(LoopbackTest, BytesThatAreHeldBackStayInvisible) {
    LoopbackWorld world({});
    auto [sender, receiver] = world.connect(0, 1);
    ASSERT_EQ(sender->send(0, numbered(10), Flush::kLater).value(), 10U);
    EXPECT_TRUE(receiver->peek(0)->empty());
    ASSERT_TRUE(sender->flush(0).value());
    EXPECT_EQ(receiver->peek(0)->size(), 10U);
}

TEST(LoopbackTest, AResetLinkFailsAtBothEndsAndOthersDoNot) {
    LoopbackWorld world({.faults = {.seed = 6, .reset = 0.05}});
    auto [sender, receiver] = world.connect(0, 1);
    Status status;
    std::size_t sent = 0;
    for (int i = 0; i < 1000 && status.is_ok(); ++i) {
        const auto taken = sender->send(0, numbered(1), Flush::kNow);
        status = taken.status();
        sent += taken.is_ok() ? taken.value() : 0;
    }
    EXPECT_EQ(status.code(), StatusCode::kPeerLost);
    EXPECT_EQ(status.peer(), 1);
    EXPECT_GT(sent, 0U);
    EXPECT_EQ(receiver->peek(0)->size(), sent) << "what had arrived is still there";
    receiver->consume(0, sent);
    EXPECT_EQ(receiver->peek(0).status().peer(), 0);
    EXPECT_TRUE(world.open_link(0, 1, 1).is_ok()) << "the processes live on";
}

TEST(LoopbackTest, ADoomedProcessDiesAtItsCall) {
    LoopbackWorld world({.faults = {.doomed_process = 1, .dies_at_call = 4}});
    auto to_doomed = world.connect(0, 1);
    auto from_doomed = world.connect(1, 2);  // its first call
    auto aside = world.connect(0, 2);
    ASSERT_TRUE(to_doomed.second->peek(0).is_ok());                              // second
    ASSERT_TRUE(from_doomed.first->send(0, numbered(5), Flush::kNow).is_ok());   // third
    EXPECT_EQ(to_doomed.second->peek(0).status().code(), StatusCode::kAborted);  // fourth
    EXPECT_EQ(from_doomed.first->flush(0).status().code(), StatusCode::kAborted);
    EXPECT_EQ(to_doomed.first->send(0, numbered(1), Flush::kNow).status().peer(), 1);
    EXPECT_EQ(from_doomed.second->peek(0)->size(), 5U);
    from_doomed.second->consume(0, 5);
    EXPECT_EQ(from_doomed.second->peek(0).status().peer(), 1);
    EXPECT_EQ(world.open_link(0, 1, 9).status().code(), StatusCode::kPeerLost);
    EXPECT_EQ(world.open_link(1, 0).status().code(), StatusCode::kAborted);
    EXPECT_EQ(aside.first->send(0, numbered(1), Flush::kNow).value(), 1U);
}

TEST(LoopbackTest, AProcessCanBeKilled) {
    LoopbackWorld world({});
    auto [sender, receiver] = world.connect(0, 1);
    world.fabric().kill(0);
    EXPECT_EQ(sender->send(0, numbered(1), Flush::kNow).status().code(), StatusCode::kAborted);
    EXPECT_EQ(receiver->peek(0).status().code(), StatusCode::kPeerLost);
    world.fabric().kill(77);
}

TEST(LoopbackTest, LinksMayOutliveTheirProcesses) {
    LoopbackWorld world({});
    auto [sender, receiver] = world.connect(0, 1);
    world.close(1);
    EXPECT_EQ(sender->send(0, numbered(1), Flush::kNow).status().peer(), 1);
    EXPECT_EQ(receiver->peek(0).status().code(), StatusCode::kAborted);
    world.close(0);
    EXPECT_FALSE(sender->flush(0).is_ok());
}

TEST(LoopbackTest, AddressesOfAnotherFabricAreOutOfReach) {
    const auto fabric = LoopbackFabric::create();
    const auto other = LoopbackFabric::create();
    const auto waiter = std::move(Waiter::create().value());
    const auto here = std::move(fabric->join(*waiter).value());
    const auto there = std::move(other->join(*waiter).value());
    const PeerAddress away{.control = there.control->address(), .links = {}};
    const PeerAddress home{.control = here.control->address(), .links = {}};
    EXPECT_EQ(here.transport->reaches(away).code(), StatusCode::kUnavailable);
    EXPECT_TRUE(here.transport->reaches(home).is_ok());
}

TEST(ManualClockTest, MovesOnlyByCalls) {
    ManualClock clock;
    const Deadline deadline = Deadline::after(std::chrono::hours(1), clock);
    EXPECT_FALSE(deadline.passed(clock));
    clock.advance(std::chrono::minutes(59));
    EXPECT_EQ(deadline.remaining(clock), std::chrono::minutes(1));
    clock.sleep_for(std::chrono::minutes(1));
    EXPECT_TRUE(deadline.passed(clock));
}

}  // namespace
}  // namespace pccl::transport::loopback
