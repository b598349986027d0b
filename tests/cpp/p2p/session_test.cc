// SPDX-License-Identifier: Apache-2.0

// What a session promises, over every transport.
#include <gmock/gmock.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <thread>

#include <pccl/session.h>
#include "csrc/runtime/flight/session_recorder.h"
#include "tests/cpp/p2p/pair.h"

namespace pccl::p2p {
namespace {

using testing::HasSubstr;
using SessionTest = Pair;

TEST_P(SessionTest, ReadsWhatThePeerHasWithoutACallOfIt) {
    const Work work = client_->read(mine_.all(), all_of(remote_)).value();
    ASSERT_EQ(work.wait(test_deadline()).to_string(), "ok");
    EXPECT_EQ(mine_.bytes(), theirs_.bytes());
    EXPECT_EQ(work.stats().bytes, kBytes);
    EXPECT_THAT(work.stats().path, HasSubstr(GetParam()));
}

TEST_P(SessionTest, WritesABlockAndNothingElse) {
    auto expected = theirs_.bytes();
    std::copy_n(mine_.bytes().begin() + 5, 1000, expected.begin() + 77);
    ASSERT_EQ(ended(client_->write({mine_.local, {5, 1000}}, {remote_, {77, 1000}})).to_string(),
              "ok");
    EXPECT_EQ(theirs_.bytes(), expected);
}

TEST_P(SessionTest, ANotificationComesOnceAllDataIsThere) {
    const Work work = client_->write(mine_.all(), all_of(remote_), bytes_of("block 7")).value();
    const auto notified = server_->await_notifications(test_deadline());
    EXPECT_EQ(theirs_.bytes(), mine_.bytes());
    ASSERT_EQ(notified.size(), 1U);
    EXPECT_EQ(notified.front().from, "client");
    EXPECT_EQ(text_of(notified.front()), "block 7");
    EXPECT_EQ(work.wait(test_deadline()).to_string(), "ok");
}

TEST_P(SessionTest, NotificationsGoBothWaysOnOneConnection) {
    ASSERT_EQ(client_->notify("server", bytes_of("ping")).to_string(), "ok");
    ASSERT_EQ(server_->await_notifications(test_deadline()).size(), 1U);
    ASSERT_EQ(server_->notify("client", bytes_of("pong")).to_string(), "ok")
        << "who has called is known";
    const auto notified = client_->await_notifications(test_deadline());
    ASSERT_EQ(notified.size(), 1U);
    EXPECT_EQ(text_of(notified.front()), "pong");
    EXPECT_EQ(client_->peers().size(), 1U);
}

TEST_P(SessionTest, OneThatWasNotLoadedIsNotCalledBackOnceItHasGone) {
    ASSERT_EQ(client_->connect("server", test_deadline()).to_string(), "ok");
    ASSERT_EQ(server_->notify("client", bytes_of("while it is here")).to_string(), "ok");
    ASSERT_EQ(client_->await_notifications(test_deadline()).size(), 1U);
    client_->close();
    Status gone;
    for (const Deadline deadline = test_deadline(); !deadline.passed();) {
        gone = server_->connect("client", test_deadline());
        EXPECT_EQ(gone.code(), StatusCode::kPeerLost) << gone.to_string();
        if (gone.message().find("let it call again") != std::string::npos) break;
    }
    EXPECT_THAT(gone.message(), HasSubstr("let it call again"));
    EXPECT_THAT(gone.message(), HasSubstr("session \"client\""));
}

TEST_P(SessionTest, AcceptReturnsEachConnectingPeerOnce) {
    std::vector<std::unique_ptr<Session>> guests;
    for (const std::string name : {"first", "second", "third"}) {
        guests.push_back(session(name, GetParam()));
        ASSERT_TRUE(guests.back()->load_remote_conn_info(server_->connection_info()).is_ok());
    }
    for (const auto& guest : guests) {
        std::thread call([&] { EXPECT_TRUE(guest->connect("server", test_deadline()).is_ok()); });
        const auto caller = server_->accept(test_deadline());
        call.join();
        ASSERT_TRUE(caller.is_ok()) << caller.status().to_string();
        EXPECT_EQ(*caller, guest->id());
    }
    const Status none = server_->accept(Deadline::after(Duration::zero())).status();
    EXPECT_EQ(none.code(), StatusCode::kTimeout) << none.to_string();
    ASSERT_TRUE(guests[1]->disconnect("server").is_ok());
    ASSERT_EQ(guests[1]->connect("server", test_deadline()).to_string(), "ok");
    EXPECT_EQ(server_->accept(test_deadline()).value(), guests[1]->id()) << "it has connected anew";
}

TEST_P(SessionTest, AcceptAwaitsOnePeerWhoeverCalls) {
    const auto guest = session("guest", GetParam());
    const Status early = server_->accept("client", Deadline::after(Duration::zero())).status();
    EXPECT_EQ(early.code(), StatusCode::kTimeout);
    EXPECT_THAT(early.message(), HasSubstr("session \"client\""));
    ASSERT_TRUE(guest->load_remote_conn_info(server_->connection_info()).is_ok());
    ASSERT_EQ(guest->connect("server", test_deadline()).to_string(), "ok");
    std::thread call([&] { EXPECT_TRUE(client_->connect("server", test_deadline()).is_ok()); });
    EXPECT_EQ(server_->accept("client", test_deadline()).value(), client_->id());
    call.join();
    EXPECT_EQ(server_->accept("client", test_deadline()).value(), client_->id())
        << "it is still there";
    EXPECT_EQ(client_->accept("server", test_deadline()).value(), server_->id())
        << "which was called";
    EXPECT_EQ(server_->accept(test_deadline()).value(), guest->id()) << "the client was told";
    EXPECT_EQ(server_->accept("a b", test_deadline()).status().code(),
              StatusCode::kInvalidArgument);
}

TEST_P(SessionTest, AcceptPassesOverWhoHasGoneAndEndsWithItsSession) {
    const Deadline deadline = test_deadline();
    {
        const auto guest = session("guest", GetParam());
        ASSERT_TRUE(guest->load_remote_conn_info(server_->connection_info()).is_ok());
        ASSERT_EQ(guest->connect("server", test_deadline()).to_string(), "ok");
        while (server_->peers().empty() && !deadline.passed())
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    while (!server_->peers().empty() && !deadline.passed())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(server_->accept(Deadline::after(Duration::zero())).status().code(),
              StatusCode::kTimeout);
    std::thread closing([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        server_->close();
    });
    EXPECT_EQ(server_->accept(test_deadline()).status().code(), StatusCode::kAborted);
    closing.join();
}

TEST_P(SessionTest, ReachesItself) {
    Stamped to(*server_, kBytes, 7);
    const RemoteMemory own = seen_by(*server_, *server_, *theirs_.local);
    ASSERT_EQ(ended(server_->read(to.all(), all_of(own), bytes_of("self"))).to_string(), "ok");
    EXPECT_EQ(to.bytes(), theirs_.bytes());
    EXPECT_EQ(server_->await_notifications(test_deadline()).size(), 1U);
}

TEST_P(SessionTest, ManyThreadsShareASession) {
    constexpr int kThreads = 4;
    constexpr std::size_t kPart = 10'000;
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (std::size_t i = 0; i < kThreads; ++i)
        threads.emplace_back([&, i] {
            for (int round = 0; round < 50; ++round)
                if (!ended(client_->read({mine_.local, {i * kPart, kPart}},
                                         {remote_, {i * kPart, kPart}}))
                         .is_ok())
                    ++wrong;
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_TRUE(std::equal(mine_.bytes().begin(), mine_.bytes().begin() + kThreads * kPart,
                           theirs_.bytes().begin()));
}

/// How often the threads of that name of this process have gone to sleep so far.
std::uint64_t sleeps_of(const std::string& thread) {
    std::uint64_t sleeps = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
        std::string name;
        std::getline(std::ifstream(entry.path() / "comm"), name);
        if (name != thread) continue;
        std::ifstream status(entry.path() / "status");
        for (std::string key; status >> key;)
            if (key == "voluntary_ctxt_switches:") {
                std::uint64_t count = 0;
                status >> count;
                sleeps += count;
            }
    }
    return sleeps;
}

TEST_P(SessionTest, ThreadsOfAnIdleSessionSleepUntilSomethingHappens) {
    ASSERT_EQ(ended(client_->read(mine_.all(), all_of(remote_))).to_string(), "ok");
    ASSERT_EQ(client_->notify("server", bytes_of("x")).to_string(), "ok");
    ASSERT_EQ(server_->await_notifications(test_deadline()).size(), 1U);
    std::uint64_t sleeps = 0;
    std::uint64_t most = 0;
    const Deadline deadline = test_deadline();
    do {  // until both have settled
        const TimePoint begun = system_clock().now();
        const std::uint64_t before = sleeps_of("pccl-progress");
        ASSERT_GT(before, 0U);
        std::this_thread::sleep_for(std::chrono::milliseconds(900));
        sleeps = sleeps_of("pccl-progress") - before;
        const auto passed = std::chrono::ceil<std::chrono::seconds>(system_clock().now() - begun);
        most = 2 * static_cast<std::uint64_t>(1 + passed.count());
    } while (sleeps > most && !deadline.passed());
    EXPECT_LE(sleeps, most) << "of two sessions";
    EXPECT_EQ(ended(client_->read(mine_.all(), all_of(remote_))).to_string(), "ok") << "they wake";
}

INSTANTIATE_TEST_SUITE_P(Transports, SessionTest, testing::Values("shm", "tcp"),
                         [](const auto& test) { return test.param; });

/// Another incarnation of the server, which has displaced it; the old one is not dead, and calls
/// later.
class DisplacedTest : public Pair {
   protected:
    void SetUp() override {
        ASSERT_EQ(client_->connect("server", test_deadline()).to_string(), "ok");
        ASSERT_TRUE(server_->load_remote_conn_info(client_->connection_info()).is_ok());
        ASSERT_EQ(server_->accept("client", test_deadline()).status().to_string(), "ok");
    }
    /// What the old incarnation's user reads, who tries again and again.
    void expect_refusals() {
        const Deadline deadline =
            test_deadline();  // until it has noticed that its connection is closed
        while (!server_->peers().empty() && !deadline.passed())
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const auto all = Extent{0, kBytes};
        Transfer messages = server_->create_transfer("client").value();
        static_cast<void>(messages.post_send({theirs_.local, all}, 1, test_deadline()));
        static_cast<void>(server_->notify("client", bytes_of("of the old incarnation")));
        for (int i = 0; i < 3; ++i) {
            const Status refused = server_->connect("client", test_deadline());
            EXPECT_EQ(refused.code(), StatusCode::kPeerLost) << refused.to_string();
            EXPECT_THAT(
                refused.message(),
                testing::AllOf(HasSubstr("session \"client\""),
                               HasSubstr("this incarnation of session \"server\" was displaced")));
        }
        EXPECT_EQ(messages.wait(test_deadline()).code(), StatusCode::kPeerLost);
    }
    /// By one-sided access, messages and notifications.
    void expect_to_be_with(Session& successor, Stamped& its) {
        const RemoteMemory remote =
            client_->import_memory("server", its.local->serialised_descriptor()).value();
        ASSERT_EQ(ended(client_->read(mine_.all(), all_of(remote))).to_string(), "ok");
        EXPECT_EQ(mine_.bytes(), its.bytes());
        std::ranges::fill(mine_.bytes(), std::byte{0});
        Transfer incoming = client_->create_transfer("server").value();
        Transfer outgoing = successor.create_transfer("client").value();
        const Message received = incoming.post_recv(mine_.all(), 1, test_deadline()).value();
        ASSERT_TRUE(outgoing.post_send(its.all(), 1, test_deadline()).is_ok());
        ASSERT_EQ(received.wait(test_deadline()).to_string(), "ok");
        EXPECT_EQ(mine_.bytes(), its.bytes());
        ASSERT_EQ(outgoing.wait(test_deadline()).to_string(), "ok");
        ASSERT_EQ(successor.notify("client", bytes_of("of the successor")).to_string(), "ok");
        const auto notified = client_->await_notifications(test_deadline());
        ASSERT_EQ(notified.size(), 1U);
        EXPECT_EQ(text_of(notified.front()), "of the successor");
        EXPECT_EQ(client_->peers(), std::vector{successor.id()});
    }

    std::unique_ptr<Session> successor_ = session("server", GetParam());
    Stamped its_{*successor_, kBytes, 6};
};

TEST_P(DisplacedTest, CallingDoesNotTakeThePlaceOfASuccessorThatWasLoaded) {
    ASSERT_TRUE(client_->load_remote_conn_info(successor_->connection_info()).is_ok());
    ASSERT_TRUE(successor_->load_remote_conn_info(client_->connection_info()).is_ok());
    expect_refusals();
    expect_to_be_with(*successor_, its_);
    expect_refusals();
    expect_to_be_with(*successor_, its_);
}

TEST_P(DisplacedTest, CallingDoesNotTakeThePlaceOfASuccessorThatHasCalled) {
    ASSERT_TRUE(successor_->load_remote_conn_info(client_->connection_info()).is_ok());
    ASSERT_EQ(successor_->connect("client", test_deadline()).to_string(), "ok");
    expect_refusals();
    expect_to_be_with(*successor_, its_);
}

TEST_P(DisplacedTest, TheFlightRecordHasTheDisplacingPeerAndTheRefusal) {
    using runtime::SessionEventKind;
    const TimePoint begun = system_clock().now();
    ASSERT_TRUE(client_->load_remote_conn_info(successor_->connection_info()).is_ok());
    expect_refusals();
    std::vector<runtime::SessionEvent> events = runtime::session_recorder().events();
    std::erase_if(events,
                  [&](const auto& each) { return each.session != "client" || each.at < begun; });
    ASSERT_GE(events.size(), 3U);
    EXPECT_EQ(events[0].kind, SessionEventKind::kDisplaced);
    EXPECT_THAT(events[0].text, HasSubstr("by session \"server\""));
    EXPECT_EQ(events[1].kind, SessionEventKind::kLost);
    EXPECT_THAT(events[1].text, HasSubstr("as another incarnation"));
    EXPECT_EQ(events.back().kind, SessionEventKind::kRefused);
    EXPECT_THAT(events.back().text, HasSubstr("was displaced"));
}

TEST_P(DisplacedTest, TheProgramMayLoadItAgain) {
    ASSERT_TRUE(client_->load_remote_conn_info(successor_->connection_info()).is_ok());
    expect_refusals();
    ASSERT_TRUE(client_->load_remote_conn_info(server_->connection_info()).is_ok());
    ASSERT_EQ(server_->connect("client", test_deadline()).to_string(), "ok");
    expect_to_be_with(*server_, theirs_);
}

INSTANTIATE_TEST_SUITE_P(Transports, DisplacedTest, testing::Values("shm", "tcp"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace pccl::p2p
