// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <set>

#include "csrc/transport/verbs/adapter.h"
#include "tests/cpp/transport/verbs_links.h"

namespace pccl::transport::verbs {
namespace {

class VerbsAdapterTest : public testing::Test {
   protected:
    std::uint32_t key_of_new(Access access) { return adapter_->add(memory_, access).value()->rkey; }

    std::unique_ptr<Waiter> waiter_ = Waiter::create().value();
    std::shared_ptr<Adapter> adapter_ = Adapter::open("mlx5_0", *waiter_).value();
    std::array<std::byte, 4096> memory_{};
};

TEST_F(VerbsAdapterTest, MemoryThatPeersReachHasAKeyOfItsOwn) {
    constexpr int kRegistrations = 20'000;  // the device has 256 keys for each place in its table
    const std::uint64_t before = fakes::fake_counters().registrations;
    std::set<std::uint32_t> keys;
    for (int i = 0; i < kRegistrations; ++i) {
        const Access access = i % 2 == 0 ? Access::kPeer : Access::kPeerWrite;
        ASSERT_TRUE(keys.insert(key_of_new(access)).second) << i;
    }
    const std::uint64_t used = fakes::fake_counters().registrations - before;
    EXPECT_LT(used, std::uint64_t{kRegistrations} * 11 / 10) << "keys that come again are kept";
}

TEST_F(VerbsAdapterTest, MemoryThatPeersDoNotReachNeedsNoKeyOfItsOwn) {
    std::set<std::uint32_t> keys;
    for (int i = 0; i < 1000; ++i) keys.insert(key_of_new(Access::kLocal));
    EXPECT_LT(keys.size(), 1000U);
    EXPECT_EQ(fakes::fake_counters().mrs, 0U);
}

}  // namespace
}  // namespace pccl::transport::verbs
