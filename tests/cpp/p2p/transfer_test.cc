// SPDX-License-Identifier: Apache-2.0

// Messages with tags: what both sides' programs see of them, over every transport.
#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <optional>
#include <random>

#include <pccl/transfer.h>
#include "csrc/base/ids.h"
#include "tests/cpp/p2p/pair.h"
#include "tests/cpp/p2p/transfers.h"

namespace pccl::p2p {
namespace {

using testing::HasSubstr;

TEST_P(TransferTest, ReadsAndWritesMoveTheirBytesAndNotifyBehindThem) {
    const auto theirs = theirs_.bytes();
    const auto mine = mine_.bytes();
    const Work read = to_server_
                          .post_read({mine_.local, {0, kBytes / 3}}, {remote_, {7, kBytes / 3}},
                                     test_deadline(), bytes_of("read"))
                          .value();
    const Work written =
        to_server_
            .post_write({mine_.local, {kBytes / 2, 1000}}, {remote_, {kBytes / 2, 1000}},
                        test_deadline(), bytes_of("written"))
            .value();
    ASSERT_EQ(to_server_.wait(test_deadline()).to_string(), "ok");
    EXPECT_TRUE(to_server_.is_complete());
    EXPECT_TRUE(read.is_complete());
    EXPECT_EQ(written.stats().bytes, 1000U);
    auto expected = mine;
    std::copy_n(theirs.begin() + 7, kBytes / 3, expected.begin());
    EXPECT_EQ(mine_.bytes(), expected);
    expected = theirs;
    std::copy_n(mine.begin() + kBytes / 2, 1000, expected.begin() + kBytes / 2);
    EXPECT_EQ(theirs_.bytes(), expected);
    std::vector<std::string> notified;
    for (const Deadline deadline = test_deadline(); notified.size() < 2 && !deadline.passed();)
        for (const auto& each : server_->await_notifications(deadline))
            notified.push_back(text_of(each));
    EXPECT_THAT(notified, testing::UnorderedElementsAre("read", "written"));
}

TEST_P(TransferTest, PiecesOfReadsAndWritesAreChunks) {
    constexpr std::uint64_t kChunk = 64 * kKiB;
    Transfer fine = client_->create_transfer("server", {.chunk = kChunk}).value();
    const Extent block{0, 10 * kChunk + 1};
    const Work read =
        fine.post_read({mine_.local, block}, {remote_, block}, test_deadline()).value();
    ASSERT_EQ(fine.wait(test_deadline()).to_string(), "ok");
    EXPECT_EQ(read.stats().pieces, 11U);
    EXPECT_TRUE(std::equal(theirs_.bytes().begin(), theirs_.bytes().begin() + 10 * kChunk + 1,
                           mine_.bytes().begin()));
}

TEST_P(TransferTest, ReadsAndWritesCountInAWindowOfTheirOwn) {
    Stamped large(*client_, 256 * kMiB, 4);
    Stamped source(*server_, 256 * kMiB, 5);
    const RemoteMemory remote = seen_by(*client_, *server_, *source.local);
    ASSERT_EQ(client_->connect("server", test_deadline()).to_string(), "ok");
    Transfer narrow = client_->create_transfer("server", {.window = 1}).value();
    const auto post = [&](Duration timeout) {
        return narrow.post_read(large.all(), all_of(remote), Deadline::after(timeout));
    };
    const Work first = post(std::chrono::seconds(20)).value();
    const Status full = post(Duration::zero()).status();
    if (!full.is_ok()) {
        EXPECT_EQ(full.code(), StatusCode::kTimeout) << full.to_string();
        EXPECT_THAT(full.message(), testing::AllOf(HasSubstr("session \"server\""),
                                                   HasSubstr("1 reads"), HasSubstr("a read of")));
        EXPECT_FALSE(narrow.is_complete());
    }
    const Extent some{0, 8};
    EXPECT_TRUE(narrow.post_write({large.local, some}, {remote_, some}, test_deadline()).is_ok());
    EXPECT_TRUE(narrow.post_send({large.local, some}, 5, test_deadline()).is_ok());
    const auto next = post(std::chrono::seconds(20));
    ASSERT_TRUE(next.is_ok()) << next.status().to_string();
    EXPECT_TRUE(first.is_complete()) << "or the window had no room";
    narrow.release();
    const Status given_up = next->wait(test_deadline());
    EXPECT_TRUE(given_up.is_ok() || given_up.code() == StatusCode::kAborted)
        << given_up.to_string();
    EXPECT_EQ(narrow.wait(test_deadline()).code(), StatusCode::kAborted) << "nobody wants the send";
}

TEST_P(TransferTest, ReadsAndWritesAreCheckedAndTheirMemoryIsThePeers) {
    const auto other = session("other", GetParam());
    Stamped its(*other, 100, 3);
    const RemoteMemory of_other = seen_by(*client_, *other, *its.local);
    const Status wrong =
        to_server_.post_read({mine_.local, {0, 100}}, all_of(of_other), test_deadline()).status();
    EXPECT_EQ(wrong.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(wrong.message(), HasSubstr("session \"other\""));
    for (const Extent there : {Extent{kBytes, 1}, Extent{~0ULL, 2}, Extent{0, kBytes + 1}})
        EXPECT_EQ(
            to_server_
                .post_write({mine_.local, {0, there.bytes}}, {remote_, there}, test_deadline())
                .status()
                .code(),
            StatusCode::kInvalidArgument);
    ASSERT_EQ(server_->deregister_memory(theirs_.local).to_string(), "ok");
    ASSERT_TRUE(to_server_.post_read(mine_.all(), all_of(remote_), test_deadline()).is_ok());
    EXPECT_EQ(to_server_.wait(test_deadline()).code(), StatusCode::kUnavailable);
}

TEST_P(TransferTest, CancelledTransfersDifferFromCompletedOnes) {
    const Message done = receive(0, 10, 1);
    const Message unwanted = receive(100, 10, 2);
    ASSERT_EQ(send(50, 10, 1).wait(test_deadline()).to_string(), "ok");
    to_client_.release();
    EXPECT_EQ(done.wait(test_deadline()).to_string(), "ok");
    EXPECT_EQ(unwanted.wait(test_deadline()).code(), StatusCode::kAborted);
    EXPECT_EQ(server_->deregister_memory(theirs_.local).to_string(), "ok") << "nothing uses it";
    const Message unsent = send(0, 10, 2);
    EXPECT_FALSE(unsent.is_complete()) << "the receive of that tag is withdrawn";
    to_server_.release();
    EXPECT_EQ(unsent.wait(test_deadline()).code(), StatusCode::kAborted);
    EXPECT_EQ(to_server_.wait(test_deadline()).code(), StatusCode::kAborted);
    EXPECT_EQ(client_->deregister_memory(mine_.local).to_string(), "ok");
}

TEST_P(TransferTest, MemoryOfMessagesStaysRegisteredAndWithinBounds) {
    receive(0, 10, 1);
    EXPECT_EQ(server_->deregister_memory(theirs_.local).code(), StatusCode::kUnavailable);
    for (const Extent block : {Extent{kBytes, 1}, Extent{~0ULL, 2}, Extent{0, kBytes + 1}})
        EXPECT_EQ(to_server_.post_send({mine_.local, block}, 1, test_deadline()).status().code(),
                  StatusCode::kInvalidArgument);
    ASSERT_EQ(client_->deregister_memory(mine_.local).to_string(), "ok");
    EXPECT_EQ(to_server_.post_send({mine_.local, {0, 1}}, 1, test_deadline()).status().code(),
              StatusCode::kInvalidArgument);
}

TEST_P(TransferTest, NotificationsAndOneSidedTransfersGoBesideMessages) {
    const Message received = receive(0, 1000, 1);
    const Work work =
        client_->write({mine_.local, {2000, 500}}, {remote_, {2000, 500}}, bytes_of("beside"))
            .value();
    send(0, 1000, 1);
    EXPECT_EQ(work.wait(test_deadline()).to_string(), "ok");
    EXPECT_EQ(received.wait(test_deadline()).to_string(), "ok");
    const auto notified = server_->await_notifications(test_deadline());
    ASSERT_EQ(notified.size(), 1U) << "messages are none";
    EXPECT_EQ(text_of(notified.front()), "beside");
    EXPECT_TRUE(has_come(0, 0, 1000));
    EXPECT_TRUE(has_come(2000, 2000, 500));
}

INSTANTIATE_TEST_SUITE_P(Transports, TransferTest, testing::Values("shm", "tcp"),
                         [](const auto& test) { return test.param; });

/// What every message is full of: of which incarnation, with which tag, and which of that tag it
/// is.
struct Stamp {
    std::uint64_t incarnation;
    std::uint64_t tag;
    std::uint64_t number;
    std::uint64_t check;

    [[nodiscard]] static Stamp make(std::uint64_t incarnation, std::uint64_t tag,
                                    std::uint64_t number) {
        return {incarnation, tag, number, (incarnation * 31 + tag) * 1'000'003 + number};
    }
    bool operator==(const Stamp&) const = default;
};

/// One side of a conversation, with room for some messages, each of which has a slot.
class Side {
   public:
    static constexpr std::size_t kSlots = 8;
    static constexpr std::size_t kStamps = 128;
    static constexpr std::size_t kSlot = kStamps * sizeof(Stamp);

    Side(const std::string& name, const std::string& transports)
        : session(p2p::session(name, transports)), memory_(*session, kSlots * kSlot, 0) {}

    ~Side() { session->close(); }  // before its memory goes
    Side(const Side&) = delete;
    Side& operator=(const Side&) = delete;

    void meet(const Side& other) {
        ASSERT_TRUE(session->load_remote_conn_info(other.session->connection_info()).is_ok());
        transfer.emplace(session->create_transfer(other.session->id().name).value());
    }
    Message send(std::size_t slot, const Stamp& stamp, std::size_t stamps) {
        for (std::size_t i = 0; i < stamps; ++i)
            std::memcpy(at(slot) + i * sizeof stamp, &stamp, sizeof stamp);
        return transfer->post_send(block(slot, stamps), stamp.tag, test_deadline()).value();
    }
    Message receive(std::size_t slot, std::uint64_t tag) {
        return transfer->post_recv(block(slot, kStamps), tag, test_deadline()).value();
    }
    /// All of one message; nullopt where its stamps differ.
    std::optional<Stamp> stamp_in(std::size_t slot, std::size_t bytes) {
        Stamp first{};
        std::memcpy(&first, at(slot), sizeof first);
        for (std::size_t done = 0; done < bytes; done += sizeof first)
            if (std::memcmp(at(slot) + done, &first, sizeof first) != 0) return std::nullopt;
        return first;
    }

    std::unique_ptr<Session> session;
    std::optional<Transfer> transfer;

   private:
    [[nodiscard]] std::byte* at(std::size_t slot) { return memory_.bytes().data() + slot * kSlot; }
    [[nodiscard]] LocalExtent block(std::size_t slot, std::size_t stamps) const {
        return {memory_.local, {slot * kSlot, stamps * sizeof(Stamp)}};
    }

    Stamped memory_;
};

/// Rounds of some sends and receives in any order and with any tags, by peers that come and go. Of
/// each tag, as many find each other as both sides have posted.
class ConversationTest : public testing::TestWithParam<std::string> {
   protected:
    static constexpr std::uint64_t kTags = 3;
    struct Posted {
        Message message;
        std::size_t slot;
    };

    std::size_t pick(std::size_t below) {
        return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_);
    }
    void begin_incarnation() {
        ++incarnation_;
        sent_ = {};
        received_numbers_ = {};
        sender_.emplace("sender", GetParam());
        sender_->meet(receiver_);
        receiver_.meet(*sender_);
    }
    void post_some() {
        sends_ = {};
        receives_ = {};
        std::size_t sends = 1 + pick(Side::kSlots);
        std::size_t receives = 1 + pick(Side::kSlots);
        while (sends + receives > 0) {
            const std::uint64_t tag = pick(kTags);
            if (pick(sends + receives) < sends) {
                const Stamp stamp = Stamp::make(incarnation_, tag, sent_[tag]++);
                --sends;
                sends_[tag].push_back(
                    {sender_->send(sends, stamp, 1 + pick(Side::kStamps)), sends});
            } else {
                --receives;
                receives_[tag].push_back({receiver_.receive(receives, tag), receives});
            }
        }
    }
    /// Those that find each other are done.
    void await_pairs() {
        for (std::uint64_t tag = 0; tag < kTags; ++tag) {
            const std::size_t pairs = std::min(sends_[tag].size(), receives_[tag].size());
            for (std::size_t i = 0; i < pairs; ++i) {
                ASSERT_EQ(sends_[tag][i].message.wait(test_deadline()).to_string(), "ok");
                ASSERT_EQ(receives_[tag][i].message.wait(test_deadline()).to_string(), "ok");
            }
        }
    }
    /// Ends what is left. Of each tag as many are received as are sent, in their order.
    void end_round() {
        sender_->transfer->release();
        receiver_.transfer->release();
        for (std::uint64_t tag = 0; tag < kTags; ++tag) {
            std::size_t pairs = 0;
            for (const Posted& each : sends_[tag])
                pairs += each.message.wait(test_deadline()).is_ok() ? 1 : 0;
            EXPECT_EQ(received_of(tag), pairs);
        }
    }
    std::size_t received_of(std::uint64_t tag) {
        std::size_t received = 0;
        for (const Posted& each : receives_[tag]) {
            if (!each.message.wait(test_deadline()).is_ok()) continue;
            ++received;
            const auto stamp = receiver_.stamp_in(each.slot, each.message.bytes());
            EXPECT_TRUE(stamp.has_value()) << "a mixture";
            if (!stamp) continue;
            EXPECT_GE(stamp->number, received_numbers_[tag]);
            EXPECT_EQ(*stamp, Stamp::make(incarnation_, tag, stamp->number));
            received_numbers_[tag] = stamp->number + 1;
        }
        received_ += received;
        return received;
    }

    std::mt19937 random_{20261126};
    Side receiver_{"receiver", GetParam()};
    std::optional<Side> sender_;
    std::uint64_t incarnation_ = 0;
    std::array<std::uint64_t, kTags> sent_{};
    std::array<std::uint64_t, kTags> received_numbers_{};
    std::array<std::vector<Posted>, kTags> sends_;
    std::array<std::vector<Posted>, kTags> receives_;
    std::size_t received_ = 0;
};

TEST_P(ConversationTest, WhatIsReceivedWasSentInThisIncarnationWithThisTagInItsOrder) {
    for (int incarnation = 0; incarnation < 12; ++incarnation) {
        begin_incarnation();
        for (int round = 0; round < 25; ++round) {
            post_some();
            if (pick(2) == 0) await_pairs();
            end_round();
        }
        post_some();
        // In the middle of messages; what did get through is whole, and of this incarnation.
        if (incarnation % 3 == 0) sender_->session->close();
        if (incarnation % 3 == 1) static_cast<void>(receiver_.session->disconnect("sender"));
        if (incarnation % 3 == 2) sender_.reset();
        for (std::uint64_t tag = 0; tag < kTags; ++tag) received_of(tag);
    }
    EXPECT_GT(received_, 300U) << "or too little was tried";
}

INSTANTIATE_TEST_SUITE_P(Transports, ConversationTest, testing::Values("shm", "tcp"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace pccl::p2p
