// SPDX-License-Identifier: Apache-2.0

// What a child of fork() can do to the groups, stores and records of its parent: nothing.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/bootstrap/rendezvous/file_store.h"
#include "csrc/bootstrap/rendezvous/tcp_store.h"
#include "csrc/comm/communicator.h"
#include "csrc/runtime/flight/flight_recorder.h"
#include "csrc/runtime/runtime.h"
#include "tests/fakes/deadlines.h"
#include "tests/fakes/device_ranks.h"
#include "tests/fakes/forked_child.h"
#include "tests/fakes/loopback/loopback_fabric.h"
#include "tests/fakes/memory_store.h"

namespace pccl::comm {
namespace {

using fakes::ForkedChild;
using fakes::test_deadline;
using transport::loopback::LoopbackFabric;

constexpr int kForks = 100;

bool is_refused(const Status& status) {
    return status.code() == StatusCode::kUnavailable &&
           status.message().find("fork") != std::string::npos;
}

/// Whoever sends waits at it, with all locks that senders hold.
struct Gate {
    std::atomic<bool> is_reached{false};
    std::atomic<bool> is_open{false};

    void pass() {
        is_reached = true;
        while (!is_open) std::this_thread::yield();
    }
};

class GatedLink final : public transport::SendLink {
   public:
    GatedLink(std::unique_ptr<SendLink> link, Gate& gate) : link_(std::move(link)), gate_(gate) {}

    [[nodiscard]] transport::TransportKind kind() const override { return link_->kind(); }
    [[nodiscard]] std::size_t capacity(ChannelId channel) const override {
        return link_->capacity(channel);
    }
    Result<std::size_t> send(ChannelId channel, transport::Bytes bytes,
                             transport::Flush flush) override {
        gate_.pass();
        return link_->send(channel, bytes, flush);
    }
    Result<bool> flush(ChannelId channel) override { return link_->flush(channel); }
    void abort(const Status& reason) override { link_->abort(reason); }

   private:
    std::unique_ptr<SendLink> link_;
    Gate& gate_;
};

class GatedPendingConnect final : public transport::PendingConnect {
   public:
    GatedPendingConnect(std::unique_ptr<PendingConnect> pending_connect, Gate& gate)
        : pending_connect_(std::move(pending_connect)), gate_(gate) {}

    Result<std::unique_ptr<transport::SendLink>> advance() override {
        PCCL_ASSIGN_OR_RETURN(auto link, pending_connect_->advance());
        if (link == nullptr) return link;
        return std::unique_ptr<transport::SendLink>(
            std::make_unique<GatedLink>(std::move(link), gate_));
    }
    [[nodiscard]] Status timeout_error() const override {
        return pending_connect_->timeout_error();
    }

   private:
    std::unique_ptr<PendingConnect> pending_connect_;
    Gate& gate_;
};

class GatedTransport final : public transport::Transport {
   public:
    GatedTransport(std::unique_ptr<Transport> transport, Gate& gate)
        : transport_(std::move(transport)), gate_(gate) {}

    [[nodiscard]] transport::TransportKind kind() const override { return transport_->kind(); }
    [[nodiscard]] std::vector<std::string> addresses() const override {
        return transport_->addresses();
    }
    [[nodiscard]] Status reaches(const transport::PeerAddress& peer) const override {
        return transport_->reaches(peer);
    }
    Result<std::unique_ptr<transport::PendingConnect>> connect(
        const transport::PeerAddress& peer, const transport::LinkRequest& request,
        const transport::Secret& secret) override {
        PCCL_ASSIGN_OR_RETURN(auto pending_connect, transport_->connect(peer, request, secret));
        return std::unique_ptr<transport::PendingConnect>(
            std::make_unique<GatedPendingConnect>(std::move(pending_connect), gate_));
    }
    void accept(transport::Arrival arrival, transport::LinkReceiver& receiver) override {
        transport_->accept(std::move(arrival), receiver);
    }
    void advance(transport::LinkReceiver& receiver) override { transport_->advance(receiver); }
    [[nodiscard]] Result<std::shared_ptr<transport::RmaTransport>> one_sided() override {
        return transport_->one_sided();
    }

   private:
    std::unique_ptr<Transport> transport_;
    Gate& gate_;
};

/// Two ranks, threads of this process.
class Pair {
   public:
    explicit Pair(Gate& gate) {
        const auto fabric = LoopbackFabric::create();
        const auto store = std::make_shared<fakes::MemoryStore>();
        std::vector<std::thread> threads;
        for (Rank rank = 0; rank < 2; ++rank)
            threads.emplace_back([&, rank] { ranks_.at(rank) = join(*fabric, store, rank, gate); });
        for (auto& thread : threads) thread.join();
    }
    CommunicatorImpl& operator[](std::size_t rank) { return *ranks_.at(rank); }
    void drop() { ranks_ = {}; }

   private:
    static std::shared_ptr<CommunicatorImpl> join(LoopbackFabric& fabric,
                                                  const std::shared_ptr<Store>& store, Rank rank,
                                                  Gate& gate) {
        std::shared_ptr<transport::Waiter> waiter(transport::Waiter::create().value());
        auto member = std::move(fabric.join(*waiter).value());
        runtime::TransportNetwork network{.control = std::move(member.control), .transports = {}};
        network.transports.push_back(
            std::make_unique<GatedTransport>(std::move(member.transport), gate));
        const auto runtime = runtime::Runtime::with(std::move(waiter), std::move(network)).value();
        return CommunicatorImpl::create(
                   {.rank = rank, .size = 2, .store = store, .runtime = runtime})
            .value();
    }

    std::array<std::shared_ptr<CommunicatorImpl>, 2> ranks_;
};

/// Whether all that a child can ask of a group of its parent's ends at once.
bool all_is_refused(CommunicatorImpl& comm, const Event& waiting) {
    std::byte token{};
    const Block block{&token, 1};
    const Collective collective{
        .type = DataType::kUint8, .inputs = {&block, 1}, .outputs = {&block, 1}};
    comm.abort(Status::aborted("the child's"));
    return is_refused(comm.run(collective)) && is_refused(comm.submit(collective).status()) &&
           is_refused(comm.send(1, 0, {&token, 1}).status()) &&
           is_refused(comm.receive(1, 0, {&token, 1}).status()) && is_refused(comm.barrier()) &&
           is_refused(comm.explain(CollectiveKind::kAllReduce, 1024).status()) &&
           is_refused(comm.allocate_on_all_ranks("space", 64).status()) &&
           is_refused(comm.shrink({}, {}).status()) &&
           is_refused(comm.survey(std::chrono::seconds(1)).status()) &&
           is_refused(comm.query(1, test_deadline()).status()) && is_refused(comm.health()) &&
           is_refused(waiting.wait()) && is_refused(waiting.flush()) && comm.shutdown().is_ok();
}

TEST(ForkTest, AChildIsRefusedAtOnceThoughAThreadOfItsParentHoldsTheGroup) {
    Gate gate;
    Pair ranks(gate);
    std::array<std::byte, 8> sent{std::byte{7}};
    std::array<std::byte, 8> received{};
    Event waiting = ranks[1].receive(0, 0, received).value();
    std::thread sender([&] { EXPECT_TRUE(ranks[0].send(1, 0, sent).value().wait().is_ok()); });
    while (!gate.is_reached) std::this_thread::yield();
    ForkedChild child([&] {
        if (!all_is_refused(ranks[0], waiting) || !all_is_refused(ranks[1], waiting)) return 1;
        waiting = Event();
        ranks.drop();
        return 0;
    });
    EXPECT_EQ(child.join(), 0);
    gate.is_open = true;
    EXPECT_TRUE(waiting.wait(test_deadline()).is_ok());
    EXPECT_EQ(received, sent);
    sender.join();
}

/// Forks again and again while another thread does `busy`, and looks at what `body` returns.
void fork_beside(const std::function<void()>& busy, const std::function<bool()>& body) {
    std::atomic<bool> stop{false};
    std::thread other([&] {
        while (!stop) busy();
    });
    for (int i = 0; i < kForks; ++i) {
        ForkedChild child([&] { return body() ? 0 : 1; });
        EXPECT_EQ(child.join(), 0);
        if (::testing::Test::HasFailure()) break;
    }
    stop = true;
    other.join();
}

TEST(ForkTest, TheFlightRecordIsWholeInAChild) {
    fork_beside([] { runtime::flight_recorder().add_group({.name = "busy"}); },
                [] {
                    runtime::flight_recorder().add_group({.name = "own"});
                    return runtime::flight_recorder().groups().back().name == "own";
                });
}

TEST(ForkTest, AChildDoesNotWaitForThreadsThatLookForTheRuntime) {
    const auto kept = runtime::Runtime::of_process();
    ASSERT_TRUE(kept.is_ok()) << kept.status().to_string();
    fork_beside([] { EXPECT_TRUE(runtime::Runtime::of_process().is_ok()); },
                [] { return is_refused(runtime::Runtime::of_process().status()); });
}

TEST(ForkTest, AChildMakesGroupsOfItsOwnOnceItHasDroppedItsParents) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer lets no child of a process with threads start any";
#endif
    auto comm = CommunicatorImpl::create({}).value();
    ForkedChild child([&] {
        if (!is_refused(CommunicatorImpl::create({}).status())) return 1;
        comm.reset();
        const auto own = CommunicatorImpl::create({});
        return own.is_ok() && (*own)->barrier().is_ok() ? 0 : 2;
    });
    EXPECT_EQ(child.join(), 0);
    EXPECT_TRUE(comm->barrier().is_ok());
}

TEST(ForkTest, AStoreOverTcpIsItsParents) {
    auto store =
        bootstrap::TcpStore::host({.host = "127.0.0.1", .port = 0}, test_deadline()).value();
    const auto peer = bootstrap::TcpStore::join(store->location(), test_deadline()).value();
    ASSERT_TRUE(store->set("before", "1").is_ok());
    ForkedChild child([&] {
        if (!is_refused(store->set("during", "2")) ||
            !is_refused(store->get("before", test_deadline()).status()))
            return 1;
        store.reset();
        return 0;
    });
    EXPECT_EQ(child.join(), 0);
    EXPECT_EQ(peer->get("before", test_deadline()).value(), "1");
    EXPECT_TRUE(store->set("after", "3").is_ok());
    EXPECT_EQ(peer->get("after", test_deadline()).value(), "3");
}

TEST(ForkTest, AChildDoesNotKeepThePortOfAStore) {
    auto store =
        bootstrap::TcpStore::host({.host = "127.0.0.1", .port = 0}, test_deadline()).value();
    const bootstrap::StoreLocation where = store->location();
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    ForkedChild child([&] { return ::write(pipe[1], "!", 1) == 1 ? ::pause() : 1; });
    // It lets go as soon as it runs, which may be later than this.
    char signal = 0;
    ASSERT_EQ(::read(pipe[0], &signal, 1), 1);
    for (const int end : pipe) ::close(end);
    store.reset();
    const auto again = bootstrap::TcpStore::host(where, test_deadline());
    EXPECT_TRUE(again.is_ok()) << again.status().to_string();
}

TEST(ForkTest, AStoreInAFileIsItsParents) {
    const std::string path = ::testing::TempDir() + "pccl-fork-" + std::to_string(::getpid());
    const auto store = bootstrap::FileStore::open(path, 0, test_deadline()).value();
    ForkedChild child([&] {
        return is_refused(store->set("during", "1")) &&
                       is_refused(store->get("during", test_deadline()).status())
                   ? 0
                   : 1;
    });
    EXPECT_EQ(child.join(), 0);
    EXPECT_TRUE(store->set("after", "2").is_ok());
    ::unlink(path.c_str());
}

TEST(ForkTest, AGroupOfGpusIsItsParents) {
    fakes::run_device_ranks({.size = 2}, [](fakes::DeviceRank& member) {
        member.together.arrive_and_wait();
        if (member.group.rank() == 0) {
            device::DeviceGroupImpl& group = member.group;
            ForkedChild child([&group] {
                group.abort();
                return is_refused(group.health()) && is_refused(group.launch({}, nullptr)) &&
                               is_refused(group.launch_all({}, nullptr)) &&
                               is_refused(group.exchange({}, nullptr)) &&
                               is_refused(group.announce(&group))
                           ? 0
                           : 1;
            });
            EXPECT_EQ(child.join(), 0);
        }
        member.together.arrive_and_wait();
        EXPECT_TRUE(member.group.health().is_ok());
    });
}

}  // namespace
}  // namespace pccl::comm
