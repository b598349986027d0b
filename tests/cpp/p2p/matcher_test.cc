// SPDX-License-Identifier: Apache-2.0

// Sends and receives are matched by their tags and in their order.
#include <gmock/gmock.h>

#include <thread>

#include <pccl/transfer.h>
#include "csrc/base/ids.h"
#include "tests/cpp/p2p/pair.h"
#include "tests/cpp/p2p/transfers.h"

namespace pccl::p2p {
namespace {

using testing::HasSubstr;

TEST_P(TransferTest, AMessageGoesToTheMemoryOfItsReceive) {
    const auto before = theirs_.bytes();
    const Message sent = send(5, kBytes / 2, 7);
    const Message received = receive(100, kBytes / 2, 7);
    ASSERT_EQ(to_server_.wait(test_deadline()).to_string(), "ok");
    ASSERT_EQ(to_client_.wait(test_deadline()).to_string(), "ok");
    EXPECT_EQ(sent.bytes(), kBytes / 2);
    EXPECT_EQ(received.bytes(), kBytes / 2);
    auto expected = before;
    std::copy_n(mine_.bytes().begin() + 5, kBytes / 2, expected.begin() + 100);
    EXPECT_EQ(theirs_.bytes(), expected);
}

TEST_P(TransferTest, OrderIsThatOfATagAndNotOfTime) {
    const std::vector<Message> late{receive(0, 10, 2), receive(10, 10, 1), receive(20, 10, 1)};
    send(100, 10, 1);
    send(200, 10, 1);
    send(300, 10, 2);
    for (const Message& message : late) ASSERT_EQ(message.wait(test_deadline()).to_string(), "ok");
    EXPECT_TRUE(has_come(0, 300, 10));
    EXPECT_TRUE(has_come(10, 100, 10));
    EXPECT_TRUE(has_come(20, 200, 10));
    EXPECT_EQ(to_server_.wait(test_deadline()).to_string(), "ok");
}

TEST_P(TransferTest, ASendIsNotDoneBeforeSomebodyWantsIt) {
    ASSERT_EQ(client_->connect("server", test_deadline()).to_string(), "ok");
    const Message sent = send(0, 10, 3);
    const Status early = to_server_.wait(Deadline::after(std::chrono::milliseconds(50)));
    EXPECT_EQ(early.code(), StatusCode::kTimeout);
    EXPECT_THAT(early.message(), testing::AllOf(HasSubstr("session \"server\""),
                                                HasSubstr("a send of 10 bytes with tag 3")));
    EXPECT_FALSE(to_server_.is_complete());
    receive(0, 10, 3);
    EXPECT_EQ(to_server_.wait(test_deadline()).to_string(), "ok");
    EXPECT_TRUE(sent.is_complete());
}

TEST_P(TransferTest, AShorterMessageReportsItsLengthAndALongerOneFailsOnBothSides) {
    const auto before = theirs_.bytes();
    const Message shorter = receive(0, 100, 1);
    const Message longer = receive(1000, 100, 2);
    const Message fits = send(0, 60, 1);
    const Message does_not = send(0, 101, 2);
    const Message none = send(0, 0, 3);
    const Message of_none = receive(0, 0, 3);
    EXPECT_EQ(fits.wait(test_deadline()).to_string(), "ok");
    EXPECT_EQ(shorter.wait(test_deadline()).to_string(), "ok");
    EXPECT_EQ(shorter.bytes(), 60U);
    EXPECT_TRUE(has_come(0, 0, 60));
    for (const Message& message : {does_not, longer}) {
        const Status status = message.wait(test_deadline());
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
        EXPECT_THAT(status.message(), HasSubstr("101 bytes with tag 2"));
        EXPECT_EQ(message.bytes(), 0U);
    }
    EXPECT_EQ(none.wait(test_deadline()).to_string(), "ok");
    EXPECT_EQ(of_none.wait(test_deadline()).to_string(), "ok");
    EXPECT_TRUE(std::equal(before.begin() + 60, before.end(), theirs_.bytes().begin() + 60));
    EXPECT_EQ(to_server_.wait(test_deadline()).code(), StatusCode::kInvalidArgument) << "the first";
    EXPECT_EQ(to_server_.wait(test_deadline()).to_string(), "ok") << "which is told once";
}

TEST_P(TransferTest, AWindowHasRoomAgainOnceMessagesEnd) {
    Transfer narrow = client_->create_transfer("server", {.window = 2}).value();
    const auto post = [&](Duration timeout) {
        return narrow.post_send({mine_.local, {0, 10}}, 1, Deadline::after(timeout));
    };
    ASSERT_TRUE(post(std::chrono::seconds(20)).is_ok());
    ASSERT_TRUE(post(std::chrono::seconds(20)).is_ok());
    const Status full = post(std::chrono::milliseconds(20)).status();
    EXPECT_EQ(full.code(), StatusCode::kTimeout) << full.to_string();
    EXPECT_THAT(full.message(),
                testing::AllOf(HasSubstr("session \"server\""), HasSubstr("2 sends")));
    EXPECT_TRUE(narrow.post_recv({mine_.local, {0, 10}}, 9, test_deadline()).is_ok())
        << "receives have a window of their own";
    receive(0, 10, 1);
    EXPECT_TRUE(post(std::chrono::seconds(20)).is_ok());
    EXPECT_EQ(client_->create_transfer("server", {.window = 0}).status().code(),
              StatusCode::kInvalidArgument);
    EXPECT_EQ(client_->create_transfer("nobody").status().code(), StatusCode::kInvalidArgument);
}

TEST_P(TransferTest, AMessageIsConsumedWhenItsProgramHasIt) {
    const Message received = receive(0, 1000, 7);
    const Message too_short = receive(2000, 10, 8);
    EXPECT_EQ(received.stage(), MessageStage::kPosted);
    const Message sent = send(0, 1000, 7);
    const Message too_long = send(0, 1000, 8);
    const Deadline deadline = test_deadline();
    while (received.stage() == MessageStage::kPosted && !deadline.passed())
        static_cast<void>(server_->notifications());
    EXPECT_EQ(received.stage(), MessageStage::kUnpacked);
    EXPECT_TRUE(has_come(0, 0, 1000));
    ASSERT_EQ(received.wait(test_deadline()).to_string(), "ok");
    EXPECT_EQ(received.stage(), MessageStage::kConsumed);
    EXPECT_EQ(too_short.wait(test_deadline()).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(too_short.stage(), MessageStage::kPosted);
    EXPECT_EQ(too_long.wait(test_deadline()).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(sent.wait(test_deadline()).to_string(), "ok");
    EXPECT_EQ(sent.stage(), MessageStage::kConsumed);
}

TEST_P(TransferTest, AReceiveThatIsGivenUpWhileItsMessageComesIsOneOfBoth) {
    for (int round = 0; round < 50; ++round) {
        const std::vector<std::byte> before(theirs_.bytes().begin(), theirs_.bytes().begin() + 64);
        const Message received = receive(0, 64, 4);
        const Message sent = send(static_cast<std::size_t>(round) * 64, 64, 4);
        received.release();
        const Status status = received.wait(test_deadline());
        if (status.is_ok()) {
            EXPECT_TRUE(has_come(0, static_cast<std::size_t>(round) * 64, 64));
            EXPECT_EQ(sent.wait(test_deadline()).to_string(), "ok");
        } else {
            EXPECT_EQ(status.code(), StatusCode::kAborted) << status.to_string();
            EXPECT_TRUE(std::equal(before.begin(), before.end(), theirs_.bytes().begin()));
            sent.release();
            EXPECT_EQ(sent.wait(test_deadline()).code(), StatusCode::kAborted);
        }
    }
}

TEST_P(TransferTest, MessagesEndWithTheirPeer) {
    const Message wanted = receive(0, 10, 1);
    const Message unwanted = send(0, 10, 2);
    const Message done = send(0, 10, 1);
    ASSERT_EQ(done.wait(test_deadline()).to_string(), "ok");
    server_->close();
    const Status lost = unwanted.wait(test_deadline());
    EXPECT_EQ(lost.code(), StatusCode::kPeerLost) << lost.to_string();
    EXPECT_THAT(lost.message(), HasSubstr("session \"server\""));
    EXPECT_EQ(done.status().to_string(), "ok");
    EXPECT_EQ(wanted.status().to_string(), "ok");
}

TEST_P(TransferTest, MessagesFindEachOtherThoughBothHaveCalled) {
    for (int round = 0; round < 20; ++round) {
        Status theirs;
        std::thread other([&] { theirs = server_->connect("client", test_deadline()); });
        EXPECT_EQ(client_->connect("server", test_deadline()).to_string(), "ok");
        other.join();
        EXPECT_EQ(theirs.to_string(), "ok");
        const Message there = receive(0, 10, 1);
        const Message back =
            to_client_.post_send({theirs_.local, {50, 10}}, 2, test_deadline()).value();
        const Message sent = send(20, 10, 1);
        const Message come =
            to_server_.post_recv({mine_.local, {70, 10}}, 2, test_deadline()).value();
        for (const Message& message : {there, back, sent, come})
            ASSERT_EQ(message.wait(test_deadline()).to_string(), "ok");
        ASSERT_TRUE(client_->disconnect("server").is_ok());
        ASSERT_TRUE(server_->disconnect("client").is_ok());
    }
}

}  // namespace
}  // namespace pccl::p2p
