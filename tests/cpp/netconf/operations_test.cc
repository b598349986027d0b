// SPDX-License-Identifier: Apache-2.0

// Against the examples of RFC 6241, sections 7 and 8, without their white space.
#include "csrc/netconf/operations.h"

#include <gtest/gtest.h>

namespace pccl::netconf {
namespace {

TEST(OperationsTest, ReadsASubtree) {
    EXPECT_EQ(get_config(Datastore::kRunning, "<top xmlns=\"urn:t\"/>"),
              "<get-config><source><running/></source><filter type=\"subtree\">"
              "<top xmlns=\"urn:t\"/></filter></get-config>");
    EXPECT_EQ(get("<top xmlns=\"urn:t\"/>"),
              "<get><filter type=\"subtree\"><top xmlns=\"urn:t\"/></filter></get>");
    EXPECT_EQ(get_config(Datastore::kCandidate, ""),
              "<get-config><source><candidate/></source></get-config>");
}

TEST(OperationsTest, EditsWithItsOptionsInTheOrderOfTheSchema) {
    EXPECT_EQ(edit_config("<top xmlns=\"urn:t\"/>"),
              "<edit-config><target><candidate/></target>"
              "<config xmlns:nc=\"urn:ietf:params:xml:ns:netconf:base:1.0\">"
              "<top xmlns=\"urn:t\"/></config></edit-config>");
    EXPECT_EQ(
        edit_config(
            "", {.target = Datastore::kRunning, .test_then_set = true, .rollback_on_error = true}),
        "<edit-config><target><running/></target><test-option>test-then-set</test-option>"
        "<error-option>rollback-on-error</error-option>"
        "<config xmlns:nc=\"urn:ietf:params:xml:ns:netconf:base:1.0\"></config>"
        "</edit-config>");
}

TEST(OperationsTest, LocksAndUnlocks) {
    EXPECT_EQ(lock(Datastore::kRunning), "<lock><target><running/></target></lock>");
    EXPECT_EQ(unlock(Datastore::kCandidate), "<unlock><target><candidate/></target></unlock>");
}

TEST(OperationsTest, CommitsForGoodOrForATime) {
    EXPECT_EQ(commit(), "<commit/>");
    EXPECT_EQ(commit("IQ,d4668"), "<commit><persist-id>IQ,d4668</persist-id></commit>");
    EXPECT_EQ(confirmed_commit({.timeout = std::chrono::seconds(120)}),
              "<commit><confirmed/><confirm-timeout>120</confirm-timeout></commit>");
    EXPECT_EQ(
        confirmed_commit({.timeout = std::chrono::seconds(600), .persist = "IQ,d4668"}),
        "<commit><confirmed/><confirm-timeout>600</confirm-timeout><persist>IQ,d4668</persist>"
        "</commit>");
    EXPECT_EQ(cancel_commit(), "<cancel-commit/>");
    EXPECT_EQ(cancel_commit("a<b"),
              "<cancel-commit><persist-id>a&lt;b</persist-id></cancel-commit>");
}

TEST(OperationsTest, CopiesAWholeDatastore) {
    EXPECT_EQ(copy_config(Datastore::kRunning, Datastore::kStartup),
              "<copy-config><target><startup/></target><source><running/></source></copy-config>");
}

TEST(OperationsTest, DiscardsChanges) { EXPECT_EQ(discard_changes(), "<discard-changes/>"); }

}  // namespace
}  // namespace pccl::netconf
