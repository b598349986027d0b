// SPDX-License-Identifier: Apache-2.0

// Threads that sleep until an RDMA link moves: each event that they wait for ends their sleep.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/cpp/transport/verbs_links.h"

namespace pccl::transport::verbs {
namespace {

// A sleep that nothing ends.
constexpr Duration kForGood = std::chrono::seconds(20);

/// Sleeps until `look` is true; false where a sleep took until its end.
bool asleep_until(Waiter& waiter, const std::function<bool()>& look) {
    while (!look()) {
        const std::uint32_t ticket = waiter.prepare();
        if (look()) {
            waiter.cancel();
            return true;
        }
        const Deadline deadline = Deadline::after(kForGood);
        waiter.sleep(ticket, kForGood);
        if (deadline.passed()) return false;
    }
    return true;
}

/// Waits until nothing more ends a sleep: sockets that were watched do so once.
void calm_down(Waiter& waiter) {
    constexpr Duration kCalm = std::chrono::milliseconds(20);
    for (bool is_calm = false; !is_calm;) {
        const Deadline deadline = Deadline::after(kCalm);
        waiter.sleep(waiter.prepare(), kCalm);
        is_calm = deadline.passed();
    }
}

bool send_asleep(VerbsHost& host, SendLink& link, Bytes bytes) {
    return asleep_until(host.waiter(), [&] {
        const auto sent = link.send(kCollectiveChannel, bytes, Flush::kNow);
        EXPECT_TRUE(sent.is_ok()) << sent.status().to_string();
        if (!sent.is_ok()) return true;
        bytes = bytes.subspan(*sent);
        return bytes.empty() && link.flush(kCollectiveChannel).value();
    });
}

bool receive_asleep(VerbsHost& host, RecvLink& link, MutableBytes into) {
    return asleep_until(host.waiter(), [&] {
        const auto received = link.receive(kCollectiveChannel, into);
        EXPECT_TRUE(received.is_ok()) << received.status().to_string();
        if (!received.is_ok()) return true;
        into = into.subspan(*received);
        return into.empty();
    });
}

TEST(VerbsWakeTest, ProcessesThatSleepExchange10000Messages) {
    VerbsHost first(0);
    VerbsHost second(1);
    const VerbsStream forth = make_stream(first, second);
    const VerbsStream back = make_stream(second, first);
    constexpr std::size_t kMessages = 10'000;
    const auto length_of = [](std::size_t i) { return 1 + i * 37 % 3'000; };
    std::thread other([&] {
        for (std::size_t i = 0; i < kMessages; ++i) {
            std::vector<std::byte> message(length_of(i));
            ASSERT_TRUE(receive_asleep(second, *forth.in, message)) << "message " << i;
            if (i % 64 == 7) system_clock().sleep_for(std::chrono::microseconds(300));
            ASSERT_TRUE(send_asleep(second, *back.out, message)) << "answer " << i;
        }
    });
    for (std::size_t i = 0; i < kMessages && !HasFailure(); ++i) {
        const std::vector<std::byte> message = numbered(length_of(i), i);
        std::vector<std::byte> answer(message.size());
        EXPECT_TRUE(send_asleep(first, *forth.out, message)) << "message " << i;
        if (i % 64 == 0) system_clock().sleep_for(std::chrono::microseconds(300));
        EXPECT_TRUE(receive_asleep(first, *back.in, answer)) << "answer " << i;
        EXPECT_EQ(answer, message);
    }
    other.join();
}

TEST(VerbsWakeTest, ASenderThatSleepsForRoomIsWoken) {
    VerbsHost first(0);
    VerbsHost second(1);
    const VerbsStream stream = make_stream(first, second, kManyRanks);
    constexpr std::size_t kAll = 64 * kMiB;
    constexpr std::size_t kPart = 100 * kKiB;
    const std::vector<std::byte> part = numbered(kPart);
    std::thread receiver([&] {
        std::vector<std::byte> received(kPart);
        for (std::size_t i = 0; i < kAll / kPart; ++i) {
            ASSERT_TRUE(receive_asleep(second, *stream.in, received)) << "part " << i;
            ASSERT_EQ(received, part);
            if (i % 16 == 0) system_clock().sleep_for(std::chrono::microseconds(500));
        }
    });
    for (std::size_t i = 0; i < kAll / kPart; ++i)
        EXPECT_TRUE(send_asleep(first, *stream.out, part)) << "part " << i;
    receiver.join();
}

TEST(VerbsWakeTest, ThreadsThatShareACompletionQueueDoNotTakeEachOthersEvents) {
    VerbsHost sender(0);
    VerbsHost receiver(1);
    constexpr int kThreads = 3;
    constexpr int kRounds = 10'000;
    std::vector<VerbsStream> streams;
    for (int i = 0; i < kThreads; ++i) streams.push_back(make_stream(sender, receiver));
    std::vector<std::atomic<int>> received(kThreads);
    std::atomic<bool> is_lost{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&, i] {
            std::byte one{};
            const auto at = static_cast<std::size_t>(i);
            for (int round = 0; round < kRounds && !is_lost; ++round) {
                if (!receive_asleep(receiver, *streams[at].in, {&one, 1})) is_lost = true;
                received[at].store(round + 1);
            }
        });
    for (int round = 0; round < kRounds && !is_lost; ++round) {
        for (const VerbsStream& stream : streams) {
            const std::byte one{};
            while (stream.out->send(kCollectiveChannel, {&one, 1}, Flush::kNow).value() == 0)
                std::this_thread::yield();
        }
        for (const std::atomic<int>& each : received)
            while (each.load() <= round && !is_lost) std::this_thread::yield();
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_FALSE(is_lost) << "a thread slept though its byte had arrived";
}

TEST(VerbsWakeTest, AMessageWithoutAReceiveRequestWakesTheReceiver) {
    VerbsStreamPair pair;
    const std::byte one{1};
    const auto send = [&] {
        ASSERT_EQ(pair.out().send(kCollectiveChannel, {&one, 1}, Flush::kNow).value(), 1U);
    };
    // All receive requests that the sender knows of.
    for (int i = 0; i < 64; ++i) send();
    fake_verbs_rule held{};
    held.effect = FAKE_VERBS_STALL;
    held.opcode = IBV_WR_RDMA_WRITE_WITH_IMM + 1;
    fakes::FakeVerbsRule rule(held);
    std::vector<std::byte> received(64);
    MutableBytes into(received);
    until([&] {
        into = into.subspan(pair.in().receive(kCollectiveChannel, into).value());
        return into.empty();
    });
    // The credit for these is on its way when the receiver decides to sleep.
    calm_down(pair.receiver.waiter());
    const std::uint32_t ticket = pair.receiver.waiter().prepare();
    ASSERT_TRUE(pair.in().peek(kCollectiveChannel).value().empty());
    send();
    rule.end();
    // What a caller that has nothing more to send does.
    until([&] { return pair.out().flush(kCollectiveChannel).value(); });
    const Deadline deadline = Deadline::after(kForGood);
    pair.receiver.waiter().sleep(ticket, kForGood);
    EXPECT_EQ(pair.in().peek(kCollectiveChannel).value().size(), 1U);
    EXPECT_FALSE(deadline.passed()) << "nothing ended the sleep";
}

}  // namespace
}  // namespace pccl::transport::verbs
