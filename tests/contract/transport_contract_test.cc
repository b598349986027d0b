// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/transport_contract.h"

#include <algorithm>
#include <array>
#include <random>

#include "csrc/base/ids.h"
#include "tests/fakes/connect.h"

namespace pccl::transport::contract {
namespace {

constexpr std::array kBothChannels{kCollectiveChannel, kMessageChannel};

TEST_P(TransportContract, PublishesAShortAddressThatItReaches) {
    ByteWriter out;
    process(1).address().write(out);
    EXPECT_LE(out.size(), 1 * kKiB);
    EXPECT_TRUE(process(0).transport().reaches(process(1).address()).is_ok());
    PeerAddress other = process(1).address();
    other.control.host = "another host";
    for (auto& [kind, addresses] : other.links) addresses = {"certainly no address"};
    EXPECT_FALSE(process(0).transport().reaches(other).is_ok());
    EXPECT_FALSE(process(0).transport().reaches({}).is_ok());
}

TEST_P(TransportContract, DeliversMessagesOfEverySizeInOrder) {
    const LinkPair link = connect(0, 1);
    constexpr std::array<std::size_t, 13> kSizes{
        1, 0, 2, 31, 64, 1023, 4096, 65535, 65536, kMiB + 13, 65537, 12345, 3 * kMiB};
    for (const ChannelId channel : kBothChannels) {
        std::size_t sent = 0;
        for (const std::size_t size : kSizes) {
            const auto message = pattern(size, static_cast<unsigned>(channel), sent);
            std::thread sender(
                [&] { send_all(*link.sender, process(0).waiter(), channel, message); });
            EXPECT_EQ(receive_exactly(*link.receiver, process(1).waiter(), channel, size), message)
                << size << " bytes";
            sender.join();
            sent += size;
        }
    }
}

TEST_P(TransportContract, AnEmptySendTakesNothingAndFailsNothing) {
    const LinkPair link = connect(0, 1);
    const auto taken = link.sender->send(kCollectiveChannel, {}, Flush::kNow);
    ASSERT_TRUE(taken.is_ok());
    EXPECT_EQ(taken.value(), 0U);
    const auto here = link.receiver->peek(kCollectiveChannel);
    ASSERT_TRUE(here.is_ok());
    EXPECT_TRUE(here.value().empty());
}

TEST_P(TransportContract, AFullChannelDoesNotHoldUpTheOther) {
    for (const ChannelId full : kBothChannels) {
        const ChannelId other = full == kCollectiveChannel ? kMessageChannel : kCollectiveChannel;
        const LinkPair link = connect(0, 1, full);
        fill_up(*link.sender, process(0).waiter(), full);
        const auto message = pattern(1000, 9);
        send_all(*link.sender, process(0).waiter(), other, message);
        EXPECT_EQ(receive_exactly(*link.receiver, process(1).waiter(), other, 1000), message);
    }
}

TEST_P(TransportContract, TakesItsCapacityThoughNobodyReads) {
    const LinkPair link = connect(0, 1);
    Waiter& waiter = process(0).waiter();
    for (const ChannelId channel : kBothChannels) {
        const std::size_t capacity = link.sender->capacity(channel);
        ASSERT_GT(capacity, 0U);
        for (const std::size_t piece : {std::size_t{64}, std::size_t{4000}, capacity}) {
            const auto bytes = pattern(capacity, 3);
            for (std::size_t at = 0; at < capacity; at += piece)
                send_all(*link.sender, waiter, channel,
                         Bytes(bytes).subspan(at, std::min(piece, capacity - at)));
            EXPECT_EQ(receive_exactly(*link.receiver, process(1).waiter(), channel, capacity),
                      bytes);
            // The next round starts elsewhere in the buffers.
            send_all(*link.sender, waiter, channel, pattern(777));
            receive_exactly(*link.receiver, process(1).waiter(), channel, 777);
        }
    }
}

TEST_P(TransportContract, HeldBackBytesLeaveWithTheNext) {
    const LinkPair link = connect(0, 1);
    const auto all = pattern(5000);
    for (const ChannelId channel : kBothChannels) {
        for (const std::size_t header : {std::size_t{1}, std::size_t{32}, std::size_t{2000}}) {
            send_all(*link.sender, process(0).waiter(), channel, Bytes(all).first(header),
                     Flush::kLater);
            send_all(*link.sender, process(0).waiter(), channel, Bytes(all).subspan(header));
            EXPECT_EQ(receive_exactly(*link.receiver, process(1).waiter(), channel, 5000), all);
        }
    }
}

TEST_P(TransportContract, FlushPushesOutHeldBackBytes) {
    const LinkPair link = connect(0, 1);
    const auto bytes = pattern(40);
    send_all(*link.sender, process(0).waiter(), kMessageChannel, bytes, Flush::kLater);
    EXPECT_TRUE(eventually(process(0).waiter(), [&] {
        const auto empty = link.sender->flush(kMessageChannel);
        EXPECT_TRUE(empty.is_ok());
        return empty.value();
    }));
    EXPECT_EQ(receive_exactly(*link.receiver, process(1).waiter(), kMessageChannel, 40), bytes);
}

TEST_P(TransportContract, HoldsUpASenderThatNobodyReadsAndLetsItGoOn) {
    const LinkPair link = connect(0, 1);
    for (const ChannelId channel : kBothChannels) {
        const std::size_t taken = fill_up(*link.sender, process(0).waiter(), channel);
        EXPECT_GE(taken, link.sender->capacity(channel));
        EXPECT_EQ(receive_exactly(*link.receiver, process(1).waiter(), channel, taken),
                  pattern(taken));
        send_all(*link.sender, process(0).waiter(), channel, pattern(100, 5));
        EXPECT_EQ(receive_exactly(*link.receiver, process(1).waiter(), channel, 100),
                  pattern(100, 5));
    }
}

TEST_P(TransportContract, ASecondPeekShowsMore) {
    const LinkPair link = connect(0, 1);
    const auto all = pattern(900);
    for (std::size_t at = 0; at < all.size(); at += 300) {
        send_all(*link.sender, process(0).waiter(), kMessageChannel, Bytes(all).subspan(at, 300));
        std::vector<std::byte> seen;
        EXPECT_TRUE(eventually(process(1).waiter(), [&] {
            const auto here = link.receiver->peek(kMessageChannel);
            EXPECT_TRUE(here.is_ok());
            seen.assign(here.value().begin(), here.value().end());
            return seen.size() == at + 300;
        }));
        EXPECT_TRUE(std::equal(seen.begin(), seen.end(), all.begin()));
    }
    link.receiver->consume(kMessageChannel, 900);
    const auto nothing = link.receiver->peek(kMessageChannel);
    ASSERT_TRUE(nothing.is_ok());
    EXPECT_TRUE(nothing.value().empty());
}

/// Takes from the stream in one of the ways that there are, chosen by `random`.
std::size_t take_some(RecvLink& link, ChannelId channel, std::mt19937& random,
                      std::vector<std::byte>& received) {
    const std::size_t want = random() % 4 == 0 ? random() % 200'000 : random() % 700;
    if (random() % 2 == 0) {
        std::vector<std::byte> buffer(want);
        const auto got = link.receive(channel, buffer);
        EXPECT_TRUE(got.is_ok());
        received.insert(received.end(), buffer.begin(),
                        buffer.begin() + static_cast<std::ptrdiff_t>(got.value()));
        return got.value();
    }
    const auto here = link.peek(channel);
    EXPECT_TRUE(here.is_ok());
    const Bytes some = here.value().first(std::min(want, here.value().size()));
    received.insert(received.end(), some.begin(), some.end());
    link.consume(channel, some.size());
    return some.size();
}

TEST_P(TransportContract, PeekConsumeAndReceiveMix) {
    constexpr std::size_t kTotal = 6 * kMiB + 5;
    for (const unsigned seed : {1U, 2U, 3U}) {
        const LinkPair link = connect(0, 1, static_cast<ChannelId>(seed));
        std::thread sender([&] {
            std::mt19937 random(seed);
            for (std::size_t at = 0; at < kTotal;) {
                const std::size_t size =
                    std::min<std::size_t>(kTotal - at, 1 + random() % 100 * (random() % 3000));
                send_all(*link.sender, process(0).waiter(), kCollectiveChannel,
                         pattern(size, seed, at));
                at += size;
            }
        });
        std::mt19937 random(seed + 100);
        std::vector<std::byte> received;
        EXPECT_TRUE(eventually(process(1).waiter(), [&] {
            while (received.size() < kTotal)
                if (take_some(*link.receiver, kCollectiveChannel, random, received) == 0)
                    return false;
            return true;
        }));
        sender.join();
        EXPECT_TRUE(received == pattern(kTotal, seed)) << "seed " << seed;
    }
}

TEST_P(TransportContract, RanksTalkAllAtOnce) {
    constexpr Rank kRanks = 4;
    constexpr std::size_t kBytes = 700'001;
    std::map<std::pair<Rank, Rank>, LinkPair> links;
    for (Rank from = 0; from < kRanks; ++from)
        for (Rank to = 0; to < kRanks; ++to)
            if (from != to) links[{from, to}] = connect(from, to);
    std::vector<std::thread> threads;
    for (auto& [ends, link] : links) {
        threads.emplace_back([&, from = ends.first, to = ends.second, sender = link.sender.get()] {
            send_all(*sender, process(from).waiter(), kCollectiveChannel,
                     pattern(kBytes, static_cast<unsigned>(from * kRanks + to)));
        });
        threads.emplace_back(
            [&, from = ends.first, to = ends.second, receiver = link.receiver.get()] {
                EXPECT_TRUE(
                    receive_exactly(*receiver, process(to).waiter(), kCollectiveChannel, kBytes) ==
                    pattern(kBytes, static_cast<unsigned>(from * kRanks + to)))
                    << from << " to " << to;
            });
    }
    for (std::thread& thread : threads) thread.join();
}

TEST_P(TransportContract, APairHasALinkForEachChannelOfTheSchedule) {
    const LinkPair first = connect(0, 1, 0);
    const LinkPair second = connect(0, 1, 7);
    const LinkPair back = connect(1, 0, 0);
    send_all(*second.sender, process(0).waiter(), kCollectiveChannel, pattern(50, 2));
    send_all(*first.sender, process(0).waiter(), kCollectiveChannel, pattern(50, 1));
    send_all(*back.sender, process(1).waiter(), kCollectiveChannel, pattern(50, 3));
    EXPECT_EQ(receive_exactly(*first.receiver, process(1).waiter(), kCollectiveChannel, 50),
              pattern(50, 1));
    EXPECT_EQ(receive_exactly(*second.receiver, process(1).waiter(), kCollectiveChannel, 50),
              pattern(50, 2));
    EXPECT_EQ(receive_exactly(*back.receiver, process(0).waiter(), kCollectiveChannel, 50),
              pattern(50, 3));
}

TEST_P(TransportContract, CarriesALargeTransferBetweenThreads) {
    constexpr std::size_t kBytes = 64 * kMiB;
    const LinkPair link = connect(0, 1);
    const auto bytes = pattern(kBytes);
    std::thread sender(
        [&] { send_all(*link.sender, process(0).waiter(), kCollectiveChannel, bytes); });
    EXPECT_TRUE(receive_exactly(*link.receiver, process(1).waiter(), kCollectiveChannel, kBytes) ==
                bytes);
    sender.join();
}

TEST_P(TransportContract, AReceiverFindsAllBytesAndThenThatItsPeerLeft) {
    LinkPair link = connect(2, 1);
    const std::size_t count =
        std::min<std::size_t>(link.sender->capacity(kCollectiveChannel), 300'000);
    send_all(*link.sender, process(2).waiter(), kCollectiveChannel, pattern(count));
    send_all(*link.sender, process(2).waiter(), kMessageChannel, pattern(77, 1));
    link.sender.reset();
    EXPECT_EQ(receive_exactly(*link.receiver, process(1).waiter(), kCollectiveChannel, count),
              pattern(count));
    for (int again = 0; again < 2; ++again) {
        const Status error =
            wait_for_error(*link.receiver, process(1).waiter(), kCollectiveChannel);
        EXPECT_EQ(error.code(), StatusCode::kPeerLost) << error.to_string();
        EXPECT_EQ(error.peer(), 2);
    }
    EXPECT_EQ(link.receiver->peek(kCollectiveChannel).status().code(), StatusCode::kPeerLost);
    EXPECT_EQ(receive_exactly(*link.receiver, process(1).waiter(), kMessageChannel, 77),
              pattern(77, 1));
    EXPECT_EQ(wait_for_error(*link.receiver, process(1).waiter(), kMessageChannel).peer(), 2);
}

TEST_P(TransportContract, ASenderFindsThatItsReceiverLeft) {
    LinkPair link = connect(0, 3);
    link.receiver.reset();
    for (int again = 0; again < 2; ++again) {
        const Status error = wait_for_error(*link.sender, process(0).waiter(), kCollectiveChannel);
        EXPECT_EQ(error.code(), StatusCode::kPeerLost) << error.to_string();
        EXPECT_EQ(error.peer(), 3);
    }
}

TEST_P(TransportContract, ASenderThatIsHeldUpFindsThatItsReceiverLeft) {
    LinkPair link = connect(0, 3);
    fill_up(*link.sender, process(0).waiter(), kCollectiveChannel);
    link.receiver.reset();
    const Status error = wait_for_error(*link.sender, process(0).waiter(), kCollectiveChannel);
    EXPECT_EQ(error.code(), StatusCode::kPeerLost) << error.to_string();
    EXPECT_EQ(error.peer(), 3);
}

TEST_P(TransportContract, AbortOfASenderReachesBothEnds) {
    const LinkPair link = connect(2, 1);
    std::thread([&] { link.sender->abort(Status::aborted("enough")); }).join();
    EXPECT_EQ(link.sender->send(kCollectiveChannel, pattern(1), Flush::kNow).status().code(),
              StatusCode::kAborted);
    EXPECT_EQ(link.sender->flush(kMessageChannel).status().code(), StatusCode::kAborted);
    const Status error = wait_for_error(*link.receiver, process(1).waiter(), kCollectiveChannel);
    EXPECT_EQ(error.code(), StatusCode::kPeerLost) << error.to_string();
    EXPECT_EQ(error.peer(), 2);
}

TEST_P(TransportContract, AbortOfAReceiverReachesBothEnds) {
    for (const bool full : {false, true}) {
        const LinkPair link = connect(0, 3, full ? 1 : 0);
        if (full) fill_up(*link.sender, process(0).waiter(), kCollectiveChannel);
        std::thread([&] { link.receiver->abort(Status::aborted("enough")); }).join();
        EXPECT_EQ(link.receiver->peek(kCollectiveChannel).status().code(), StatusCode::kAborted);
        std::array<std::byte, 8> into{};
        EXPECT_EQ(link.receiver->receive(kMessageChannel, into).status().code(),
                  StatusCode::kAborted);
        const Status error = wait_for_error(*link.sender, process(0).waiter(), kCollectiveChannel);
        EXPECT_EQ(error.code(), StatusCode::kPeerLost) << error.to_string();
        EXPECT_EQ(error.peer(), 3);
    }
}

TEST_P(TransportContract, RefusesAPeerWithoutTheSecret) {
    Process& server = process(1);
    LinkRequest request{.group = kGroup, .source = 0, .destination = 1};
    Secret wrong = kSecret;
    wrong.back() ^= 1;
    const auto link = fakes::connect(process(0).transport(), server.address(), request, wrong,
                                     Deadline::after(std::chrono::seconds(60)));
    ASSERT_FALSE(link.is_ok());
    EXPECT_EQ(link.status().code(), StatusCode::kPeerLost) << link.status().to_string();
    EXPECT_EQ(link.status().peer(), 1);
    server.wait_for_refusal();
    EXPECT_EQ(server.unclaimed_links(), 0U);
}

TEST_P(TransportContract, AnswersForAnUnknownGroupAsForAWrongSecret) {
    Process& server = process(1);
    LinkRequest request{.group = {9, 9}, .source = 0, .destination = 1};
    const auto unknown = fakes::connect(process(0).transport(), server.address(), request, kSecret,
                                        Deadline::after(std::chrono::seconds(60)));
    request.group = kGroup;
    const auto wrong = fakes::connect(process(0).transport(), server.address(), request, {},
                                      Deadline::after(std::chrono::seconds(60)));
    ASSERT_FALSE(unknown.is_ok());
    EXPECT_EQ(unknown.status().to_string(), wrong.status().to_string());
    EXPECT_EQ(server.unclaimed_links(), 0U);
}

TEST_P(TransportContract, ConnectingToAProcessThatIsGoneNamesIt) {
    const PeerAddress address = process(5).address();
    processes_.erase(5);
    const LinkRequest request{.group = kGroup, .source = 0, .destination = 5};
    const auto link = fakes::connect(process(0).transport(), address, request, kSecret,
                                     Deadline::after(std::chrono::seconds(60)));
    ASSERT_FALSE(link.is_ok());
    EXPECT_EQ(link.status().code(), StatusCode::kPeerLost) << link.status().to_string();
    EXPECT_EQ(link.status().peer(), 5);
}

TEST_P(TransportContract, ConnectingToAProcessThatDoesNotAnswerEndsAtTheDeadline) {
    Process idle(make_);
    const LinkRequest request{.group = kGroup, .source = 0, .destination = 6};
    const auto link = fakes::connect(process(0).transport(), idle.address(), request, kSecret,
                                     Deadline::after(std::chrono::milliseconds(200)));
    ASSERT_FALSE(link.is_ok());
    EXPECT_EQ(link.status().code(), StatusCode::kTimeout) << link.status().to_string();
    EXPECT_EQ(link.status().peer(), 6);
}

/// Sleeps once, for longer than a healthy test takes, unless `look` finds something.
void sleep_unless(Waiter& waiter, const std::function<bool()>& look) {
    const auto ticket = waiter.prepare();
    if (look())
        waiter.cancel();
    else
        waiter.sleep(ticket, std::chrono::seconds(120));
}

TEST_P(TransportContract, ASleepingReceiverIsWoken) {
    const LinkPair link = connect(0, 1);
    for (const ChannelId channel : kBothChannels) {
        for (int round = 0; round < 20; ++round) {
            const auto arrived = [&] {
                const auto here = link.receiver->peek(channel);
                return here.is_ok() && !here.value().empty();
            };
            const Deadline deadline = Deadline::after(std::chrono::seconds(60));
            std::thread sender([&] {
                system_clock().sleep_for(std::chrono::milliseconds(round % 4));
                send_all(*link.sender, process(0).waiter(), channel, pattern(9));
            });
            while (!arrived()) sleep_unless(process(1).waiter(), arrived);
            EXPECT_FALSE(deadline.passed()) << "slept through a message";
            sender.join();
            receive_exactly(*link.receiver, process(1).waiter(), channel, 9);
        }
    }
}

TEST_P(TransportContract, WhoSleepsUntilALinkIsOpenIsWoken) {
    Process late(make_);
    late.join_group(kGroup, kSecret);
    const LinkRequest request{.group = kGroup, .source = 0, .destination = 6, .group_size = 8};
    auto pending_connect = process(0).transport().connect(late.address(), request, kSecret);
    ASSERT_TRUE(pending_connect.is_ok()) << pending_connect.status().to_string();
    std::unique_ptr<SendLink> link;
    const auto is_open = [&] {
        auto next = (*pending_connect)->advance();
        EXPECT_TRUE(next.is_ok()) << next.status().to_string();
        if (next.is_ok()) link = std::move(*next);
        return link != nullptr || !next.is_ok();
    };
    EXPECT_FALSE(is_open()) << "nobody accepts yet";
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    std::thread acceptor([&] {
        system_clock().sleep_for(std::chrono::milliseconds(20));
        late.start_accepting();
    });
    while (link == nullptr && !HasFailure()) sleep_unless(process(0).waiter(), is_open);
    acceptor.join();
    EXPECT_FALSE(deadline.passed()) << "slept though the peer had accepted";
}

TEST_P(TransportContract, APendingConnectMayBeGivenUp) {
    Process idle(make_);
    const LinkRequest request{.group = kGroup, .source = 0, .destination = 6, .group_size = 8};
    for (int i = 0; i < 3; ++i) {
        auto pending_connect = process(0).transport().connect(idle.address(), request, kSecret);
        ASSERT_TRUE(pending_connect.is_ok()) << pending_connect.status().to_string();
        const auto link = (*pending_connect)->advance();
        ASSERT_TRUE(link.is_ok()) << link.status().to_string();
        EXPECT_EQ(*link, nullptr);
        EXPECT_EQ((*pending_connect)->timeout_error().code(), StatusCode::kTimeout);
        EXPECT_EQ((*pending_connect)->timeout_error().peer(), 6);
    }
    connect(0, 1);
}

TEST_P(TransportContract, ASleepingSenderIsWoken) {
    const LinkPair link = connect(0, 1);
    std::size_t sent = fill_up(*link.sender, process(0).waiter(), kCollectiveChannel);
    const std::size_t wanted = 3 * sent;
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    std::thread receiver([&] {
        system_clock().sleep_for(std::chrono::milliseconds(20));
        EXPECT_TRUE(receive_exactly(*link.receiver, process(1).waiter(), kCollectiveChannel,
                                    wanted) == pattern(wanted));
    });
    const auto send_more = [&] {
        const auto bytes = pattern(std::min(wanted - sent, 64 * kKiB), 0, sent);
        const auto taken = link.sender->send(kCollectiveChannel, bytes, Flush::kNow);
        EXPECT_TRUE(taken.is_ok());
        sent += taken.value();
        return taken.value() > 0;
    };
    while (sent < wanted)
        if (!send_more()) sleep_unless(process(0).waiter(), send_more);
    EXPECT_FALSE(deadline.passed()) << "slept though there was room";
    receiver.join();
}

}  // namespace
}  // namespace pccl::transport::contract
