// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/rendezvous/tcp_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include <pccl/store.h>
#include "csrc/bootstrap/rendezvous/prefix_store.h"
#include "csrc/sys/socket/socket.h"
#include "tests/cpp/bootstrap/store_kinds.h"
#include "tests/fakes/deadlines.h"

namespace pccl::bootstrap {
namespace {

using fakes::already;
using fakes::test_deadline;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(TcpStoreTest, JoiningNobodyNamesTheAddressAndRankZero) {
    // A port that is surely free: it was bound a moment ago.
    std::uint16_t port = 0;
    {
        const auto listener = sys::listen_on(sys::Address::from_ip("127.0.0.1", 0).value()).value();
        port = sys::local_address(listener.get()).value().port();
    }
    const Status status = TcpStore::join({"127.0.0.1", port}, shortly()).status();
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    EXPECT_EQ(status.peer(), 0);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("tcp://127.0.0.1:" + std::to_string(port)),
                                        HasSubstr("is rank 0 running")));
}

TEST(TcpStoreTest, ATakenPortIsNamed) {
    const auto first = TcpStore::host({"127.0.0.1", 0}, test_deadline()).value();
    const Status status = TcpStore::host(first->location(), test_deadline()).status();
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr(first->location().to_string()), HasSubstr("free")));
}

Result<std::shared_ptr<TcpStore>> host_any(const StoreLocation& location, Deadline deadline) {
    return TcpStore::host(location, deadline, kNoStoreSecret, StoreContent::kAny);
}

TEST(TcpStoreTest, OneThatMayHoldAnythingIsSharedByThisProcess) {
    StoreLocation free{"127.0.0.1", 0};
    free.port = TcpStore::host(free, test_deadline()).value()->location().port;
    auto first = host_any(free, test_deadline()).value();
    ASSERT_TRUE(first->set("key", "value").is_ok());
    const auto second = host_any(free, test_deadline()).value();
    first.reset();
    EXPECT_EQ(second->get("key", already()).value(), "value");
}

TEST(TcpStoreTest, OneThatMayHoldAnythingWaitsForAPortThatBecomesFree) {
    auto before = TcpStore::host({"127.0.0.1", 0}, test_deadline()).value();
    const StoreLocation location = before->location();
    EXPECT_THAT(host_any(location, shortly()).status().message(), HasSubstr("must be free"));
    std::thread ending([&] {
        system_clock().sleep_for(std::chrono::milliseconds(30));
        before.reset();
    });
    const auto after = host_any(location, test_deadline());
    ending.join();
    EXPECT_TRUE(after.is_ok()) << after.status().to_string();
}

TEST(TcpStoreTest, WhoseServerHasGoneJoinsTheNext) {
    auto before = TcpStore::host({"127.0.0.1", 0}, test_deadline()).value();
    const StoreLocation location = before->location();
    const auto rank_1 = TcpStore::join(location, test_deadline()).value();
    ASSERT_TRUE(rank_1->set("key", "before").is_ok());
    before.reset();
    EXPECT_EQ(rank_1->get("key", test_deadline()).status().code(), StatusCode::kUnavailable);
    EXPECT_FALSE(rank_1->reopen(shortly()).is_ok());
    EXPECT_EQ(rank_1->get("key", test_deadline()).status().code(), StatusCode::kUnavailable);
    const auto after = host_any(location, test_deadline()).value();
    ASSERT_TRUE(after->set("key", "after").is_ok());
    ASSERT_TRUE(prefixed(rank_1, "part")->reopen(test_deadline()).is_ok());
    EXPECT_EQ(rank_1->get("key", test_deadline()).value(), "after");
}

TEST(TcpStoreTest, JoiningBeforeRankZeroHostsWaitsForIt) {
    auto probe = TcpStore::host({"127.0.0.1", 0}, test_deadline()).value();
    const StoreLocation location = probe->location();
    probe.reset();
    std::thread late([&] {
        system_clock().sleep_for(std::chrono::milliseconds(30));
        const auto store = TcpStore::host(location, test_deadline()).value();
        EXPECT_EQ(store->get("done", test_deadline()).value(), "1");
    });
    auto store = TcpStore::join(location, test_deadline());
    ASSERT_TRUE(store.is_ok()) << store.status().to_string();
    ASSERT_TRUE(store.value()->set("done", "1").is_ok());
    late.join();
}

TEST(TcpStoreTest, WhenRankZeroLeavesTheOthersAreNotified) {
    auto first = TcpStore::host({"127.0.0.1", 0}, test_deadline()).value();
    auto second = TcpStore::join(first->location(), test_deadline()).value();
    first.reset();
    const Status status = second->get("key", test_deadline()).status();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), HasSubstr("did rank 0 leave"));
    EXPECT_EQ(second->set("key", "value").code(), StatusCode::kUnavailable);
}

TEST(TcpStoreTest, AServiceOfAnotherKindIsRecognised) {
    const auto listener = sys::listen_on(sys::Address::from_ip("127.0.0.1", 0).value()).value();
    const auto address = sys::local_address(listener.get()).value();
    std::thread other_service([&] {
        const sys::Interest interest{.fd = listener.get(), .input = true};
        ASSERT_TRUE(sys::wait_for_any({&interest, 1}, std::chrono::seconds(30)));
        const auto socket = sys::accept_next(listener.get()).value().value();
        ASSERT_TRUE(sys::send_all(socket.get(),
                                  std::as_bytes(std::span("SSH-2.0-OpenSSH_9.2 Debian", 26)),
                                  test_deadline())
                        .is_ok());
        std::byte greeting[14];
        ASSERT_TRUE(sys::receive_all(socket.get(), greeting, test_deadline()).is_ok());
    });
    const Status status = TcpStore::join({"127.0.0.1", address.port()}, test_deadline()).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("no pccl store"));
    other_service.join();
}

TEST(TcpStoreTest, MalformedBytesFromStrangersDoNotDisturbTheStore) {
    const auto store = TcpStore::host({"127.0.0.1", 0}, test_deadline()).value();
    const auto address = sys::Address::from_ip("127.0.0.1", store->location().port).value();
    for (const std::string& malformed :
         {std::string("GET / HTTP/1.1\r\n\r\n") + std::string(200, ' '),
          std::string(200'000, '\0')}) {
        const auto socket = sys::connect_to(address, test_deadline()).value();
        send(socket, malformed);
        expect_closed(socket);
        EXPECT_TRUE(store->set("key", "still here").is_ok());
    }
    for (const std::string& malformed :
         {std::string("\xFF\xFF\xFF\xFF", 4), std::string("\x03\0\0\0\x09zz", 7),
          std::string(200'000, '\0')}) {
        const auto socket = enter(address);
        send(socket, malformed);
        expect_closed(socket);
        EXPECT_TRUE(store->set("key", "still here").is_ok());
    }
    EXPECT_EQ(store->get("key", test_deadline()).value(), "still here");
}

TEST(TcpStoreTest, SilentStrangersKeepNobodyOut) {
    const auto store = TcpStore::host({"127.0.0.1", 0}, test_deadline()).value();
    const auto address = sys::Address::from_ip("127.0.0.1", store->location().port).value();
    std::vector<UniqueFd> strangers;
    for (int i = 0; i < 300; ++i)
        strangers.push_back(sys::connect_to(address, test_deadline()).value());
    const auto rank = TcpStore::join(store->location(), test_deadline()).value();
    ASSERT_TRUE(rank->set("key", "value").is_ok());
    EXPECT_EQ(store->get("key", test_deadline()).value(), "value");
    expect_closed(strangers.front());
}

TEST(TcpStoreTest, NobodyWithoutTheSecretComesIn) {
    const transport::Secret secret{1, 2, 3};
    const auto store = TcpStore::host({"127.0.0.1", 0}, test_deadline(), secret).value();
    ASSERT_TRUE(store->set("key", "value").is_ok());
    for (const transport::Secret& other : {kNoStoreSecret, transport::Secret{4}}) {
        const Status status = TcpStore::join(store->location(), test_deadline(), other).status();
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
        EXPECT_THAT(status.message(),
                    AllOf(HasSubstr(store->location().to_string()),
                          HasSubstr("does not prove the secret"), HasSubstr("PCCL_SECRET_FILE")));
    }
    const auto rank = TcpStore::join(store->location(), test_deadline(), secret).value();
    EXPECT_EQ(rank->get("key", test_deadline()).value(), "value");
}

TEST(TcpStoreTest, ARankWithASecretEntersNoStoreWithoutIt) {
    const auto store = TcpStore::host({"127.0.0.1", 0}, test_deadline()).value();
    const Status status = TcpStore::join(store->location(), test_deadline(), {1, 2, 3}).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("PCCL_SECRET_FILE"));
}

TEST(TcpStoreTest, ANameIsListenedAtWhereItLeadsAndNowhereElse) {
    std::array<char, 256> name{};
    ASSERT_EQ(::gethostname(name.data(), name.size() - 1), 0);
    const auto addresses = sys::resolve(name.data(), 0);
    if (!addresses.is_ok()) GTEST_SKIP() << addresses.status().message();
    const auto store = TcpStore::host({name.data(), 0}, test_deadline());
    ASSERT_TRUE(store.is_ok()) << store.status().to_string();
    const std::uint16_t port = store.value()->location().port;
    EXPECT_TRUE(TcpStore::join(store.value()->location(), test_deadline()).is_ok());
    // Which whoever listens at all interfaces hears.
    const auto elsewhere = sys::Address::from_ip("127.77.77.77", port).value();
    EXPECT_EQ(sys::connect_to(elsewhere, test_deadline()).status().code(),
              StatusCode::kUnavailable);
}

TEST(TcpStoreTest, AnAddressOfAnotherMachineIsRefused) {
    const Status status = TcpStore::host({"192.0.2.1", 0}, test_deadline()).status();
    EXPECT_THAT(status.message(), AllOf(HasSubstr("192.0.2.1"), HasSubstr("run on that host")));
}

}  // namespace
}  // namespace pccl::bootstrap
