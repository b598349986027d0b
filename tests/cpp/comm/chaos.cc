// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/comm/chaos.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "csrc/base/assert.h"
#include "csrc/base/text/text.h"
#include "csrc/collective/fingerprint.h"
#include "csrc/comm/links/link_executor.h"
#include "tests/cpp/comm/direct_results.h"
#include "tests/cpp/schedule/catalogue.h"
#include "tests/fakes/host.h"
#include "tests/fakes/loopback/loopback_fabric.h"
#include "tests/fakes/loopback/manual_clock.h"

namespace pccl::comm::testing {
namespace {

using namespace transport;            // NOLINT(google-build-using-namespace)
using namespace transport::loopback;  // NOLINT(google-build-using-namespace)
using schedule::Buffer;
using schedule::PeerPort;

constexpr GroupId kGroup{1};
constexpr Secret kSecret{2};
constexpr int kMostTurns = 200'000;
constexpr int kTurnsUntilTimeout = 500;  // so many idle ones are long
constexpr int kIdleTurns = 2'000;        // in a row, with the clock moved on between them

/// What a seed means.
struct Scenario {
    schedule::SourcePtr source{};
    schedule::Shape shape{};
    std::size_t count = 1;  // elements of a block
    Cut cut{};
    FabricOptions fabric{};
    bool may_fail = false;

    [[nodiscard]] std::string describe() const {
        return concat(schedule::testing::name_of(source), ", ", shape.ranks, " ranks, root ",
                      shape.root, ", ", count, " elements in windows of ", cut.window, ", ",
                      cut.windows_at_once, " at once", may_fail ? ", with deaths or resets" : "");
    }
};

class Draw {
   public:
    explicit Draw(std::uint64_t seed) : random_(seed) {}
    std::size_t from(std::size_t low, std::size_t high) {
        return low + static_cast<std::size_t>(random_() % (high - low + 1));
    }
    bool happens(int percent) { return from(0, 99) < static_cast<std::size_t>(percent); }

   private:
    std::mt19937_64 random_;
};

Scenario scenario_of(std::uint64_t seed, Draw& draw, const Clock& clock) {
    const auto sources = schedule::testing::all_sources();
    Scenario scenario;
    scenario.source = sources[draw.from(0, sources.size() - 1)];
    const int ranks = static_cast<int>(draw.from(2, 7));
    scenario.shape = schedule::testing::shape_of(scenario.source, ranks, 0, 1);
    if (schedule::is_rooted(scenario.source->kind))
        scenario.shape.root = static_cast<Rank>(draw.from(0, static_cast<std::size_t>(ranks) - 1));
    scenario.count = draw.from(0, 600);
    const auto chunks = static_cast<std::size_t>(scenario.shape.chunks);
    scenario.cut = {.window = chunks * draw.from(1, 40),
                    .chunks = scenario.shape.chunks,
                    .grain = 1,
                    .windows_at_once = draw.from(1, 2)};
    FaultPlan& faults = scenario.fabric.faults;
    faults.seed = seed;
    faults.short_write = draw.happens(60) ? 0.3 : 0;
    faults.short_read = draw.happens(60) ? 0.3 : 0;
    if (draw.happens(50)) faults.longest_delay = std::chrono::microseconds(draw.from(1, 500));
    if (draw.happens(25)) {
        faults.reset = 0.002;
    } else if (draw.happens(33)) {
        faults.doomed_process = static_cast<int>(draw.from(0, static_cast<std::size_t>(ranks) - 1));
        faults.dies_at_call = draw.from(1, 200);
    }
    scenario.may_fail = faults.reset > 0 || faults.doomed_process >= 0;
    scenario.fabric.clock = &clock;
    return scenario;
}

class ChaosWorld;

/// One rank: its links, its data, its executor.
class Host final : public fakes::Host, public LinkTable {
   public:
    Host(ChaosWorld& world, LoopbackFabric& fabric, Rank rank)
        : fakes::Host([&fabric](Waiter& own) { return fakes::loopback_member(fabric, own); }),
          world_(world),
          rank_(rank) {
        static_cast<LoopbackControlPlane&>(control()).answer_inline(*this);
    }

    std::optional<Secret> secret_of(const GroupId&) override { return kSecret; }
    void accepted(const LinkRequest& request, std::unique_ptr<RecvLink> link) override {
        receivers_[{request.source, request.channel}] = std::move(link);
    }
    void refused(std::string_view, const Status&) override {}
    Result<SendLink*> send_link(const PeerPort& to) override;
    RecvLink* receive_link(const PeerPort& from) override {
        const auto found = receivers_.find(from);
        return found == receivers_.end() ? nullptr : found->second.get();
    }

    void start(const Scenario& scenario);
    /// Whether it moved.
    bool step();
    void fail(const Status& why);
    [[nodiscard]] bool is_over() const { return done_ || !status_.is_ok(); }
    [[nodiscard]] const Status& status() const { return status_; }
    [[nodiscard]] AwaitedRanks awaited() const { return executor_.awaited(); }
    /// As a group does that has waited for long: asks those it waits for whether they are there.
    void look_around();
    /// Empty when the outputs are what they should be.
    [[nodiscard]] std::string wrong_output(const Scenario& scenario) const;

   private:
    ChaosWorld& world_;
    const Rank rank_;
    std::map<PeerPort, std::unique_ptr<SendLink>> senders_;
    std::map<PeerPort, std::unique_ptr<RecvLink>> receivers_;
    WideValues input_;
    WideValues output_;
    std::vector<Block> inputs_;
    std::vector<Block> outputs_;
    Collective collective_;
    Timeline timeline_;
    LinkExecutor executor_{*this, timeline_};
    Status status_;
    bool done_ = false;
};

class ChaosWorld {
   public:
    explicit ChaosWorld(std::uint64_t seed)
        : draw_(seed), scenario_(scenario_of(seed, draw_, clock_)) {
        const auto fabric = LoopbackFabric::create(scenario_.fabric);
        for (Rank rank = 0; rank < scenario_.shape.ranks; ++rank)
            hosts_.push_back(std::make_unique<Host>(*this, *fabric, rank));
        for (const auto& host : hosts_) host->start(scenario_);
    }

    Host& host(Rank rank) { return *hosts_[static_cast<std::size_t>(rank)]; }
    ChaosRun run();

   private:
    [[nodiscard]] std::string outcome() const;
    [[nodiscard]] bool is_over() const {
        return std::ranges::all_of(hosts_, [](const auto& host) { return host->is_over(); });
    }

    ManualClock clock_;
    Draw draw_;
    const Scenario scenario_;
    std::vector<std::unique_ptr<Host>> hosts_;
};

Result<SendLink*> Host::send_link(const PeerPort& to) {
    auto found = senders_.find(to);
    if (found == senders_.end()) {
        const LinkRequest request{
            .group = kGroup, .source = rank_, .destination = to.peer, .channel = to.channel};
        PCCL_ASSIGN_OR_RETURN(
            const auto pending_connect,
            transport().connect(world_.host(to.peer).address(), request, kSecret));
        PCCL_ASSIGN_OR_RETURN(auto link, pending_connect->advance());
        PCCL_ASSERT(link != nullptr);  // hosts accept on the caller's thread
        found = senders_.emplace(to, std::move(link)).first;
    }
    return found->second.get();
}

void Host::start(const Scenario& scenario) {
    const auto& shape = scenario.shape;
    inputs_ = blocks_over(input_, shape, Buffer::kInput, scenario.count);
    outputs_ = blocks_over(output_, shape, Buffer::kOutput, scenario.count);
    collective_ = {.kind = shape.kind,
                   .type = DataType::kInt64,
                   .root = shape.root,
                   .inputs = inputs_,
                   .outputs = outputs_};
    fill(input_, rank_, scenario.count);
    abi::CollectiveHeader header{};
    header.magic = abi::kCollectiveMagic;
    header.kind = static_cast<std::uint8_t>(shape.kind);
    header.sequence = 1;
    header.count = scenario.count;
    auto program = make_link_program(*scenario.source, shape, rank_);
    if (!program.is_ok()) return fail(program.status());
    executor_.start(std::move(*program), scenario.cut, header, collective_,
                    {collective_.type, ReduceOp::kSum, shape.ranks});
}

bool Host::step() {
    bool moved = false;
    const auto done = executor_.progress(moved);
    if (!done.is_ok()) {
        fail(done.status());
        return true;
    }
    done_ = *done;
    return moved || done_;
}

/// As a group does: its links end, so that the error spreads.
void Host::fail(const Status& why) {
    status_ = why;
    for (const auto& [key, link] : senders_) link->abort(why);
    for (const auto& [key, link] : receivers_) link->abort(why);
}

void Host::look_around() {
    for (const Awaited& awaited : executor_.awaited()) {
        const Status& theirs = world_.host(awaited.rank).status();
        if (!theirs.is_ok()) return fail(theirs);
    }
}

std::string Host::wrong_output(const Scenario& scenario) const {
    return wrong_value(output_, scenario.shape, rank_, scenario.count);
}

ChaosRun ChaosWorld::run() {
    int idle = 0;
    for (int turn = 0; turn < kMostTurns && idle < kIdleTurns && !is_over(); ++turn) {
        Host& host = *hosts_[draw_.from(0, hosts_.size() - 1)];
        const bool moved = !host.is_over() && host.step();
        idle = moved ? 0 : idle + 1;
        if (!moved) clock_.advance(std::chrono::microseconds(draw_.from(1, 50)));
        if (idle > kTurnsUntilTimeout && !host.is_over()) host.look_around();
    }
    const bool disturbed =
        std::ranges::any_of(hosts_, [](const auto& host) { return !host->status().is_ok(); });
    return {scenario_.describe(), outcome(), disturbed};
}

std::string ChaosWorld::outcome() const {
    for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
        const Host& host = *hosts_[rank];
        if (!host.is_over())
            return concat("rank ", rank, " is stuck, waiting for ", to_string(host.awaited()));
        if (!host.status().is_ok() && !scenario_.may_fail)
            return concat("rank ", rank,
                          " failed with nothing broken: ", host.status().to_string());
        if (host.status().is_ok())
            if (std::string wrong = host.wrong_output(scenario_); !wrong.empty()) return wrong;
    }
    return {};
}

}  // namespace

ChaosRun explore(std::uint64_t seed) { return ChaosWorld(seed).run(); }

}  // namespace pccl::comm::testing
