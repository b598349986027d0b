// SPDX-License-Identifier: Apache-2.0

// What sessions hand out, in a child of fork(): it reaches nothing of the parent's.
#include <gmock/gmock.h>

#include <algorithm>
#include <initializer_list>
#include <optional>

#include <pccl/session.h>
#include "tests/cpp/p2p/pair.h"
#include "tests/fakes/forked_child.h"

namespace pccl::p2p {
namespace {

class ForkTest : public Pair {
   protected:
    void SetUp() override {
        ASSERT_TRUE(server_->load_remote_conn_info(client_->connection_info()).is_ok());
        ASSERT_EQ(client_->connect("server", test_deadline()).to_string(), "ok");
    }
    /// How many of these do not say that they are of another process.
    static int acting(std::initializer_list<Status> ends) {
        return static_cast<int>(std::ranges::count_if(ends, [](const Status& end) {
            return end.code() != StatusCode::kUnavailable ||
                   end.message().find("that this one was forked from") == std::string::npos;
        }));
    }
};

TEST_P(ForkTest, AMessageIsGivenUpByNobodyButItsParent) {
    Transfer incoming = client_->create_transfer("server").value();
    const Message awaited = incoming.post_recv(mine_.all(), 3, test_deadline()).value();
    fakes::ForkedChild child([&] {
        awaited.release();
        incoming.release();
        if (!awaited.is_complete() || !incoming.is_complete() || awaited.bytes() != 0) return 50;
        return acting({awaited.check_usable(), awaited.status(), awaited.wait(test_deadline()),
                       incoming.check_usable(), incoming.wait(test_deadline()),
                       incoming.post_send(mine_.all(), 4, test_deadline()).status(),
                       incoming.post_read(mine_.all(), all_of(remote_), test_deadline()).status()});
    });
    EXPECT_EQ(child.join(), 0);
    Transfer outgoing = server_->create_transfer("client").value();
    ASSERT_TRUE(outgoing.post_send(theirs_.all(), 3, test_deadline()).is_ok());
    EXPECT_EQ(awaited.wait(test_deadline()).to_string(), "ok");
    EXPECT_EQ(mine_.bytes(), theirs_.bytes());
}

TEST_P(ForkTest, AWorkGoesOnWithItsParent) {
    std::optional<Work> work = client_->read(mine_.all(), all_of(remote_)).value();
    fakes::ForkedChild child([&] {
        work->release();
        if (!work->is_complete() || !work->poll() || work->stats().bytes != 0) return 50;
        const int acts =
            acting({work->check_usable(), work->status(), work->wait(test_deadline())});
        work.reset();
        return acts;
    });
    EXPECT_EQ(child.join(), 0);
    EXPECT_EQ(work->wait(test_deadline()).to_string(), "ok");
    EXPECT_EQ(mine_.bytes(), theirs_.bytes());
}

TEST_P(ForkTest, ASessionTakesNoNotificationsOfItsParent) {
    ASSERT_EQ(server_->notify("client", bytes_of("word")).to_string(), "ok");
    ASSERT_TRUE(client_->publish("mine", mine_.local).is_ok());
    fakes::ForkedChild child([&] {
        if (!client_->await_notifications(test_deadline()).empty() ||
            !client_->notifications().empty() || !client_->peers().empty())
            return 50;
        client_->withdraw("mine");
        const int acts = acting(
            {client_->check_usable(), client_->deregister_memory(mine_.local),
             client_->import_memory("server", theirs_.local->serialised_descriptor()).status(),
             client_->disconnect("server"), client_->allocate(4096).status()});
        client_.reset();
        return acts;
    });
    EXPECT_EQ(child.join(), 0);
    const auto notified = client_->await_notifications(test_deadline());
    ASSERT_EQ(notified.size(), 1U);
    EXPECT_EQ(text_of(notified.front()), "word");
    EXPECT_EQ(server_->fetch("client", "mine", test_deadline()).status().to_string(), "ok");
    EXPECT_EQ(server_->peers().size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Transports, ForkTest, testing::Values("shm", "tcp"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace pccl::p2p
