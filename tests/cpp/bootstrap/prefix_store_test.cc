// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/rendezvous/prefix_store.h"

#include <gtest/gtest.h>

#include "tests/cpp/bootstrap/store_kinds.h"
#include "tests/fakes/deadlines.h"

namespace pccl::bootstrap {
namespace {

using fakes::test_deadline;

TEST_P(StoreTest, PrefixesKeepGroupsApart) {
    const auto left = prefixed(stores_[0], "left");
    const auto right = prefixed(stores_[1], "right");
    ASSERT_TRUE(left->set("key", "l").is_ok());
    ASSERT_TRUE(right->set("key", "r").is_ok());
    EXPECT_EQ(left->get("key", test_deadline()).value(), "l");
    EXPECT_EQ(right->get("key", test_deadline()).value(), "r");
    EXPECT_EQ(stores_[2]->get("left/key", test_deadline()).value(), "l");
    EXPECT_EQ(left->add("count", 1).value(), 1);
    EXPECT_EQ(right->add("count", 1).value(), 1);
    ASSERT_TRUE(left->remove("key").is_ok());
    EXPECT_EQ(right->get("key", test_deadline()).value(), "r");
}

}  // namespace
}  // namespace pccl::bootstrap
