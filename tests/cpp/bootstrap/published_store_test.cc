// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/published_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "csrc/sys/socket/socket.h"
#include "tests/fakes/deadlines.h"

namespace pccl::bootstrap {
namespace {

using fakes::test_deadline;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kJobsSecret(32, 's');

TEST(PublishedStoreTest, RanksMeetAtEachOfItsAddresses) {
    const auto served = PublishedStore::serve(kJobsSecret).value();
    ASSERT_THAT(served->addresses(), Not(IsEmpty()));
    int number = 0;
    for (const std::string& address : served->addresses()) {
        const std::vector one{address};
        const auto store = join_published_store(one, kJobsSecret, test_deadline()).value();
        EXPECT_EQ(store->add("ranks", 1).value(), ++number);
        EXPECT_THAT(address, HasSubstr(store->server()));
    }
}

TEST(PublishedStoreTest, TwoJobsOfAHostHaveDifferentPorts) {
    const auto first = PublishedStore::serve(kJobsSecret).value();
    const auto second = PublishedStore::serve(kJobsSecret).value();
    const auto ours = first->addresses();
    for (const std::string& address : second->addresses())
        EXPECT_EQ(std::ranges::count(ours, address), 0) << address;
}

TEST(PublishedStoreTest, AnAddressWithoutAServerIsPassedOver) {
    std::string closed;
    {
        const auto listener = sys::listen_on(sys::Address::from_ip("127.0.0.1", 0).value()).value();
        closed = sys::local_address(listener.get()).value().to_string();
    }
    const auto served = PublishedStore::serve(kJobsSecret).value();
    const std::vector both{closed, served->addresses().front()};
    const auto store = join_published_store(both, kJobsSecret, test_deadline()).value();
    EXPECT_TRUE(store->set("key", "value").is_ok());
}

TEST(PublishedStoreTest, AnotherSecretIsRefused) {
    const auto served = PublishedStore::serve(kJobsSecret).value();
    const auto store =
        join_published_store(served->addresses(), std::string(32, 'x'), test_deadline());
    EXPECT_EQ(store.status().code(), StatusCode::kInvalidArgument);
}

TEST(PublishedStoreTest, ASecretHas32Bytes) {
    EXPECT_THAT(PublishedStore::serve("short").status().message(),
                HasSubstr("5 bytes instead of 32"));
    const std::vector<std::string> addresses{"127.0.0.1:1"};
    EXPECT_THAT(join_published_store(addresses, "", test_deadline()).status().message(),
                HasSubstr("0 bytes instead of 32"));
}

TEST(PublishedStoreTest, AddressesAreChecked) {
    for (const std::vector<std::string>& addresses :
         {std::vector<std::string>{}, {"nonsense"}, {"127.0.0.1:1", "[::"}}) {
        const auto store = join_published_store(addresses, kJobsSecret, test_deadline());
        EXPECT_EQ(store.status().code(), StatusCode::kInvalidArgument);
    }
}

}  // namespace
}  // namespace pccl::bootstrap
