// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/socket/name_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>

namespace pccl::sys {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

/// A name service that is silent until it is released.
class SilentService {
   public:
    NameLookup::Resolver resolver() {
        return [released = released_.get_future().share()](const std::string&, std::uint16_t port) {
            released.wait();
            return Result<Addresses>(Addresses{Address::from_ip("192.0.2.7", port).value()});
        };
    }
    void release() { released_.set_value(); }

   private:
    std::promise<void> released_;
};

TEST(NameLookupTest, AddressesNeedNoNameService) {
    const NameLookup lookup("127.0.0.1", 99, [](const std::string&, std::uint16_t) {
        return Result<Addresses>(Status::internal("asked"));
    });
    const auto found = lookup.poll();
    ASSERT_TRUE(found.has_value());
    ASSERT_TRUE(found->is_ok()) << found->status().to_string();
    EXPECT_EQ(found->value().front().to_string(), "127.0.0.1:99");
}

TEST(NameLookupTest, DeadlineEndsTheWaitForASilentService) {
    SilentService service;
    const NameLookup lookup("switch7", 830, service.resolver());
    EXPECT_FALSE(lookup.poll().has_value());
    const Status late = lookup.wait(Deadline::after(milliseconds(20))).status();
    EXPECT_EQ(late.code(), StatusCode::kTimeout);
    EXPECT_THAT(
        late.message(),
        HasSubstr("the name service has not returned the address of \"switch7\" within 0.0"));
    service.release();
    const auto found = lookup.wait(Deadline::never());
    ASSERT_TRUE(found.is_ok()) << found.status().to_string();
    EXPECT_EQ(found->front().to_string(), "192.0.2.7:830");
    EXPECT_TRUE(lookup.poll().has_value());
}

TEST(NameLookupTest, LookupMayBeGivenUpBeforeItsEnd) {
    SilentService service;
    { const NameLookup given_up("switch7", 830, service.resolver()); }
    service.release();
}

TEST(NameLookupTest, NamesWithoutAnAddressAreUnavailable) {
    const auto none = [](const std::string&, std::uint16_t) {
        return Result<Addresses>(Addresses{});
    };
    const Status status = NameLookup("switch7", 1, none).wait(Deadline::never()).status();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_EQ(status.message(), "\"switch7\" has no address");
    EXPECT_EQ(resolve("no such host !", 1, Deadline::never()).status().code(),
              StatusCode::kUnavailable);
}

}  // namespace
}  // namespace pccl::sys
