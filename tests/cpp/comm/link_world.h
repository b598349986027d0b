// SPDX-License-Identifier: Apache-2.0

// Strands of all ranks of a group, on links that hold what those of the group would.
#pragma once

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
#include "csrc/comm/links/strands.h"
#include "csrc/transport/shm/ring.h"
#include "tests/cpp/comm/direct_results.h"
#include "tests/cpp/comm/link_groups.h"
#include "tests/cpp/comm/watched_links.h"
#include "tests/fakes/loopback/links.h"

namespace pccl::comm {

using testing::WideValues;

/// All ranks of a group in one thread, and its helpers.
class LinkWorld {
   public:
    struct Setting {
        std::size_t recorded = 0;  // steps that rank 0 records at most
        int threads = 1;           // that each rank may run
        int helpers = 0;           // that each rank has
        int rounds = 1;            // times that the collective runs
    };
    LinkWorld(int ranks, const SourcePtr& source, std::size_t count, const Setting& setting);
    LinkWorld(int ranks, const SourcePtr& source, std::size_t count)
        : LinkWorld(ranks, source, count, Setting{}) {}

    /// "" when every rank had the right result; else what is wrong.
    std::string run();
    [[nodiscard]] TimedSteps recorded();
    /// Strands of the collective.
    [[nodiscard]] std::size_t strands() const { return strands_; }
    /// At this rank's links (watched_links.h).
    [[nodiscard]] std::string seen(Rank rank) const;

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
    std::string run_once();

    std::size_t count_;
    int rounds_;
    std::size_t strands_ = 0;
    std::vector<std::unique_ptr<Host>> hosts_;
};

class LinkWorld::Host final : public LinkTable {
   public:
    Host(LinkWorld& world, Rank rank, const Setting& setting) : world_(world), rank_(rank) {
        if (setting.helpers > 0) executor_.use_helpers(setting.helpers, sys::usable_cores());
    }

    Result<transport::SendLink*> send_link(const schedule::PeerPort& to) override {
        auto& link = senders_[to];
        if (link == nullptr)
            link = std::make_unique<testing::WatchedSendLink>(
                std::make_unique<transport::loopback::LoopbackSendLink>(
                    world_.pipe({rank_, to.peer, to.channel}), world_.process_),
                log_);
        return link.get();
    }
    transport::RecvLink* receive_link(const schedule::PeerPort& from) override {
        auto& link = receivers_[from];
        if (link == nullptr)
            link = std::make_unique<testing::WatchedRecvLink>(
                std::make_unique<transport::loopback::LoopbackRecvLink>(
                    world_.pipe({from.peer, rank_, from.channel}), world_.process_),
                log_);
        return link.get();
    }

    void start(const Decision& decision) {
        program_ = decision.program;
        decision_ = decision;
        const schedule::Shape& shape = program_->shape;
        done_ = false;
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
    [[nodiscard]] std::string seen() const { return log_.text(); }
    /// Whether it moved.
    Result<bool> step() {
        bool moved = false;
        PCCL_ASSIGN_OR_RETURN(done_, executor_.progress(moved));
        return moved || done_;
    }
    void start_again() { start(decision_); }
    [[nodiscard]] bool is_done() const { return done_; }
    [[nodiscard]] AwaitedRanks awaited() const { return executor_.awaited(); }
    [[nodiscard]] std::string wrong_output() const {
        return testing::wrong_value(output_, program_->shape, rank_, world_.count_);
    }

   private:
    LinkWorld& world_;
    const Rank rank_;
    testing::LinkLog log_;
    std::map<schedule::PeerPort, std::unique_ptr<transport::SendLink>> senders_;
    std::map<schedule::PeerPort, std::unique_ptr<transport::RecvLink>> receivers_;
    Decision decision_;
    std::shared_ptr<const LinkProgram> program_;
    WideValues input_;
    WideValues output_;
    std::vector<Block> inputs_;
    std::vector<Block> outputs_;
    Collective collective_;
    Strands executor_{*this};
    bool done_ = false;
};

inline LinkWorld::LinkWorld(int ranks, const SourcePtr& source, std::size_t count,
                            const Setting& setting)
    : count_(count), rounds_(setting.rounds) {
    LinkGroup group = group_of(ranks, LinkReach::kSharedMemory);
    for (bootstrap::Endpoint& endpoint : group.roster.endpoints)
        endpoint.tcp_threads = setting.threads - 1;
    for (Rank rank = 0; rank < ranks; ++rank) {
        const auto decision = link_decision_of(group, rank, source, DataType::kInt64, count);
        EXPECT_TRUE(decision.is_ok()) << decision.status().to_string();
        strands_ = decision->cut.strands;
        hosts_.push_back(std::make_unique<Host>(*this, rank, setting));
        if (rank == 0) hosts_.back()->timeline().start(setting.recorded);
        hosts_.back()->start(*decision);
    }
}

inline std::string LinkWorld::run() {
    for (int round = 0; round < rounds_; ++round) {
        if (round > 0)
            for (const auto& host : hosts_) host->start_again();
        if (std::string wrong = run_once(); !wrong.empty()) return wrong;
    }
    return {};
}

inline std::string LinkWorld::run_once() {
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

inline std::string LinkWorld::seen(Rank rank) const {
    return hosts_[static_cast<std::size_t>(rank)]->seen();
}

inline TimedSteps LinkWorld::recorded() { return hosts_.front()->timeline().take(); }

}  // namespace pccl::comm
