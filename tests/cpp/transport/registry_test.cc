// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/registry.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/fakes/deadlines.h"

namespace pccl::transport {
namespace {

class RegistryTest : public testing::Test {
   protected:
    [[nodiscard]] RmaRange all() const {
        const auto& descriptor = registration_->descriptor();
        return {.registration = {descriptor.id, descriptor.nonce},
                .blocks = RmaExtent{.bytes = memory_.size()}};
    }

    std::vector<std::byte> memory_ = std::vector<std::byte>(64);
    std::shared_ptr<RmaRegistry> registry_ = RmaRegistry::create();
    std::unique_ptr<Registration> registration_ =
        registry_->add({.data = memory_.data(), .bytes = memory_.size()}, {.id = 5, .nonce = 7})
            .value();
};

TEST_F(RegistryTest, SeveralThreadsUseMemoryAtTheSameTime) {
    std::atomic<int> inside{0};
    const auto meet = [&](MutableBytes) {
        ++inside;
        for (const Deadline deadline = fakes::test_deadline(); inside < 2 && !deadline.passed();)
            std::this_thread::yield();
    };
    std::thread other([&] { EXPECT_TRUE(registry_->use(all(), meet).is_ok()); });
    EXPECT_TRUE(registry_->use(all(), meet).is_ok());
    other.join();
    EXPECT_EQ(inside, 2);
}

TEST_F(RegistryTest, AnEndWaitsForUsesAndLetsNoneBegin) {
    const RmaRange range = all();
    std::atomic<bool> has_ended{false};
    std::thread owner;
    const Status used = registry_->use(range, [&](MutableBytes memory) {
        owner = std::thread([&] {
            registration_.reset();
            has_ended = true;
        });
        // The end has begun once nobody else may use the memory.
        const Deadline deadline = fakes::test_deadline();
        while (registry_->find_device(range).is_ok() && !deadline.passed())
            std::this_thread::yield();
        EXPECT_EQ(registry_->use(range, [](MutableBytes) {}).code(), StatusCode::kUnavailable);
        EXPECT_FALSE(has_ended);
        memory.front() = std::byte{1};
    });
    owner.join();
    EXPECT_TRUE(used.is_ok()) << "the use had begun before";
    EXPECT_EQ(registry_->use(range, [](MutableBytes) {}).code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace pccl::transport
