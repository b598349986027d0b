// SPDX-License-Identifier: Apache-2.0

// Connections end on both sides, without loss of what was sent before.
#include "csrc/p2p/connection/connection.h"

#include <gmock/gmock.h>

#include "csrc/base/text/text.h"
#include "csrc/p2p/connection/inbox.h"
#include "tests/cpp/p2p/pair.h"

namespace pccl::p2p {
namespace {

using testing::HasSubstr;
using SessionTest = Pair;

TEST_P(SessionTest, TheOtherSideLearnsWhoHasDisconnected) {
    ASSERT_EQ(client_->connect("server", test_deadline()).to_string(), "ok");
    ASSERT_EQ(server_->accept("client", test_deadline()).status().to_string(), "ok");
    Transfer incoming = server_->create_transfer("client").value();
    const Message awaited = incoming.post_recv(theirs_.all(), 1, test_deadline()).value();
    ASSERT_EQ(client_->disconnect("server").to_string(), "ok");
    const Status gone = awaited.wait(test_deadline());
    EXPECT_EQ(gone.code(), StatusCode::kPeerLost) << gone.to_string();
    EXPECT_THAT(gone.message(), HasSubstr("session \"client\" has disconnected"));
    EXPECT_EQ(awaited.peer(), client_->id());
}

TEST_P(SessionTest, NothingThatWasSentIsLostWhenItsSenderClosesAtOnce) {
    constexpr std::size_t kMessages = 200;  // more than a link takes at once
    for (int round = 0; round < 10; ++round) {
        const auto guest = session("guest", GetParam());
        ASSERT_TRUE(guest->load_remote_conn_info(server_->connection_info()).is_ok());
        for (std::size_t i = 0; i < kMessages; ++i)
            ASSERT_EQ(guest->notify("server", bytes_of(std::to_string(i))).to_string(), "ok");
        guest->close();
        std::vector<std::string> notified;
        while (notified.size() < kMessages) {
            const auto some = server_->await_notifications(test_deadline());
            ASSERT_FALSE(some.empty()) << notified.size() << " messages in round " << round;
            for (const auto& each : some) notified.push_back(text_of(each));
        }
        for (std::size_t i = 0; i < kMessages; ++i) EXPECT_EQ(notified[i], std::to_string(i));
    }
}

TEST_P(SessionTest, TheNotificationBehindATransferIsNotLostWhenItsSenderLeavesAtOnce) {
    for (int round = 0; round < 20; ++round) {
        const auto guest = session("guest", GetParam());
        const Stamped its(*guest, 1000, 3);
        const RemoteMemory remote = seen_by(*guest, *server_, *theirs_.local);
        const std::string message = concat("round ", round);
        ASSERT_EQ(
            ended(guest->write(its.all(), {remote, {0, 1000}}, bytes_of(message))).to_string(),
            "ok");
        if (round % 2 == 0)
            ASSERT_TRUE(guest->disconnect("server").is_ok());
        else
            guest->close();
        const auto notified = server_->await_notifications(test_deadline());
        ASSERT_EQ(notified.size(), 1U) << message;
        EXPECT_EQ(text_of(notified.front()), message);
    }
}

TEST_P(SessionTest, APeerThatClosesIsLostAndTheOthersAreNot) {
    auto other = session("other", GetParam());
    Stamped its(*other, kBytes, 3);
    const RemoteMemory of_other = seen_by(*client_, *other, *its.local);
    ASSERT_EQ(client_->connect("server", test_deadline()).to_string(), "ok");
    ASSERT_EQ(client_->connect("other", test_deadline()).to_string(), "ok");
    other->close();
    const Status lost = ended(client_->read(mine_.all(), all_of(of_other)));
    EXPECT_EQ(lost.code(), StatusCode::kPeerLost) << lost.to_string();
    EXPECT_THAT(lost.message(), HasSubstr("session \"other\""));
    EXPECT_EQ(ended(client_->read(mine_.all(), all_of(remote_))).to_string(), "ok");
    EXPECT_EQ(mine_.bytes(), theirs_.bytes());
}

TEST_P(SessionTest, APeerThatComesBackIsAnotherIncarnation) {
    ASSERT_EQ(ended(client_->read(mine_.all(), all_of(remote_))).to_string(), "ok");
    auto again = session("server", GetParam());
    Stamped its(*again, kBytes, 6);
    server_->close();
    const RemoteMemory anew = seen_by(*client_, *again, *its.local);
    const Status stale = ended(client_->read(mine_.all(), all_of(remote_)));
    EXPECT_EQ(stale.code(), StatusCode::kUnavailable) << stale.to_string();
    EXPECT_EQ(
        client_->import_memory("server", theirs_.local->serialised_descriptor()).status().code(),
        StatusCode::kUnavailable);
    ASSERT_EQ(ended(client_->read(mine_.all(), all_of(anew))).to_string(), "ok");
    EXPECT_EQ(mine_.bytes(), its.bytes());
}

TEST_P(SessionTest, APeerThatFloodsStopsNobodyButItself) {
    const auto flood = session("flood", GetParam());
    ASSERT_TRUE(flood->load_remote_conn_info(server_->connection_info()).is_ok());
    // More than the server keeps of one peer: those that it does not take wait there, too.
    std::size_t sent = 0;
    const auto send_some = [&] {
        while (sent < 2 * Inbox::kMost && flood->notify("server", bytes_of("flood")).is_ok())
            ++sent;
    };
    const Deadline deadline = test_deadline();
    while (sent < Inbox::kMost + 100 && !deadline.passed()) send_some();
    ASSERT_GE(sent, Inbox::kMost + 100);

    ASSERT_TRUE(server_->load_remote_conn_info(client_->connection_info()).is_ok());
    Transfer incoming = server_->create_transfer("client").value();
    Transfer outgoing = client_->create_transfer("server").value();
    ASSERT_TRUE(outgoing.post_send(mine_.all(), 1, test_deadline()).is_ok());
    ASSERT_TRUE(incoming.post_recv(theirs_.all(), 1, test_deadline()).is_ok());
    EXPECT_EQ(incoming.wait(test_deadline()).to_string(), "ok") << "a message of another peer";
    EXPECT_EQ(theirs_.bytes(), mine_.bytes());
    ASSERT_EQ(client_->notify("server", bytes_of("of another")).to_string(), "ok");

    std::size_t notified = 0;
    std::size_t others = 0;
    while ((notified < sent || others == 0) && !deadline.passed())
        for (const auto& each : server_->await_notifications(deadline))
            ++(each.from == "flood" ? notified : others);
    EXPECT_EQ(notified, sent) << "nothing is lost";
    EXPECT_EQ(others, 1U);
}

}  // namespace
}  // namespace pccl::p2p
