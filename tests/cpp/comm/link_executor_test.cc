// SPDX-License-Identifier: Apache-2.0

// Link executors of all ranks in one thread: no rank waits for room that only a waiting rank could
// make.
#include "csrc/comm/links/link_executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/costs/model/link_model.h"
#include "csrc/transport/shm/ring.h"
#include "tests/cpp/comm/direct_results.h"
#include "tests/cpp/comm/link_groups.h"
#include "tests/cpp/comm/watched_links.h"
#include "tests/cpp/schedule/catalogue.h"
#include "tests/fakes/loopback/links.h"

namespace pccl::comm {
namespace {

using schedule::Buffer;
using schedule::SourcePtr;
using testing::WideValues;

/// All ranks of a group in one thread, on links that hold what those of the group would.
class LinkWorld {
   public:
    /// Rank 0 records when its steps happen, up to so many.
    LinkWorld(int ranks, const SourcePtr& source, std::size_t count, std::size_t recorded = 0);

    /// "" when every rank had the right result; else what is wrong.
    std::string run();
    [[nodiscard]] TimedSteps recorded();
    /// At this rank's links (watched_links.h).
    [[nodiscard]] const std::string& seen(Rank rank) const;

   private:
    class Host;
    using Key = std::tuple<Rank, Rank, ChannelId>;

    [[nodiscard]] int ranks() const { return static_cast<int>(hosts_.size()); }
    std::shared_ptr<transport::loopback::Pipe> pipe(const Key& key) {
        auto& pipe = pipes_[key];
        if (pipe == nullptr)
            pipe = std::make_shared<transport::loopback::Pipe>(transport::loopback::PipeArgs{
                .request = {.source = std::get<0>(key), .destination = std::get<1>(key)},
                .capacity = transport::shm::ring_bytes(ranks(), ranks()),
                .faults = {}});
        return pipe;
    }

    std::unique_ptr<transport::Waiter> waiter_ = std::move(transport::Waiter::create().value());
    std::shared_ptr<transport::loopback::Process> process_ =
        *transport::loopback::Process::create(0, *waiter_, {});
    std::map<Key, std::shared_ptr<transport::loopback::Pipe>> pipes_;
    std::size_t count_;
    std::vector<std::unique_ptr<Host>> hosts_;
};

class LinkWorld::Host final : public LinkTable {
   public:
    Host(LinkWorld& world, Rank rank) : world_(world), rank_(rank) {}

    Result<transport::SendLink*> send_link(const schedule::PeerPort& to) override {
        auto& link = senders_[to];
        if (link == nullptr)
            link = std::make_unique<testing::WatchedSendLink>(
                std::make_unique<transport::loopback::LoopbackSendLink>(
                    world_.pipe({rank_, to.peer, to.channel}), world_.process_),
                seen_);
        return link.get();
    }
    transport::RecvLink* receive_link(const schedule::PeerPort& from) override {
        auto& link = receivers_[from];
        if (link == nullptr)
            link = std::make_unique<testing::WatchedRecvLink>(
                std::make_unique<transport::loopback::LoopbackRecvLink>(
                    world_.pipe({from.peer, rank_, from.channel}), world_.process_),
                seen_);
        return link.get();
    }

    void start(const Decision& decision) {
        program_ = decision.program;
        const schedule::Shape& shape = program_->shape;
        inputs_ = testing::blocks_over(input_, shape, Buffer::kInput, world_.count_);
        outputs_ = testing::blocks_over(output_, shape, Buffer::kOutput, world_.count_);
        collective_ = {.kind = shape.kind,
                       .type = DataType::kInt64,
                       .root = shape.root,
                       .inputs = inputs_,
                       .outputs = outputs_};
        testing::fill(input_, rank_, world_.count_);
        executor_.start(program_, decision.cut, decision.header, collective_,
                        {DataType::kInt64, ReduceOp::kSum, shape.ranks});
    }
    [[nodiscard]] Timeline& timeline() { return executor_.timeline(); }
    [[nodiscard]] const std::string& seen() const { return seen_; }
    /// Whether it moved.
    Result<bool> step() {
        bool moved = false;
        PCCL_ASSIGN_OR_RETURN(done_, executor_.progress(moved));
        return moved || done_;
    }
    [[nodiscard]] bool is_done() const { return done_; }
    [[nodiscard]] AwaitedRanks awaited() const { return executor_.awaited(); }
    [[nodiscard]] std::string wrong_output() const {
        return testing::wrong_value(output_, program_->shape, rank_, world_.count_);
    }

   private:
    LinkWorld& world_;
    const Rank rank_;
    std::string seen_;
    std::map<schedule::PeerPort, std::unique_ptr<transport::SendLink>> senders_;
    std::map<schedule::PeerPort, std::unique_ptr<transport::RecvLink>> receivers_;
    std::shared_ptr<const LinkProgram> program_;
    WideValues input_;
    WideValues output_;
    std::vector<Block> inputs_;
    std::vector<Block> outputs_;
    Collective collective_;
    LinkExecutor executor_{*this};
    bool done_ = false;
};

LinkWorld::LinkWorld(int ranks, const SourcePtr& source, std::size_t count, std::size_t recorded)
    : count_(count) {
    const LinkGroup group = group_of(ranks, LinkReach::kSharedMemory);
    for (Rank rank = 0; rank < ranks; ++rank) {
        const auto decision = link_decision_of(group, rank, source, DataType::kInt64, count);
        EXPECT_TRUE(decision.is_ok()) << decision.status().to_string();
        hosts_.push_back(std::make_unique<Host>(*this, rank));
        if (rank == 0) hosts_.back()->timeline().start(recorded);
        hosts_.back()->start(*decision);
    }
}

std::string LinkWorld::run() {
    for (bool moved = true; moved;) {
        moved = false;
        for (const auto& host : hosts_) {
            if (host->is_done()) continue;
            const auto stepped = host->step();
            if (!stepped.is_ok()) return stepped.status().to_string();
            moved |= *stepped;
        }
    }
    for (const auto& host : hosts_)
        if (!host->is_done()) return concat("stuck, waiting for ", to_string(host->awaited()));
    // The expected values of all would take longer than all the rest.
    for (std::size_t rank = 0; rank < hosts_.size(); rank += std::max(hosts_.size() / 8, 1UL))
        if (std::string wrong = hosts_[rank]->wrong_output(); !wrong.empty()) return wrong;
    return {};
}

const std::string& LinkWorld::seen(Rank rank) const {
    return hosts_[static_cast<std::size_t>(rank)]->seen();
}

TimedSteps LinkWorld::recorded() { return hosts_.front()->timeline().take(); }

/// A lane that is through with a window begins the next one, but not the one after that, which has
/// the same scratch.
TEST(LinkCapacityWorld, WindowsThatHaveScratchOverlapByOne) {
    for (const std::string_view name : {"pat", "recursive_halving"}) {
        const auto source = *schedule::built_in(name, CollectiveKind::kReduceScatter);
        LinkWorld world(16, source, 500'000, 1 << 12);
        ASSERT_EQ(world.run(), "") << name;
        std::map<std::uint32_t, std::pair<TimePoint, TimePoint>> windows;  // first begin, last end
        for (const TimedStep& step : world.recorded().steps) {
            const auto [window, is_new] = windows.try_emplace(step.window, step.begin, step.end);
            auto& [begin, end] = window->second;
            begin = std::min(begin, step.begin);
            end = std::max(end, step.end);
        }
        ASSERT_GT(windows.size(), 3U);
        int overlapping = 0;
        for (std::uint32_t window = 0; window + 2 < windows.size(); ++window) {
            overlapping += windows[window + 1].first < windows[window].second ? 1 : 0;
            EXPECT_GE(windows[window + 2].first, windows[window].second) << name << ", " << window;
        }
        if (name == "pat") {
            EXPECT_GT(overlapping, 0) << "one lane sends and one receives";
        }
    }
}

/// A look costs a system call, and the peer waits meanwhile.
TEST(LinkCapacityWorld, WhatOneLaneReceivedAnotherSendsBeforeTheFirstLooksForMore) {
    const auto source = *schedule::built_in("pat", CollectiveKind::kAllGather);
    LinkWorld world(16, source, 64);
    ASSERT_EQ(world.run(), "");
    for (Rank rank = 0; rank < 16; ++rank) {
        const std::string& seen = world.seen(rank);
        // Each message but the last of log2 16 is passed on.
        for (std::size_t at = seen.find('r'); at < seen.rfind('s'); at = seen.find('r', at)) {
            at = seen.find_first_not_of('r', at);
            EXPECT_EQ(seen[at], 's') << seen << ", " << at;
        }
    }
}

TEST(LinkCapacityWorld, NobodyIsStuckByAnyAlgorithm) {
    for (const SourcePtr& source : schedule::testing::all_sources()) {
        EXPECT_EQ(LinkWorld(48, source, 3'000).run(), "") << schedule::testing::name_of(source);
    }
}

TEST(LinkCapacityWorld, NobodyIsStuckWhereMessagesHaveManyChunks) {
    constexpr int kRanks = 512;
    constexpr std::size_t kInLine = kCacheLine / sizeof(std::int64_t);
    for (const SourcePtr& source : sources()) {
        if (!gathers_chunks(source)) continue;
        // A cache line for each chunk.
        const auto chunks = static_cast<std::size_t>(source->granularity(kRanks));
        EXPECT_EQ(LinkWorld(kRanks, source, chunks * kInLine).run(), "")
            << schedule::testing::name_of(source);
    }
}

}  // namespace
}  // namespace pccl::comm
