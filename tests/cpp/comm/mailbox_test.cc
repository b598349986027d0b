// SPDX-License-Identifier: Apache-2.0

// Point-to-point messages: order, tags, any source, lengths, deadlines.
#include "csrc/comm/group/mailbox.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/cpp/comm/ranks.h"

namespace pccl::comm {
namespace {

using Data = std::vector<std::byte>;

Data data_of(std::size_t bytes, unsigned seed) {
    Data data(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        data[i] = static_cast<std::byte>((i * 31 + seed) & 0xFF);
    return data;
}

Event must(Result<Event> event) {
    EXPECT_TRUE(event.is_ok()) << event.status().to_string();
    return event.is_ok() ? *event : Event();
}

TEST(MessagesTest, MessagesOfOneTagKeepTheirOrder) {
    run_ranks({.size = 2}, [](CommunicatorImpl& comm) {
        const std::vector<std::size_t> lengths{1, 0, 100, 70'000, 3'000'000, 5};
        std::vector<Data> buffers;
        std::vector<Event> events;
        for (std::size_t i = 0; i < lengths.size(); ++i)
            buffers.push_back(comm.rank() == 0 ? data_of(lengths[i], static_cast<unsigned>(i))
                                               : Data(lengths[i]));
        for (Data& buffer : buffers)
            events.push_back(
                must(comm.rank() == 0 ? comm.send(1, 7, buffer) : comm.receive(0, 7, buffer)));
        for (const Event& event : events) EXPECT_TRUE(event.wait().is_ok());
        for (std::size_t i = 0; i < lengths.size(); ++i)
            EXPECT_EQ(buffers[i], data_of(lengths[i], static_cast<unsigned>(i)));
    });
}

TEST(MessagesTest, TagsMayBeReceivedInAnyOrder) {
    run_ranks({.size = 2}, [](CommunicatorImpl& comm) {
        constexpr std::size_t kBytes = 2'000'000;  // far more than a link holds
        if (comm.rank() == 0) {
            Data first = data_of(kBytes, 1);
            Data second = data_of(kBytes, 2);
            const Event a = must(comm.send(1, 1, first));
            const Event b = must(comm.send(1, 2, second));
            EXPECT_TRUE(a.wait().is_ok());
            EXPECT_TRUE(b.wait().is_ok());
            return;
        }
        for (const int tag : {2, 1}) {
            Data into(kBytes);
            EXPECT_TRUE(must(comm.receive(0, tag, into)).wait().is_ok());
            EXPECT_EQ(into, data_of(kBytes, static_cast<unsigned>(tag)));
        }
    });
}

TEST(MessagesTest, AnySourceNamesWhoSent) {
    run_ranks({.size = 4}, [](CommunicatorImpl& comm) {
        if (comm.rank() != 0) {
            const Data mine = data_of(10, static_cast<unsigned>(comm.rank()));
            EXPECT_TRUE(must(comm.send(0, 3, mine)).wait().is_ok());
            return;
        }
        std::set<Rank> seen;
        for (int i = 0; i < 3; ++i) {
            Data into(10);
            const Event event = must(comm.receive(kAnySource, 3, into));
            EXPECT_TRUE(event.wait().is_ok());
            EXPECT_EQ(into, data_of(10, static_cast<unsigned>(event.source())));
            seen.insert(event.source());
        }
        EXPECT_EQ(seen, (std::set<Rank>{1, 2, 3}));
    });
}

TEST(MessagesTest, ARankCanSendToItself) {
    run_ranks({.size = 1}, [](CommunicatorImpl& comm) {
        const Data sent = data_of(1000, 9);
        Data into(1000);
        const Event receive = must(comm.receive(0, 5, into));
        EXPECT_TRUE(must(comm.send(0, 5, sent)).wait().is_ok());
        EXPECT_TRUE(receive.wait().is_ok());
        EXPECT_EQ(into, sent);
    });
}

TEST(MessagesTest, AnotherLengthIsAMismatchAndHarmsNobody) {
    run_ranks({.size = 2}, [](CommunicatorImpl& comm) {
        Data buffer = data_of(comm.rank() == 0 ? 100 : 99, 4);
        const Event event =
            must(comm.rank() == 0 ? comm.send(1, 1, buffer) : comm.receive(0, 1, buffer));
        const Status status = event.wait();
        EXPECT_EQ(status.code(), comm.rank() == 0 ? StatusCode::kOk : StatusCode::kMismatch);
        if (comm.rank() == 1) {
            EXPECT_NE(status.message().find("rank 0 sent 100 bytes"), std::string::npos);
        }
        EXPECT_TRUE(comm.barrier().is_ok());
    });
}

TEST(MessagesTest, AReceiveThatNobodyAnswersTimesOutAndNamesThePeer) {
    run_ranks({.size = 2}, [](CommunicatorImpl& comm) {
        if (comm.rank() == 1) {
            Data into(4);
            const Status status =
                must(comm.receive(0, 1, into, {.timeout = std::chrono::milliseconds(50)})).wait();
            EXPECT_EQ(status.code(), StatusCode::kTimeout);
            EXPECT_EQ(status.peer(), 0);
            EXPECT_NE(status.message().find("rank 0"), std::string::npos) << status.message();
        }
        EXPECT_TRUE(comm.barrier().is_ok());
    });
}

TEST(MessagesTest, ACollectivePassesAMessageThatWaits) {
    run_ranks({.size = 2}, [](CommunicatorImpl& comm) {
        Data buffer = comm.rank() == 0 ? data_of(5'000'000, 6) : Data(5'000'000);
        Event event;
        if (comm.rank() == 0) event = must(comm.send(1, 1, buffer));
        EXPECT_TRUE(comm.barrier().is_ok());
        if (comm.rank() == 1) event = must(comm.receive(0, 1, buffer));
        EXPECT_TRUE(event.wait().is_ok());
        EXPECT_EQ(buffer, data_of(5'000'000, 6));
    });
}

TEST(MessagesTest, AbortFreesWhoWaits) {
    run_ranks({.size = 2}, [](CommunicatorImpl& comm) {
        if (comm.rank() == 0) return;
        Data into(4);
        const Event event = must(comm.receive(0, 1, into));
        comm.abort(Status::aborted("the test said so"));
        EXPECT_EQ(event.wait().code(), StatusCode::kAborted);
        EXPECT_EQ(comm.health().code(), StatusCode::kAborted);
        EXPECT_EQ(comm.barrier().code(), StatusCode::kAborted);
    });
}

/// Who waits and who aborts look at the messages at the same time.
TEST(MessagesTest, WhatIsAbortedWhileItIsWaitedForHasNotTimedOut) {
    constexpr int kMessages = 200;
    for (int round = 0; round < 50; ++round)
        run_ranks({.size = 1}, [](CommunicatorImpl& comm) {
            std::vector<Data> into(kMessages, Data(4));
            std::vector<Event> events;
            for (int tag = 0; tag < kMessages; ++tag)
                events.push_back(must(comm.receive(0, tag, into[static_cast<std::size_t>(tag)])));
            std::thread aborting([&] { comm.abort(Status::aborted("enough")); });
            for (const Event& event : events) {
                const Status status = event.wait();
                EXPECT_EQ(status.code(), StatusCode::kAborted) << status.to_string();
                EXPECT_NE(status.message().find("enough"), std::string::npos) << status.message();
            }
            aborting.join();
        });
}

}  // namespace
}  // namespace pccl::comm
