// SPDX-License-Identifier: Apache-2.0

// What comes after what, on a driver that only writes down what it is asked, and in a model of
// streams, events and graphs. There a replay waits for what its events were when it began, as
// measured on an H200: CUDA does not document it.

#include "csrc/device/launch/launch_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "tests/fakes/fake_cuda.h"

namespace pccl::device {
namespace {

using fakes::FakeCudaDriver;
using sys::cuda::Event;
using sys::cuda::Stream;
using What = FakeCudaDriver::Order::What;
using ::testing::IsEmpty;

using Things = std::set<std::size_t>;

void add(Things& to, const Things& more) { to.insert(more.begin(), more.end()); }

/// What has been captured, or is being.
struct Graph {
    struct Node {
        Things before;                 // other nodes
        std::optional<Event> waits{};  // else a launch
    };
    std::vector<Node> nodes;
    std::map<Stream, Things> got;  // nodes, by the stream that was captured
    std::map<Event, Things> records;

    void append(Stream stream, std::optional<Event> waits = {}) {
        Things& before = got[stream];
        nodes.push_back({before, waits});
        before.insert(nodes.size() - 1);
    }
};

/// Some streams, and graphs of their launches.
class LaunchOrderTest : public ::testing::Test {
   protected:
    static Stream stream(int number) {
        return std::bit_cast<Stream>(static_cast<std::uintptr_t>(number) + 1);
    }
    void launch(int in) {
        const Stream on = stream(in);
        EXPECT_TRUE(order_.begin(on).is_ok());
        heed();
        if (captured_.contains(on)) {
            graphs_.back().append(on);
        } else {
            run(got_[on]);
        }
        EXPECT_TRUE(order_.end(on).is_ok());
        heed();
    }
    void begin_graph(int in) {
        graphs_.emplace_back();
        capture(stream(in));
    }
    /// Another stream takes part in the capture.
    void fork_graph(int from, int to) {
        capture(stream(to));
        graphs_.back().got[stream(to)] = graphs_.back().got[stream(from)];
    }
    void end_graph() {
        for (const Stream on : captured_) driver_.capture(on, 0);
        captured_.clear();
    }
    void replay(std::size_t which, int in) {
        const Graph& graph = graphs_.at(which);
        const auto recorded = events_;  // what a wait means is settled when the replay begins
        const Things before = got_[stream(in)];
        std::vector<Things> done;
        for (const Graph::Node& node : graph.nodes) {
            Things all = before;
            for (const std::size_t other : node.before) add(all, done[other]);
            if (node.waits && recorded.contains(*node.waits)) add(all, recorded.at(*node.waits));
            if (!node.waits) run(all);
            done.push_back(all);
        }
        for (const auto& [event, nodes] : graph.records) {
            events_[event].clear();
            for (const std::size_t node : nodes) add(events_[event], done[node]);
        }
        for (const Things& all : done) add(got_[stream(in)], all);
    }

    FakeCudaDriver driver_{std::make_shared<fakes::FakeGpus>()};
    LaunchOrder order_{driver_};
    std::vector<Graph> graphs_;

   private:
    void capture(Stream on) {
        driver_.capture(on, graphs_.size());
        captured_.insert(on);
    }
    /// A launch runs, behind `before`: all others have to be there.
    void run(Things& before) {
        EXPECT_EQ(before.size(), launches_) << "launch " << launches_ << " may run before others";
        before.insert(launches_++);
    }
    void heed() {
        for (const auto& each : driver_.take_orders()) heed(each);
    }
    void heed(const FakeCudaDriver::Order& each) {
        const bool is_captured = captured_.contains(each.stream);
        switch (each.what) {
            case What::kFollow:
                if (is_captured != captured_.contains(each.first)) break;
                if (is_captured)
                    add(graphs_.back().got[each.stream], graphs_.back().got[each.first]);
                if (!is_captured) add(got_[each.stream], got_[each.first]);
                break;
            case What::kRecord:
                ASSERT_FALSE(is_captured);
                events_[each.event] = got_[each.stream];
                break;
            case What::kAwait:
                ASSERT_FALSE(is_captured);
                add(got_[each.stream], events_[each.event]);
                break;
            case What::kRecordInGraph:
                ASSERT_TRUE(is_captured);
                graphs_.back().records[each.event] = graphs_.back().got[each.stream];
                break;
            case What::kAwaitInGraph:
                ASSERT_TRUE(is_captured);
                graphs_.back().append(each.stream, each.event);
                break;
        }
    }

    std::map<Stream, Things> got_;    // launches, by the stream that waits for them
    std::map<Event, Things> events_;  // launches
    std::set<Stream> captured_;       // into the last of graphs_
    std::size_t launches_ = 0;
};

TEST_F(LaunchOrderTest, WithoutGraphsOneStreamCostsNothing) {
    ASSERT_TRUE(order_.begin(stream(0)).is_ok());
    ASSERT_TRUE(order_.end(stream(0)).is_ok());
    ASSERT_TRUE(order_.begin(stream(0)).is_ok());
    ASSERT_TRUE(order_.end(stream(0)).is_ok());
    EXPECT_THAT(driver_.take_orders(), IsEmpty());
    EXPECT_EQ(driver_.recorded(), 0U);
}

TEST_F(LaunchOrderTest, StreamsFollowOneAnother) {
    for (const int in : {0, 1, 1, 2, 0}) launch(in);
    EXPECT_EQ(driver_.recorded(), 0U);
}

TEST_F(LaunchOrderTest, AReplayWaitsForWhatRunsElsewhere) {
    launch(0);
    begin_graph(9);
    for (int time = 0; time < 3; ++time) launch(9);
    end_graph();
    replay(0, 1);
    launch(0);
    replay(0, 1);
}

TEST_F(LaunchOrderTest, WhatFollowsWaitsForReplaysElsewhere) {
    begin_graph(9);
    launch(9);
    launch(9);
    end_graph();
    for (const int in : {0, 1, 2}) {
        replay(0, in);
        launch(in + 1);
    }
}

TEST_F(LaunchOrderTest, GraphsFollowOneAnother) {
    for (const int in : {8, 9}) {
        begin_graph(in);
        launch(in);
        launch(in);
        end_graph();
    }
    for (const int in : {0, 1, 2, 3}) replay(static_cast<std::size_t>(in) % 2, in);
}

TEST_F(LaunchOrderTest, WhatRunsWhileAGraphIsCapturedIsOutside) {
    launch(0);
    begin_graph(9);
    launch(9);
    launch(1);
    launch(9);
    launch(2);
    end_graph();
    launch(0);
    replay(0, 1);
}

TEST_F(LaunchOrderTest, AGraphOfTwoStreamsIsInOrder) {
    begin_graph(8);
    launch(8);
    fork_graph(8, 9);
    for (const int in : {9, 8, 9}) launch(in);
    end_graph();
    replay(0, 0);
    launch(1);
    replay(0, 2);
}

TEST_F(LaunchOrderTest, AGraphThatIsNeverReplayedHoldsNobodyUp) {
    launch(0);
    begin_graph(9);
    launch(9);
    end_graph();
    for (const int in : {0, 1, 0}) launch(in);
}

/// Replays elsewhere do not wait for that: nothing can be recorded in a stream that is captured.
TEST_F(LaunchOrderTest, WhatACapturedStreamGotBeforeIsWaitedForOutside) {
    launch(9);
    begin_graph(9);
    launch(9);
    end_graph();
    launch(0);
    launch(1);
    replay(0, 2);
}

TEST_F(LaunchOrderTest, WhatFailsBehindALaunchIsNoRefusal) {
    driver_.capture(stream(9), 1);
    ASSERT_TRUE(order_.begin(stream(9)).is_ok());
    driver_.fail("record", Status::invalid_argument("no such event"));
    const Status ended = order_.end(stream(9));
    EXPECT_EQ(ended.code(), StatusCode::kInternal);
    EXPECT_EQ(ended.message(), "no such event");
}

const Deadline kNow = Deadline::after(Duration::zero());

TEST_F(LaunchOrderTest, DetectsTheEndOfAllWork) {
    EXPECT_TRUE(order_.await_all(kNow)) << "nothing was launched";
    driver_.fall_behind();
    EXPECT_TRUE(order_.await_all(kNow));
    launch(0);
    EXPECT_FALSE(order_.await_all(kNow));
    driver_.require_events([looks = 0]() mutable { return ++looks > 3; });
    EXPECT_TRUE(order_.await_all(Deadline::never()));
    EXPECT_EQ(driver_.destroyed(), driver_.recorded()) << "an event is left";
}

TEST_F(LaunchOrderTest, DetectsTheEndOfReplays) {
    begin_graph(0);
    launch(0);
    end_graph();
    driver_.fall_behind();
    EXPECT_FALSE(order_.await_all(kNow));
    driver_.catch_up();
    EXPECT_TRUE(order_.await_all(kNow));
}

TEST_F(LaunchOrderTest, IgnoresAStreamThatIsBeingCaptured) {
    launch(0);
    begin_graph(0);
    EXPECT_FALSE(order_.await_all(kNow));
    end_graph();
    EXPECT_TRUE(order_.await_all(kNow));
}

TEST_F(LaunchOrderTest, AGpuThatHasFailedRunsNothing) {
    launch(0);
    driver_.fall_behind();
    driver_.fail("has_come", Status::internal("an illegal address"));
    EXPECT_TRUE(order_.await_all(kNow));
}

TEST_F(LaunchOrderTest, EventsAreLeftToTheGraphs) {
    {
        LaunchOrder order(driver_);
        driver_.capture(stream(9), 1);
        ASSERT_TRUE(order.begin(stream(9)).is_ok());
        ASSERT_TRUE(order.end(stream(9)).is_ok());
    }
    EXPECT_EQ(driver_.destroyed(), 0U);
}

class RandomOrderTest : public LaunchOrderTest, public ::testing::WithParamInterface<unsigned> {};

/// Graphs are captured in streams of their own, as torch does it.
TEST_P(RandomOrderTest, EachLaunchFollowsAllBefore) {
    std::mt19937 random(GetParam());
    const auto any = [&](int first, int last) {
        return std::uniform_int_distribution(first, last)(random);
    };
    for (int round = 0; round < 6; ++round) {
        begin_graph(8);
        launch(8);
        fork_graph(8, 9);
        for (int step = any(0, 5); step > 0; --step) launch(any(0, 2) == 0 ? any(0, 3) : any(8, 9));
        end_graph();
        for (int step = any(1, 8); step > 0; --step) {
            if (any(0, 1) == 0) {
                launch(any(0, 3));
            } else {
                replay(static_cast<std::size_t>(any(0, round)), any(0, 3));
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomOrderTest, ::testing::Range(0U, 20U));

}  // namespace
}  // namespace pccl::device
