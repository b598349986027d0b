// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/rendezvous/store_server.h"

#include <gtest/gtest.h>

#include <thread>

#include "csrc/base/ids.h"
#include "csrc/bootstrap/rendezvous/tcp_store.h"
#include "tests/cpp/bootstrap/store_kinds.h"
#include "tests/fakes/deadlines.h"

namespace pccl::bootstrap {
namespace {

using fakes::test_deadline;

class StoreServerTest : public testing::Test {
   protected:
    void start(const StoreServer::StoreServerOptions& options) {
        const auto any = sys::Address::from_ip("127.0.0.1", 0).value();
        server_ = StoreServer::start({&any, 1}, options).value();
        address_ = server_->addresses().front();
        location_ = {"127.0.0.1", address_.port()};
    }

    std::unique_ptr<StoreServer> server_;
    sys::Address address_;
    StoreLocation location_;
};

TEST_F(StoreServerTest, HalfARequestIsWaitedForInBoundsOnly) {
    start({.request_timeout = std::chrono::milliseconds(100)});
    const auto rank = TcpStore::join(location_, test_deadline()).value();
    const auto stranger = enter(address_);
    send(stranger, frame_of(StoreRequest{StoreVerb::kSet, 1, "key", "value", 0}).substr(0, 10));
    expect_closed(stranger);
    // Who waits for an answer has nothing to finish.
    std::thread waiting([&] { EXPECT_EQ(rank->get("late", test_deadline()).value(), "value"); });
    system_clock().sleep_for(std::chrono::milliseconds(300));
    const auto other = TcpStore::join(location_, test_deadline()).value();
    EXPECT_TRUE(other->set("late", "value").is_ok());
    waiting.join();
}

TEST_F(StoreServerTest, WhoDoesNotTakeItsAnswersIsDropped) {
    start({.request_timeout = std::chrono::milliseconds(200)});
    const auto rank = TcpStore::join(location_, test_deadline()).value();
    ASSERT_TRUE(rank->set("key", std::string(kLongestValue, 'v')).is_ok());
    const auto stranger = enter(address_);
    constexpr std::size_t kRequests = 1000;  // for 64 MB of answers
    std::string requests;
    for (std::uint32_t id = 0; id < kRequests; ++id)
        requests += frame_of(StoreRequest{StoreVerb::kLookUp, id, "key", "", 0});
    send(stranger, requests);
    EXPECT_EQ(rank->add("counter", 1).value(), 1);
    system_clock().sleep_for(std::chrono::seconds(2));
    EXPECT_LT(expect_closed(stranger), kRequests * kLongestValue);
    EXPECT_EQ(rank->add("counter", 1).value(), 2);
}

TEST_F(StoreServerTest, BeyondItsLimitClientsWaitTheirTurn) {
    start({.most_clients = 2});
    auto first = TcpStore::join(location_, test_deadline()).value();
    auto second = TcpStore::join(location_, test_deadline()).value();
    ASSERT_TRUE(first->set("key", "value").is_ok());
    ASSERT_TRUE(second->set("key", "value").is_ok());
    EXPECT_EQ(
        TcpStore::join(location_, Deadline::after(std::chrono::milliseconds(200))).status().code(),
        StatusCode::kTimeout);
    std::thread third([&] {
        const auto store = TcpStore::join(location_, test_deadline());
        ASSERT_TRUE(store.is_ok()) << store.status().to_string();
        EXPECT_EQ(store.value()->get("key", test_deadline()).value(), "value");
    });
    first.reset();
    third.join();
}

TEST_F(StoreServerTest, AClientThatDiesWhileItWaitsIsForgotten) {
    start({});
    const auto rank = TcpStore::join(location_, test_deadline()).value();
    for (int i = 0; i < 10; ++i) {
        const auto stranger = enter(address_);
        send(stranger, frame_of(StoreRequest{StoreVerb::kGet, 1, "key", "", 0}));
        if (i % 2 == 0) send(stranger, "half");
    }
    EXPECT_TRUE(rank->set("key", "value").is_ok());
    EXPECT_EQ(rank->get("key", test_deadline()).value(), "value");
}

}  // namespace
}  // namespace pccl::bootstrap
