// SPDX-License-Identifier: Apache-2.0

// The failure table: whatever goes wrong, on whichever switch, all end in one phase, or it is said
// which does not.
#include "csrc/cluster/transaction.h"

#include <gmock/gmock.h>

#include "csrc/base/text/text.h"
#include "tests/cpp/cluster/fake_switch.h"
#include "tests/cpp/cluster/transactions.h"

namespace pccl::cluster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(TransactionTest, SwitchesAllAndConfirms) {
    build();
    const Report report = run();
    EXPECT_EQ(report.ending, Ending::kSwitched) << report.reason.to_string();
    let_timers_run();
    expect_all(kNew);
    EXPECT_THAT(odd().operations(),
                ElementsAre("lock", "discard-changes", "get-config", "edit-config", "commit",
                            "get-config", "get", "confirm", "discard-changes", "unlock"));
    EXPECT_GE(report.dark, std::chrono::milliseconds(25));
}

TEST_F(TransactionTest, TakesACommitBackWhereNoLightComesIn) {
    build();
    odd().dark = {2, 9};
    const Report report = run();
    EXPECT_EQ(report.ending, Ending::kRolledBack);
    EXPECT_EQ(report.reason.message(),
              "switch s2: no light comes in at port 2, which is to go out at 1");
    let_timers_run();
    expect_all(kOld);
    odd().dark = {9};  // of no circuit
    EXPECT_EQ(run().ending, Ending::kSwitched);
}

TEST_F(TransactionTest, SwitchesEveryClassOfSwitch) {
    for (const bool has_chunks : {false, true})
        for (const auto& [candidate, confirmed] :
             {std::pair{true, true}, std::pair{true, false}, std::pair{false, false}}) {
            start_over();
            build({.has_chunks = has_chunks,
                   .has_candidate = candidate,
                   .has_confirmed_commit = confirmed,
                   .dialect = "polatis"});
            EXPECT_EQ(run().ending, Ending::kSwitched);
            let_timers_run();
            expect_all(kNew);
        }
}

TEST_F(TransactionTest, CommitsLastWhatCannotBeTakenBack) {
    build({.has_candidate = false, .has_confirmed_commit = false});
    options_.drain = [&] {
        for (FakeSwitch& each : fakes_) EXPECT_EQ(each.running(), kOld);
        EXPECT_THAT(odd().operations(), ElementsAre("lock", "get-config"));
        return Status::ok();
    };
    fakes_[2].traits.reject = "commit";
    EXPECT_EQ(run().ending, Ending::kRolledBack);
    EXPECT_THAT(odd().operations(), Not(Contains("edit-config")));
    expect_all(kOld);
}

TEST_F(TransactionTest, BreaksBeforeItMakesWhereACandidateIsMissing) {
    build({.has_candidate = false, .has_confirmed_commit = false});
    EXPECT_EQ(run().ending, Ending::kSwitched);
    EXPECT_THAT(odd().operations(), ElementsAre("lock", "get-config", "edit-config", "edit-config",
                                                "get-config", "get", "unlock"));
}

TEST_F(TransactionTest, ChangesNothingInADryRun) {
    build();
    options_.dry_run = true;
    EXPECT_EQ(run().ending, Ending::kPrepared);
    expect_all(kOld);
    EXPECT_THAT(odd().operations(), Not(Contains("commit")));
}

TEST_F(TransactionTest, DrainsBetweenPrepareAndCommitAndHeedsIt) {
    build();
    options_.drain = [&] {
        for (FakeSwitch& each : fakes_)
            EXPECT_THAT(each.operations(), AllOf(Contains("edit-config"), Not(Contains("commit"))));
        return Status::timeout("rank 3 does not drain", 3);
    };
    const Report report = run();
    EXPECT_EQ(report.ending, Ending::kRefused);
    EXPECT_EQ(report.reason.peer(), 3);
    expect_all(kOld);
}

/// What a fault before any commit ends in: nothing was touched, and the switch is named.
class BeforeCommitTest : public TransactionTest,
                         public ::testing::WithParamInterface<FakeTraits> {};

TEST_P(BeforeCommitTest, TouchesNothing) {
    build(GetParam());
    const Report report = run();
    EXPECT_EQ(report.ending, Ending::kRefused);
    EXPECT_THAT(report.reason.message(), HasSubstr("switch s2: "));
    expect_all(kOld);
    for (FakeSwitch& each : fakes_) EXPECT_THAT(each.operations(), Not(Contains("commit")));
}

INSTANTIATE_TEST_SUITE_P(Faults, BeforeCommitTest,
                         ::testing::Values(FakeTraits{.reject = "edit-config"},
                                           FakeTraits{.reject = "lock"},
                                           FakeTraits{.reject = "get-config"},
                                           FakeTraits{.hang = "edit-config"},
                                           FakeTraits{.drop = "edit-config"},
                                           FakeTraits{.hang = "lock"}, FakeTraits{.drop = "lock"}));

/// A fault from commit on: all are as they were, and that is proven.
class AfterCommitTest : public TransactionTest, public ::testing::WithParamInterface<FakeTraits> {};

TEST_P(AfterCommitTest, RollsAllBack) {
    build(GetParam());
    const Report report = run();
    EXPECT_EQ(report.ending, Ending::kRolledBack) << report.reason.to_string();
    EXPECT_THAT(report.reason.message(), HasSubstr("switch s2: "));
    for (const MemberReport& each : report.members) EXPECT_EQ(each.found, kOld);
    let_timers_run();
    expect_all(kOld);
}

INSTANTIATE_TEST_SUITE_P(
    Faults, AfterCommitTest,
    ::testing::Values(FakeTraits{.reject = "commit"}, FakeTraits{.hang = "commit", .faults = 1},
                      FakeTraits{.drop = "commit"}, FakeTraits{.drop_late = "commit"},
                      FakeTraits{.lie = "commit"},
                      // It commits, says so, and keeps what it should take back.
                      FakeTraits{.drop_late = "commit", .forgets_timer = true},
                      FakeTraits{.has_confirmed_commit = false, .reject = "commit", .faults = 1},
                      FakeTraits{.has_confirmed_commit = false, .drop_late = "commit", .faults = 1},
                      FakeTraits{.has_candidate = false,
                                 .has_confirmed_commit = false,
                                 .reject = "edit-config",
                                 .faults = 1},
                      FakeTraits{.has_candidate = false,
                                 .has_confirmed_commit = false,
                                 .drop_late = "edit-config",
                                 .faults = 1},
                      FakeTraits{.has_candidate = false,
                                 .has_confirmed_commit = false,
                                 .lie = "edit-config",
                                 .faults = 2}));

TEST_F(TransactionTest, RollsBackItselfWhereASwitchOnlyReportsIt) {
    build({.lie = "cancel-commit"});
    fakes_[0].traits.reject = "commit";
    EXPECT_EQ(run().ending, Ending::kRolledBack);
    let_timers_run();
    expect_all(kOld);
}

TEST_F(TransactionTest, RollsForwardWhereOthersHaveConfirmed) {
    for (const FakeTraits& traits :
         {FakeTraits{.reject = "confirm", .faults = 1}, FakeTraits{.drop = "confirm", .faults = 1},
          FakeTraits{.drop_late = "confirm", .faults = 1},
          FakeTraits{.hang = "confirm", .faults = 1}}) {
        start_over();
        build(traits);
        const Report report = run();
        EXPECT_EQ(report.ending, Ending::kSwitched) << report.reason.to_string();
        let_timers_run();
        expect_all(kNew);
    }
}

TEST_F(TransactionTest, RollsBackWhereNobodyHasConfirmed) {
    build({.reject = "confirm"}, {.reject = "confirm"});
    EXPECT_EQ(run().ending, Ending::kRolledBack);
    let_timers_run();
    expect_all(kOld);
}

TEST_F(TransactionTest, NamesASwitchThatNeverComesBack) {
    build();
    options_.interrupted = [&] {
        odd().is_gone = odd().running() == kNew;
        return Status::ok();
    };
    const Report report = run();
    EXPECT_EQ(report.ending, Ending::kDegraded);
    EXPECT_THAT(report.reason.message(), AllOf(HasSubstr("switch s2: fake: nobody listens there"),
                                               Not(HasSubstr("s1: ")), Not(HasSubstr("s3: "))));
    EXPECT_EQ(fakes_[0].running(), kOld);
    EXPECT_EQ(fakes_[2].running(), kOld);
}

TEST_F(TransactionTest, DoesNotOverwriteWhatSomebodyElseMadeMeanwhile) {
    build();
    const Circuits theirs = {{9, 9}};
    options_.interrupted = [&]() -> Status {
        if (fakes_[0].running() != kNew) return Status::ok();
        odd().set_running(theirs);
        odd().traits.lie = "cancel-commit";
        return Status::aborted("ctrl-c");
    };
    const Report report = run();
    EXPECT_EQ(report.ending, Ending::kDegraded);
    EXPECT_THAT(report.reason.message(), HasSubstr("switch s2: it shows 9->9 where"));
    EXPECT_EQ(odd().running(), theirs);
}

TEST_F(TransactionTest, RefusesToOverwriteUnknownCircuits) {
    build();
    odd().set_running({{1, 2}, {2, 3}, {4, 1}});
    const Report report = run();
    EXPECT_EQ(report.ending, Ending::kRefused);
    EXPECT_EQ(report.reason.code(), StatusCode::kMismatch);
    EXPECT_EQ(report.reason.message(),
              "switch s2: somebody else has changed it: it lacks 3->1, 7->8 and has 4->1 besides");
    EXPECT_EQ(odd().running(), (Circuits{{1, 2}, {2, 3}, {4, 1}}));
}

TEST_F(TransactionTest, NamesWhoHoldsALock) {
    build();
    odd().lock_for(7);
    const Report report = run();
    EXPECT_EQ(report.ending, Ending::kRefused);
    EXPECT_EQ(report.reason.message(), "switch s2: lock-denied (held by session 7)");
    EXPECT_FALSE(fakes_[0].is_locked());
}

TEST_F(TransactionTest, RollsBackWhenInterrupted) {
    build();
    options_.interrupted = [&] {
        return odd().running() == kNew ? Status::aborted("ctrl-c") : Status::ok();
    };
    const Report report = run();
    EXPECT_EQ(report.ending, Ending::kRolledBack);
    EXPECT_EQ(report.reason.code(), StatusCode::kAborted);
    let_timers_run();
    expect_all(kOld);
}

TEST_F(TransactionTest, CanBeInterruptedWhileLightSettles) {
    build();
    members_[2].settle = std::chrono::seconds(9);
    const TimePoint begun = clock_.now();
    options_.interrupted = [&] {
        const bool is_settling = clock_.now() > begun + std::chrono::seconds(1);
        return is_settling ? Status::aborted("ctrl-c") : Status::ok();
    };
    EXPECT_EQ(run().ending, Ending::kRolledBack);
    EXPECT_LT(clock_.now() - begun, std::chrono::seconds(2));
    expect_all(kOld);
}

TEST_F(TransactionTest, ConnectsAnewWhereASessionEndedInBetween) {
    build({.drop = "get-config", .faults = 0});
    EXPECT_EQ(run().ending, Ending::kSwitched);
    odd().traits = {.drop = "lock", .faults = 1};
    for (SwitchMember& each : members_) std::swap(each.from, each.to);
    EXPECT_EQ(run().ending, Ending::kSwitched);
    expect_all(kOld);
}

TEST_F(TransactionTest, ShowsItsRequestsAndTheirDurations) {
    build({.reject = "edit-config"});
    const Report report = run();
    std::vector<std::string> requested;
    for (const Exchange& each : report.members[1].exchanges)
        requested.push_back(concat(each.operation, " ", each.message_id, " ", each.outcome));
    EXPECT_THAT(requested, ElementsAre("lock 1 ok", "discard-changes 2 ok", "get-config 3 ok",
                                       "edit-config 4 operation-failed", "discard-changes 5 ok",
                                       "unlock 6 ok"));
}

}  // namespace
}  // namespace pccl::cluster
