// SPDX-License-Identifier: Apache-2.0

// What the selector lets a schedule send fits into the channels of its links, so that no rank waits
// for room that only a waiting rank could make.
#include <gmock/gmock.h>
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
#include "csrc/comm/group/collective_queue.h"
#include "csrc/comm/links/link_executor.h"
#include "csrc/comm/selection/selector.h"
#include "csrc/costs/model/link_model.h"
#include "csrc/transport/shm/ring.h"
#include "tests/cpp/comm/direct_results.h"
#include "tests/cpp/comm/watched_links.h"
#include "tests/cpp/schedule/catalogue.h"
#include "tests/fakes/loopback/links.h"

namespace pccl::comm {
namespace {

using schedule::Buffer;
using schedule::SourcePtr;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::WideValues;
using transport::TransportKind;

enum class Reach { kSharedMemory, kSockets, kBoth };

/// A group that has links alone.
struct LinkGroup {
    bootstrap::Roster roster;
    std::shared_ptr<const bootstrap::Layout> layout;
};

/// All ranks on one host, each on its own, or half of them on each of two.
LinkGroup group_of(int ranks, Reach reach) {
    bootstrap::Roster roster;
    for (Rank rank = 0; rank < ranks; ++rank) {
        bootstrap::Endpoint& endpoint = roster.endpoints.emplace_back();
        endpoint.rank = rank;
        const int host =
            reach == Reach::kSockets ? rank : reach == Reach::kBoth && rank < ranks / 2;
        endpoint.machine = endpoint.address.control.host = concat("node", host);
        endpoint.address.links[TransportKind::kTcp] = {"10.0.0.1:1"};
        if (reach != Reach::kSockets) endpoint.address.links[TransportKind::kShm] = {"unix:@x"};
    }
    auto layout = bootstrap::Layout::make(roster).value();
    return {std::move(roster), std::move(layout)};
}

/// One side's blocks of a call that nobody runs.
std::vector<Block> missing_blocks(CollectiveKind kind, Buffer side, int ranks, std::size_t count) {
    const auto number = static_cast<std::size_t>(schedule::blocks(kind, side, ranks));
    return std::vector<Block>(number, Block{nullptr, count});
}

/// A rank's decision where the user wants `source`.
Result<Decision> link_decision_of(const LinkGroup& group, Rank rank, const SourcePtr& source,
                                  DataType type, std::size_t count) {
    const int ranks = static_cast<int>(group.roster.endpoints.size());
    const std::string wanted = concat(schedule::to_string(source->kind), "=", source->name);
    Selector selector(group.roster, {.rank = rank, .layout = group.layout},
                      {.wanted = wanted, .tuning = {}, .costs = {}});
    const auto inputs = missing_blocks(source->kind, Buffer::kInput, ranks, count);
    const auto outputs = missing_blocks(source->kind, Buffer::kOutput, ranks, count);
    PCCL_ASSIGN_OR_RETURN(
        const Decision* decision,
        selector.choose(
            {.kind = source->kind, .type = type, .inputs = inputs, .outputs = outputs}));
    return *decision;
}

/// All that do not send each block on its own.
std::vector<SourcePtr> sources() {
    std::vector<SourcePtr> sources = schedule::testing::all_sources();
    std::erase_if(sources, [](const SourcePtr& source) {
        return is_per_pair(source->kind) && source->takes_uneven;
    });
    return sources;
}

/// Of a FIFO of the schedule, full of the longest messages of this rank.
std::size_t most_bytes(const Decision& decision, std::size_t element) {
    const auto longest = static_cast<std::size_t>(decision.program->longest_message);
    const auto slots = static_cast<std::size_t>(decision.program->shape.slots);
    return slots * longest * decision.cut.piece_length() * element + sizeof decision.header;
}

bool gathers_chunks(const SourcePtr& source) {
    return source->name == "recursive_doubling" || source->name == "recursive_halving" ||
           source->name == "bruck" || source->name == "pat" || source->name == "swing" ||
           (source->name == "binomial" && is_per_pair(source->kind));
}

class LinkCapacityTest : public ::testing::TestWithParam<int> {
   protected:
    static int ranks() { return GetParam(); }

    /// What four ranks choose fits, or all four refuse it, before anything is sent.
    static void check(const LinkGroup& group, const SourcePtr& source, DataType type, Reach reach) {
        const int on_a_host = reach == Reach::kBoth ? ranks() - ranks() / 2 : ranks();
        const std::size_t ring = transport::shm::ring_bytes(on_a_host, ranks());
        const std::size_t capacity = reach == Reach::kSharedMemory ? ring
                                     : reach == Reach::kSockets
                                         ? costs::kTcpCapacity
                                         : std::min(ring, costs::kTcpCapacity);
        const bool widens = runs_widened(source->kind, type, ReduceOp::kSum, ranks());
        const std::size_t element = size_of(widens ? DataType::kFloat32 : type);
        int refusals = 0;
        for (const Rank rank : {0, 1, ranks() / 2, ranks() - 1}) {
            const auto decision = link_decision_of(group, rank, source, type, 1 << 20);
            if (decision.is_ok()) {
                EXPECT_LE(most_bytes(*decision, element), capacity) << "rank " << rank;
                EXPECT_GE(decision->cut.piece_length(), 1U) << "rank " << rank;
                continue;
            }
            ++refusals;
            EXPECT_THAT(decision.status().message(),
                        AllOf(HasSubstr("its longest message is more than the"),
                              HasSubstr("; these can: "), Not(HasSubstr("\n"))));
        }
        EXPECT_TRUE(refusals == 0 || refusals == 4);
        EXPECT_TRUE(refusals == 0 || gathers_chunks(source));
    }
};

TEST_P(LinkCapacityTest, HoldsAllSlotsOfEverySchedule) {
    for (const Reach reach : {Reach::kSharedMemory, Reach::kSockets, Reach::kBoth}) {
        const LinkGroup group = group_of(ranks(), reach);
        for (const SourcePtr& source : sources()) {
            // Elsewhere a message is one chunk, however many ranks there are.
            if (ranks() > 1100 && !gathers_chunks(source)) continue;
            for (const DataType type : {DataType::kUint8, DataType::kFloat16, DataType::kFloat32,
                                        DataType::kComplex128}) {
                SCOPED_TRACE(concat(schedule::testing::name_of(source), " of ", to_string(type)));
                check(group, source, type, reach);
            }
        }
    }
}

/// However many ranks a host has, what goes to another is worth its message.
TEST(LinkCapacity, MessagesToOtherHostsAreNotBoundByTheRingsOfManyRanks) {
    const auto source =
        schedule::built_in("recursive_doubling", CollectiveKind::kAllGather).value();
    const auto bytes_in_message = [&](int ranks) {
        const auto decision =
            link_decision_of(group_of(ranks, Reach::kBoth), 0, source, DataType::kUint8, 1 << 20);
        EXPECT_TRUE(decision.is_ok()) << decision.status().to_string();
        return most_bytes(*decision, 1);
    };
    for (const int ranks : {64, 128, 256}) EXPECT_GT(bytes_in_message(ranks), 16 * kKiB);
}

INSTANTIATE_TEST_SUITE_P(Ranks, LinkCapacityTest,
                         ::testing::Values(2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 63, 64, 65, 255, 256,
                                           257, 511, 512, 513, 1000, 1023, 1024, 1025, 4095, 4096,
                                           65'535, 65'536));

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

    Result<transport::SendLink*> send_link(const schedule::Port& to) override {
        auto& link = senders_[to];
        if (link == nullptr)
            link = std::make_unique<testing::WatchedSendLink>(
                std::make_unique<transport::loopback::LoopbackSendLink>(
                    world_.pipe({rank_, to.peer, to.channel}), world_.process_),
                seen_);
        return link.get();
    }
    transport::RecvLink* receive_link(const schedule::Port& from) override {
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
    std::map<schedule::Port, std::unique_ptr<transport::SendLink>> senders_;
    std::map<schedule::Port, std::unique_ptr<transport::RecvLink>> receivers_;
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
    const LinkGroup group = group_of(ranks, Reach::kSharedMemory);
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
