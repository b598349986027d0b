// SPDX-License-Identifier: Apache-2.0

// A session that connects reaches its peer, also right after a loss, or learns why it cannot.
#include "csrc/p2p/session/connect_request.h"

#include <gmock/gmock.h>

#include <thread>

#include <pccl/session.h>
#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/p2p/connection/connection_info.h"
#include "tests/cpp/p2p/pair.h"

namespace pccl::p2p {
namespace {

using testing::HasSubstr;
using SessionTest = Pair;

TEST_P(SessionTest, DisconnectingNamesThePeerWhichConnectsAgain) {
    ASSERT_EQ(client_->connect("server", test_deadline()).to_string(), "ok");
    ASSERT_EQ(ended(client_->read(mine_.all(), all_of(remote_))).to_string(), "ok");
    ASSERT_EQ(client_->disconnect("server").to_string(), "ok");
    EXPECT_TRUE(client_->peers().empty());
    std::ranges::fill(mine_.bytes(), std::byte{0});
    ASSERT_EQ(ended(client_->read(mine_.all(), all_of(remote_))).to_string(), "ok");
    EXPECT_EQ(mine_.bytes(), theirs_.bytes());
}

// Whoever leaves, and whoever connects then, which may not know of that: both use what it is
// told to be connected by. With news of the loss alone, every third round failed.
TEST_P(SessionTest, WhoConnectsRightAfterALossHasAConnectionThatBothUse) {
    ASSERT_TRUE(server_->load_remote_conn_info(client_->connection_info()).is_ok());
    for (int round = 0; round < 200; ++round) {
        const std::string message = concat("round ", round);
        Session& caller = round % 2 == 0 ? *client_ : *server_;
        ASSERT_EQ(caller.connect(&caller == client_.get() ? "server" : "client", test_deadline())
                      .to_string(),
                  "ok")
            << message;
        ASSERT_EQ(server_->notify("client", bytes_of(message)).to_string(), "ok") << message;
        const auto notified = client_->await_notifications(test_deadline());
        ASSERT_EQ(notified.size(), 1U) << message;
        EXPECT_EQ(text_of(notified.front()), message);
        ASSERT_EQ(ended(client_->read({mine_.local, {0, 64}}, {remote_, {0, 64}})).to_string(),
                  "ok")
            << message;
        const bool server_leaves = round % 4 < 2;
        ASSERT_TRUE((server_leaves ? server_->disconnect("client") : client_->disconnect("server"))
                        .is_ok());
    }
}

TEST_P(SessionTest, WhoReadsRightAfterALossLearnsOfItOnceAtMost) {
    for (int round = 0; round < 100; ++round) {
        ASSERT_EQ(client_->connect("server", test_deadline()).to_string(), "ok") << round;
        ASSERT_TRUE(server_->disconnect("client").is_ok());
        const auto read = [&] {
            return ended(client_->read({mine_.local, {0, 64}}, {remote_, {0, 64}}));
        };
        const Status first = read();
        if (!first.is_ok()) {  // it was posted before the news had come
            ASSERT_EQ(first.code(), StatusCode::kPeerLost) << first.to_string();
            ASSERT_EQ(read().to_string(), "ok") << round << ", after " << first.to_string();
        }
    }
}

TEST_P(SessionTest, BothMayCallAtTheSameTime) {
    ASSERT_EQ(server_->load_remote_conn_info(client_->connection_info()).status().to_string(),
              "ok");
    Status theirs;
    std::thread other([&] { theirs = server_->connect("client", test_deadline()); });
    const Status mine = client_->connect("server", test_deadline());
    other.join();
    EXPECT_EQ(mine.to_string(), "ok");
    EXPECT_EQ(theirs.to_string(), "ok");
    EXPECT_EQ(ended(client_->read(mine_.all(), all_of(remote_))).to_string(), "ok");
    EXPECT_EQ(server_->peers().size(), 1U);
}

TEST_P(SessionTest, NobodyConnectsWithoutTheSecret) {
    auto forged = ConnectionInfo::deserialise(server_->connection_info()).value();
    forged.secret[0] ^= 1;
    ASSERT_TRUE(client_->load_remote_conn_info(forged.serialise()).is_ok());
    const Status refused = client_->connect("server", test_deadline());
    EXPECT_EQ(refused.code(), StatusCode::kPeerLost) << refused.to_string();
    EXPECT_TRUE(server_->peers().empty());
}

TEST_P(SessionTest, ConnectingToOneThatHasClosedReportsThatItIsGone) {
    server_->close();
    const Status gone = client_->connect("server", test_deadline());
    EXPECT_EQ(gone.code(), StatusCode::kPeerLost) << gone.to_string();
    EXPECT_THAT(gone.message(), HasSubstr("session \"server\""));
}

}  // namespace
}  // namespace pccl::p2p
