// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/rendezvous/bounded_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/deadlines.h"
#include "tests/fakes/memory_store.h"

namespace pccl::bootstrap {
namespace {

using fakes::test_deadline;
using namespace std::chrono_literals;

/// A store whose calls do not return while its server is stopped.
class StoppableStore final : public Store {
   public:
    Status set(const std::string& key, const std::string& value) override {
        wait();
        return store_.set(key, value);
    }
    Result<std::string> get(const std::string& key, Deadline deadline) override {
        wait();
        return store_.get(key, deadline);
    }
    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override {
        wait();
        return store_.add(key, delta);
    }
    Status remove(const std::string& key) override {
        wait();
        return store_.remove(key);
    }
    Status reopen(Deadline deadline) override {
        wait();
        return store_.reopen(deadline);
    }
    [[nodiscard]] std::string server() const override { return "10.0.0.7"; }

    void stop() { is_stopped_ = true; }
    void resume() {
        is_stopped_ = false;
        is_stopped_.notify_all();
    }

   private:
    void wait() { is_stopped_.wait(true); }

    fakes::MemoryStore store_;
    std::atomic<bool> is_stopped_{false};
};

class BoundedStoreTest : public testing::Test {
   protected:
    ~BoundedStoreTest() override { server_->resume(); }

    const std::shared_ptr<StoppableStore> server_ = std::make_shared<StoppableStore>();
    BoundedStore store_{server_, 50ms};
};

TEST_F(BoundedStoreTest, PassesCallsOn) {
    ASSERT_TRUE(store_.set("key", "value").is_ok());
    EXPECT_EQ(store_.get("key", test_deadline()).value(), "value");
    EXPECT_EQ(store_.add("count", 2).value(), 2);
    EXPECT_EQ(store_.add("count", 3).value(), 5);
    ASSERT_TRUE(store_.remove("key").is_ok());
    EXPECT_EQ(store_.get("key", Deadline::after(0ms)).status().code(), StatusCode::kTimeout);
    EXPECT_EQ(store_.reopen(test_deadline()).code(), StatusCode::kUnavailable);
}

TEST_F(BoundedStoreTest, EveryCallToAStoppedServerEnds) {
    const std::vector<std::function<Status()>> calls{
        [&] { return store_.set("key", "value"); },
        [&] { return store_.get("key", Deadline::after(10ms)).status(); },
        [&] { return store_.add("count", 1).status(); },
        [&] { return store_.remove("key"); },
        [&] { return store_.reopen(Deadline::after(10ms)); },
    };
    server_->stop();
    for (const auto& call : calls) {
        const Status status = call();
        EXPECT_EQ(status.code(), StatusCode::kUnavailable);
        EXPECT_NE(status.message().find("on 10.0.0.7 did not answer"), std::string::npos)
            << status.message();
    }
}

TEST_F(BoundedStoreTest, EachKindOfCallIsAbandoned) {
    const std::vector<std::function<Status(BoundedStore&)>> calls{
        [](BoundedStore& store) { return store.set("key", "value"); },
        [](BoundedStore& store) { return store.get("key", Deadline::after(10ms)).status(); },
        [](BoundedStore& store) { return store.add("count", 1).status(); },
        [](BoundedStore& store) { return store.remove("key"); },
        [](BoundedStore& store) { return store.reopen(Deadline::after(10ms)); },
    };
    for (const auto& call : calls) {
        server_->stop();
        BoundedStore fresh(server_, 10ms);
        EXPECT_EQ(call(fresh).code(), StatusCode::kUnavailable);
        server_->resume();
        EXPECT_TRUE(fresh.set("other", "value").is_ok()) << "it waits for the abandoned call";
    }
}

TEST_F(BoundedStoreTest, AnswersAgainWhereItsServerGoesOn) {
    server_->stop();
    EXPECT_EQ(store_.add("count", 1).status().code(), StatusCode::kUnavailable);
    server_->resume();
    BoundedStore patient(server_, 60s);
    EXPECT_TRUE(patient.set("key", "value").is_ok());
    EXPECT_EQ(store_.add("count", 1).value(), 2) << "the abandoned call counts";
}

TEST_F(BoundedStoreTest, AnExceptionOfAStoreIsItsError) {
    class ThrowingStore final : public Store {
       public:
        Status set(const std::string&, const std::string&) override { throw_it(); }
        Result<std::string> get(const std::string&, Deadline) override { throw_it(); }
        Result<std::int64_t> add(const std::string&, std::int64_t) override { throw_it(); }
        Status remove(const std::string&) override { throw_it(); }

       private:
        [[noreturn]] static void throw_it() { throw std::runtime_error("no such table"); }
    };
    BoundedStore store(std::make_shared<ThrowingStore>(), 60s);
    const Status status = store.set("key", "value");
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_EQ(status.message(), "the rendezvous store failed: no such table");
    EXPECT_EQ(store.get("key", test_deadline()).status().message(), status.message());
}

TEST_F(BoundedStoreTest, ALimitEndsCallsThatMayTakeLonger) {
    BoundedStore store(server_, 1h);
    server_->stop();
    store.limit(Deadline::after(20ms));
    EXPECT_EQ(store.set("key", "value").code(), StatusCode::kUnavailable);
    EXPECT_EQ(store.get("key", Deadline::never()).status().code(), StatusCode::kUnavailable);
}

TEST_F(BoundedStoreTest, ACancelledDeadlineEndsACall) {
    BoundedStore store(server_, 1h);
    std::atomic<bool> is_cancelled{false};
    server_->stop();
    store.limit(Deadline::never().unless(is_cancelled));
    const std::jthread interrupt([&] { is_cancelled = true; });
    EXPECT_EQ(store.set("key", "value").code(), StatusCode::kUnavailable);
}

TEST_F(BoundedStoreTest, AServerThatAnswersDoesSoAfterTheDeadlineToo) {
    store_.limit(Deadline::after(0ms));
    EXPECT_TRUE(store_.set("why", "rank 1 is missing").is_ok());
    EXPECT_EQ(store_.get("why", Deadline::after(0ms)).value(), "rank 1 is missing");
    EXPECT_EQ(store_.get("nothing", test_deadline()).status().code(), StatusCode::kTimeout)
        << "a missing key is no fault of the server";
}

}  // namespace
}  // namespace pccl::bootstrap
