// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/rma_contract.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "csrc/base/ids.h"
#include "csrc/transport/memory_descriptor.h"

namespace pccl::transport::contract {
namespace {

void fill(const Registered& memory, unsigned stream) {
    std::ranges::copy(pattern(memory.bytes().size(), stream), memory.bytes().begin());
}

TEST_P(RmaContract, WhatIsWrittenIsReadBack) {
    for (const std::size_t bytes : {1UL, 7UL, 4096UL, 100'001UL, 9 * kMiB + 3}) {
        const Registered mine = initiator().memory(bytes);
        const Registered back = initiator().memory(bytes);
        const Registered theirs = target().memory(bytes);
        fill(mine, 1);
        EXPECT_EQ(write(mine, theirs.descriptor(), bytes).to_string(), "ok");
        EXPECT_TRUE(std::ranges::equal(theirs.bytes(), mine.bytes())) << bytes;
        EXPECT_EQ(read(back, theirs.descriptor(), bytes).to_string(), "ok");
        EXPECT_TRUE(std::ranges::equal(back.bytes(), mine.bytes())) << bytes;
    }
}

/// Against copies that the test makes itself: any place, any length, none among them.
TEST_P(RmaContract, PiecesLandWhereTheyBelong) {
    constexpr std::size_t kBytes = 70'000;
    const Registered mine = initiator().memory(kBytes);
    const Registered theirs = target().memory(kBytes);
    fill(mine, 1);
    fill(theirs, 2);
    std::vector<std::byte> here(mine.bytes().begin(), mine.bytes().end());
    std::vector<std::byte> there(theirs.bytes().begin(), theirs.bytes().end());
    std::mt19937 random(7);
    for (int round = 0; round < 20; ++round) {
        const RmaOp op = round % 2 == 0 ? RmaOp::kWrite : RmaOp::kRead;
        std::vector<RmaPiece> pieces;
        for (std::size_t i = 0; i < 40; ++i) {
            // Apart from each other at either side, as pieces of one post go in any order.
            const std::size_t from = i * (kBytes / 40);
            const std::size_t to = (39 - i) * (kBytes / 40);
            const std::size_t bytes = random() % (kBytes / 40);
            pieces.push_back({.local = mine.registration(),
                              .at = from,
                              .remote = &theirs.descriptor(),
                              .there = to,
                              .bytes = bytes});
            if (op == RmaOp::kWrite)
                std::memcpy(there.data() + to, here.data() + from, bytes);
            else
                std::memcpy(here.data() + from, there.data() + to, bytes);
        }
        ASSERT_EQ(complete(op, pieces).to_string(), "ok");
        ASSERT_TRUE(std::ranges::equal(mine.bytes(), here)) << round;
        ASSERT_TRUE(std::ranges::equal(theirs.bytes(), there)) << round;
    }
}

TEST_P(RmaContract, ALongListIsTakenInPrefixesWithACompletionEach) {
    constexpr std::size_t kPieces = 20'000;
    constexpr std::size_t kBlock = 16;
    const Registered mine = initiator().memory(kPieces * kBlock);
    const Registered theirs = target().memory(kPieces * kBlock);
    fill(theirs, 3);
    std::vector<RmaPiece> pieces;
    for (std::size_t i = 0; i < kPieces; ++i)
        // Turned around, so that no two are neighbours on both sides.
        pieces.push_back({.local = mine.registration(),
                          .at = i * kBlock,
                          .remote = &theirs.descriptor(),
                          .there = (kPieces - 1 - i) * kBlock,
                          .bytes = kBlock});
    std::span<const RmaPiece> rest(pieces);
    std::vector<std::uint64_t> completed;
    std::uint64_t posts = 0;
    pump([&] {
        const auto taken = initiator().link->post(RmaOp::kRead, rest, 100 + posts);
        EXPECT_TRUE(taken.is_ok()) << taken.status().to_string();
        if (!taken.is_ok()) return true;
        posts += *taken > 0 ? 1 : 0;
        rest = rest.subspan(*taken);
        std::vector<RmaCompletion> completions(3);
        const auto count = initiator().link->poll(completions);
        EXPECT_TRUE(count.is_ok()) << count.status().to_string();
        for (std::size_t i = 0; count.is_ok() && i < *count; ++i) {
            EXPECT_TRUE(completions[i].status.is_ok()) << completions[i].status.to_string();
            completed.push_back(completions[i].ticket);
        }
        return !count.is_ok() || (rest.empty() && completed.size() == posts);
    });
    EXPECT_GT(posts, 1U) << "the list was meant to be longer than a link takes at once";
    std::ranges::sort(completed);
    for (std::uint64_t i = 0; i < completed.size(); ++i) EXPECT_EQ(completed[i], 100 + i);
    for (std::size_t i = 0; i < kPieces; ++i)
        ASSERT_EQ(std::memcmp(mine.bytes().data() + i * kBlock,
                              theirs.bytes().data() + (kPieces - 1 - i) * kBlock, kBlock),
                  0);
}

TEST_P(RmaContract, ARunLandsWhereItsPiecesBelong) {
    for (const std::size_t block : {1, 7, 4096, 20'000}) {
        constexpr std::size_t kCount = 150;
        const std::size_t stride_here = block + 3;
        const std::size_t stride_there = 2 * block;
        const Registered mine = initiator().memory(kCount * stride_here);
        const Registered theirs = target().memory(kCount * stride_there);
        for (const RmaOp op : {RmaOp::kRead, RmaOp::kWrite}) {
            fill(mine, 1);
            fill(theirs, 2);
            std::vector<std::byte> here(mine.bytes().begin(), mine.bytes().end());
            std::vector<std::byte> there(theirs.bytes().begin(), theirs.bytes().end());
            for (std::size_t i = 0; i < kCount; ++i) {
                std::byte* const at = here.data() + i * stride_here;
                std::byte* const other = there.data() + i * stride_there;
                if (op == RmaOp::kRead)
                    std::memcpy(at, other, block);
                else
                    std::memcpy(other, at, block);
            }
            RmaRun run{.first = {.local = mine.registration(),
                                 .remote = &theirs.descriptor(),
                                 .bytes = block},
                       .stride_here = stride_here,
                       .stride_there = stride_there,
                       .count = kCount};
            std::uint64_t posts = 0;
            std::uint64_t completed = 0;
            pump([&] {
                const auto taken =
                    run.count > 0 ? initiator().link->post_run(op, run, posts) : std::size_t{0};
                EXPECT_TRUE(taken.is_ok()) << taken.status().to_string();
                if (!taken.is_ok()) return true;
                posts += *taken > 0 ? 1 : 0;
                run.count -= *taken;
                run.first.at += *taken * stride_here;
                run.first.there += *taken * stride_there;
                RmaCompletion completion;
                const auto count = initiator().link->poll({&completion, 1});
                EXPECT_TRUE(count.is_ok() && (*count == 0 || completion.status.is_ok()));
                completed += count.is_ok() ? *count : 0;
                static_cast<void>(target().link->advance());
                return !count.is_ok() || (run.count == 0 && completed == posts);
            });
            ASSERT_TRUE(std::ranges::equal(mine.bytes(), here)) << block;
            ASSERT_TRUE(std::ranges::equal(theirs.bytes(), there)) << block;
        }
    }
}

TEST_P(RmaContract, OffsetsBeyondFourGigabytesAreNotCut) {
    constexpr std::size_t kFar = (std::size_t{4} << 30) + 4099;
    constexpr std::size_t kBytes = 10'000;
    const Registered theirs = target().memory(kFar + kBytes);  // two pages of it are touched
    const Registered mine = initiator().memory(kBytes);
    const Registered back = initiator().memory(kBytes);
    fill(mine, 4);
    ASSERT_EQ(complete(RmaOp::kWrite, {{.local = mine.registration(),
                                        .remote = &theirs.descriptor(),
                                        .there = kFar,
                                        .bytes = kBytes}})
                  .to_string(),
              "ok");
    EXPECT_TRUE(std::ranges::equal(theirs.bytes().subspan(kFar), mine.bytes()));
    EXPECT_TRUE(are_all(theirs.bytes().subspan(4099, kBytes), std::byte{0}));
    ASSERT_EQ(complete(RmaOp::kRead, {{.local = back.registration(),
                                       .remote = &theirs.descriptor(),
                                       .there = kFar,
                                       .bytes = kBytes}})
                  .to_string(),
              "ok");
    EXPECT_TRUE(std::ranges::equal(back.bytes(), mine.bytes()));
}

TEST_P(RmaContract, PiecesOutOfBoundsAreRefusedAndEndAPrefix) {
    const Registered mine = initiator().memory(4096);
    const Registered theirs = target().memory(8192);
    const auto piece = [&](std::size_t at, std::size_t there, std::size_t bytes) {
        return RmaPiece{.local = mine.registration(),
                        .at = at,
                        .remote = &theirs.descriptor(),
                        .there = there,
                        .bytes = bytes};
    };
    constexpr std::size_t kHuge = ~std::size_t{0};
    for (const RmaPiece& bad :
         {piece(4097, 0, 0), piece(4096, 0, 1), piece(0, 0, 4097), piece(1, 0, 4096),
          piece(0, 8193, 0), piece(0, 8191, 2), piece(0, kHuge, 1), piece(kHuge, 0, 1),
          piece(1, 0, kHuge), piece(0, 8192, kHuge), piece(0, kHuge, kHuge)}) {
        for (const RmaOp op : {RmaOp::kRead, RmaOp::kWrite}) {
            EXPECT_EQ(initiator().link->post(op, {&bad, 1}, 1).status().code(),
                      StatusCode::kInvalidArgument);
        }
    }
    const RmaPiece nothing{};
    EXPECT_EQ(initiator().link->post(RmaOp::kRead, {&nothing, 1}, 1).status().code(),
              StatusCode::kInvalidArgument);

    const std::vector<RmaPiece> pieces{piece(0, 0, 1), piece(4095, 8191, 1), piece(0, 8192, 1)};
    const auto taken = initiator().link->post(RmaOp::kWrite, pieces, 5);
    ASSERT_TRUE(taken.is_ok()) << taken.status().to_string();
    EXPECT_EQ(*taken, 2U);
    const auto completed =
        next_completion(*initiator().link, [&] { static_cast<void>(target().link->advance()); });
    ASSERT_TRUE(completed.is_ok()) << completed.status().to_string();
    EXPECT_EQ(completed->ticket, 5U);
    EXPECT_TRUE(completed->status.is_ok()) << completed->status.to_string();
}

/// Nobody rings when there is more to copy: a wait that slept then would take far too long.
TEST_P(RmaContract, ProgressReturnsWhetherThereMayBeMoreToDo) {
    const std::size_t much = 10 * GetParam().much;
    const Registered mine = initiator().memory(much);
    const Registered theirs = target().memory(much);
    const RmaPiece piece{
        .local = mine.registration(), .remote = &theirs.descriptor(), .bytes = much};
    ASSERT_EQ(initiator().link->post(RmaOp::kRead, {&piece, 1}, 1).value(), 1U);
    int moved = 0;
    const auto completed = next_completion(*initiator().link, [&] {
        moved += initiator().link->has_moved() ? 1 : 0;
        static_cast<void>(target().link->advance());
    });
    ASSERT_TRUE(completed.is_ok() && completed->status.is_ok());
    EXPECT_GT(moved, 0);
    static_cast<void>(initiator().link->poll({}));
    EXPECT_FALSE(initiator().link->has_moved());
}

TEST_P(RmaContract, NoBytesMoveTooAndNeedTheRegistration) {
    const Registered mine = initiator().memory(10);
    Registered theirs = target().memory(10);
    for (const std::size_t place : {0UL, 10UL})
        for (const RmaOp op : {RmaOp::kRead, RmaOp::kWrite})
            EXPECT_EQ(complete(op, {{.local = mine.registration(),
                                     .at = place,
                                     .remote = &theirs.descriptor(),
                                     .there = place,
                                     .bytes = 0}})
                          .to_string(),
                      "ok");
    theirs.end();
    EXPECT_FALSE(read(mine, theirs.descriptor(), 0).is_ok());
    EXPECT_FALSE(write(mine, theirs.descriptor(), 0).is_ok());
    EXPECT_TRUE(initiator().link->post(RmaOp::kRead, {}, 1).is_ok());
}

TEST_P(RmaContract, ADescriptorThatIsNotOfThisRegistrationReachesNothing) {
    const Registered mine = initiator().memory(100);
    const Registered theirs = target().memory(100);
    fill(mine, 1);
    abi::MemoryDescriptor wrong = theirs.descriptor();
    wrong.nonce ^= 0x100;
    EXPECT_EQ(write(mine, wrong, 100).code(), StatusCode::kUnavailable);
    EXPECT_EQ(read(mine, wrong, 100).code(), StatusCode::kUnavailable);
    EXPECT_TRUE(are_all(theirs.bytes(), std::byte{0}));
    EXPECT_EQ(write(mine, theirs.descriptor(), 100).to_string(), "ok") << "the link goes on";
}

TEST_P(RmaContract, ADescriptorSurvivesTheTrip) {
    const Registered mine = initiator().memory(100);
    const Registered theirs = target().memory(100);
    fill(theirs, 6);
    const std::string bytes = serialise(theirs.descriptor());
    EXPECT_LT(bytes.size(), 256U);
    EXPECT_EQ(bytes, serialise(theirs.descriptor()));
    const auto completed = parse_memory_descriptor(bytes);
    ASSERT_TRUE(completed.is_ok()) << completed.status().to_string();
    EXPECT_EQ(read(mine, *completed, 100).to_string(), "ok");
    EXPECT_TRUE(std::ranges::equal(mine.bytes(), theirs.bytes()));
}

TEST_P(RmaContract, AnEndedRegistrationIsReachedNoMore) {
    const Registered mine = initiator().memory(1000);
    Registered theirs = target().memory(1000);
    fill(mine, 1);
    ASSERT_EQ(write(mine, theirs.descriptor(), 1000).to_string(), "ok");
    theirs.end();
    std::ranges::fill(theirs.bytes(), kNew);
    EXPECT_EQ(read(mine, theirs.descriptor(), 1000).code(), StatusCode::kUnavailable);
    EXPECT_EQ(write(mine, theirs.descriptor(), 1000).code(), StatusCode::kUnavailable);
    EXPECT_TRUE(are_all(theirs.bytes(), kNew));

    // The same memory once more: the old descriptor does not stand for the new registration.
    const Registered next = target().memory(1000);
    EXPECT_EQ(read(mine, theirs.descriptor(), 1000).code(), StatusCode::kUnavailable);
    EXPECT_EQ(read(mine, next.descriptor(), 1000).to_string(), "ok");
}

/// Runs the target's end on a thread of its own.
class Carrier {
   public:
    explicit Carrier(RmaEnd& end)
        : thread_([this, &end] {
              while (!stop_) {
                  static_cast<void>(end.link->advance());
                  std::this_thread::yield();
              }
          }) {}
    ~Carrier() {
        stop_ = true;
        thread_.join();
    }
    Carrier(const Carrier&) = delete;
    Carrier& operator=(const Carrier&) = delete;

   private:
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

TEST_P(RmaContract, WhatAnOwnerWritesAfterItHasGivenUpIsNeverReadForGood) {
    const std::size_t much = GetParam().much;
    const Registered mine = initiator().memory(much);
    const Carrier carrier(target());
    for (int round = 0; round < 30; ++round) {
        // Written before it is registered: through a ring that is mapped twice ThreadSanitizer sees
        // no order.
        Registered theirs = target().memory(much, kOld);
        ASSERT_EQ(transfer(RmaOp::kRead, mine, theirs.descriptor()).to_string(), "ok");
        std::thread owner([&] {
            system_clock().sleep_for(std::chrono::microseconds(round * 97));
            theirs.end();
            std::ranges::fill(theirs.bytes(), kNew);
        });
        repeat_until_refused(RmaOp::kRead, mine, theirs.descriptor(),
                             [&] { EXPECT_TRUE(are_all(mine.bytes(), kOld)) << round; });
        owner.join();
    }
}

TEST_P(RmaContract, NobodyWritesIntoMemoryWhoseRegistrationHasEnded) {
    const std::size_t much = GetParam().much;
    const Registered mine = initiator().memory(much);
    std::ranges::fill(mine.bytes(), kOld);
    const Carrier carrier(target());
    for (int round = 0; round < 30; ++round) {
        Registered theirs = target().memory(much);
        std::atomic<bool> untouched{false};
        std::thread owner([&] {
            system_clock().sleep_for(std::chrono::microseconds(round * 97));
            theirs.end();
            std::ranges::fill(theirs.bytes(), kNew);
            system_clock().sleep_for(std::chrono::milliseconds(2));
            untouched = are_all(theirs.bytes(), kNew);
        });
        repeat_until_refused(RmaOp::kWrite, mine, theirs.descriptor(), [] {});
        owner.join();
        ASSERT_TRUE(untouched) << round;
    }
}

TEST_P(RmaContract, ANotificationIsSeenAfterTheBytesBeforeIt) {
    constexpr std::size_t kBytes = 300'000;
    const Registered mine = initiator().memory(kBytes);
    const Registered theirs = target().memory(kBytes);
    for (unsigned round = 0; round < 20; ++round) {
        fill(mine, round);
        const RmaPiece piece{
            .local = mine.registration(), .remote = &theirs.descriptor(), .bytes = kBytes};
        ASSERT_EQ(initiator().link->post(RmaOp::kWrite, {&piece, 1}, round).value(), 1U);
        const std::string notification = "write " + std::to_string(round);
        ASSERT_TRUE(initiator().link->notify(notification_of(notification)).value());
        std::optional<RmaCompletion> completed;
        std::string seen;
        pump([&] {
            RmaCompletion completion;
            const auto count = initiator().link->poll({&completion, 1});
            if (count.is_ok() && *count == 1) completed = completion;
            const auto next = target().link->next_notification();
            if (next.is_ok() && *next) {
                seen.assign(reinterpret_cast<const char*>((*next)->data()), (*next)->size());
                EXPECT_TRUE(std::ranges::equal(theirs.bytes(), pattern(kBytes, round)));
            }
            return !seen.empty() && completed.has_value();
        });
        EXPECT_EQ(seen, notification);
        EXPECT_TRUE(completed && completed->status.is_ok());
    }
}

/// "I have read it": the target may then write there.
TEST_P(RmaContract, ANotificationIsSeenAfterTheReadsBeforeIt) {
    constexpr std::size_t kBytes = 3 * kMiB;
    const Registered mine = initiator().memory(kBytes);
    const Registered theirs = target().memory(kBytes);
    std::ranges::fill(theirs.bytes(), kOld);
    const RmaPiece piece{
        .local = mine.registration(), .remote = &theirs.descriptor(), .bytes = kBytes};
    ASSERT_EQ(initiator().link->post(RmaOp::kRead, {&piece, 1}, 1).value(), 1U);
    ASSERT_TRUE(initiator().link->notify(notification_of("read")).value());
    bool seen = false;
    bool completed = false;
    pump([&] {
        RmaCompletion completion;
        const auto count = initiator().link->poll({&completion, 1});
        completed = completed || (count.is_ok() && *count == 1 && completion.status.is_ok());
        const auto next = target().link->next_notification();
        if (next.is_ok() && *next) {
            seen = true;
            std::ranges::fill(theirs.bytes(), kNew);
        }
        return seen && completed;
    });
    EXPECT_TRUE(are_all(mine.bytes(), kOld));
}

TEST_P(RmaContract, ANotificationBehindAFailureIsDroppedUntilTheFailureIsReported) {
    const Registered mine = initiator().memory(100);
    Registered gone = target().memory(100);
    const Registered theirs = target().memory(100);
    gone.end();
    const RmaPiece bad{.local = mine.registration(), .remote = &gone.descriptor(), .bytes = 100};
    const RmaPiece good{.local = mine.registration(), .remote = &theirs.descriptor(), .bytes = 100};
    for (const RmaOp op : {RmaOp::kWrite, RmaOp::kRead}) {
        ASSERT_EQ(initiator().link->post(op, {&good, 1}, 1).value(), 1U);
        ASSERT_TRUE(initiator().link->notify(notification_of("before")).value());
        ASSERT_EQ(initiator().link->post(op, {&bad, 1}, 2).value(), 1U);
        ASSERT_TRUE(initiator().link->notify(notification_of("behind")).value());
        const auto progress = [&] { static_cast<void>(target().link->advance()); };
        EXPECT_TRUE(next_completion(*initiator().link, progress).value().status.is_ok());
        EXPECT_FALSE(next_completion(*initiator().link, progress).value().status.is_ok());
        ASSERT_TRUE(initiator().link->notify(notification_of("afterwards")).value());
        EXPECT_EQ(await_notification(), "before");
        EXPECT_EQ(await_notification(), "afterwards");
    }
}

TEST_P(RmaContract, NotificationsHaveBoundsAndKeepTheirOrder) {
    const std::string longest(RmaLink::kMostNotification, 'x');
    EXPECT_EQ(initiator().link->notify({}).status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(initiator().link->notify(notification_of(longest + "x")).status().code(),
              StatusCode::kInvalidArgument);
    constexpr int kNotifications = 400;
    int sent = 0;
    const auto send = [&] {
        const std::string notification = std::to_string(sent) + longest.substr(0, sent % 2 * 9000);
        const auto took = initiator().link->notify(notification_of(notification));
        EXPECT_TRUE(took.is_ok()) << took.status().to_string();
        if (took.is_ok() && *took) ++sent;
        return took.is_ok() && *took;
    };
    for (int seen = 0; seen < kNotifications;) {
        if (sent < kNotifications && send()) continue;
        if (sent == seen) {  // all are seen, and their receipts are still under way
            pump([&] { return initiator().link->advance().is_ok() && send(); });
            ASSERT_GT(sent, seen);
        }
        const std::string notification = await_notification();
        ASSERT_EQ(notification, std::to_string(seen) + longest.substr(0, seen % 2 * 9000));
        ++seen;
    }
    EXPECT_TRUE(initiator().link->notify(notification_of(longest)).value());
    EXPECT_EQ(await_notification(), longest);
}

TEST_P(RmaContract, BothEndsMayWriteAndReadAtOnce) {
    const std::size_t much = 4 * GetParam().much;
    struct Side {
        RmaEnd& end;
        Registered from;
        Registered into;
    };
    std::array<Side, 2> sides{Side{initiator(), initiator().memory(much), initiator().memory(much)},
                              Side{target(), target().memory(much), target().memory(much)}};
    for (unsigned i = 0; i < 2; ++i) fill(sides[i].from, i);
    std::atomic<int> done{0};
    const auto run = [&](std::size_t self) {
        Side& mine = sides[self];
        const Side& theirs = sides[1 - self];
        const RmaPiece out{.local = mine.from.registration(),
                           .remote = &theirs.into.descriptor(),
                           .bytes = much / 2};
        const RmaPiece in{.local = mine.into.registration(),
                          .at = much / 2,
                          .remote = &theirs.from.descriptor(),
                          .there = much / 2,
                          .bytes = much / 2};
        EXPECT_EQ(mine.end.link->post(RmaOp::kWrite, {&out, 1}, 1).value(), 1U);
        EXPECT_EQ(mine.end.link->post(RmaOp::kRead, {&in, 1}, 2).value(), 1U);
        for (int i = 0; i < 2; ++i) {
            const auto completed = next_completion(*mine.end.link, [] {});
            EXPECT_TRUE(completed.is_ok() && completed->status.is_ok())
                << completed.status().to_string();
        }
        for (++done; done < 2;) static_cast<void>(mine.end.link->advance());
    };
    std::thread other([&] { run(1); });
    run(0);
    other.join();
    for (std::size_t i = 0; i < 2; ++i)
        EXPECT_TRUE(std::ranges::equal(sides[i].into.bytes(), sides[1 - i].from.bytes()));
}

TEST_P(RmaContract, AbortEndsAllThatIsUnderWay) {
    const Registered mine = initiator().memory(64 * kMiB);
    const Registered theirs = target().memory(64 * kMiB);
    const RmaPiece piece{
        .local = mine.registration(), .remote = &theirs.descriptor(), .bytes = 64 * kMiB};
    for (std::uint64_t ticket = 0; ticket < 3; ++ticket)
        ASSERT_EQ(initiator().link->post(RmaOp::kRead, {&piece, 1}, ticket).value(), 1U);
    std::thread([&] { initiator().link->abort(Status::aborted("enough")); }).join();
    for (int i = 0; i < 3; ++i) {
        const auto completed = next_completion(*initiator().link, [] {});
        ASSERT_TRUE(completed.is_ok()) << completed.status().to_string();
        EXPECT_EQ(completed->status.code(), StatusCode::kAborted);
    }
    EXPECT_EQ(next_completion(*initiator().link, [] {}).status().code(), StatusCode::kAborted);
    EXPECT_EQ(initiator().link->post(RmaOp::kRead, {&piece, 1}, 9).status().code(),
              StatusCode::kAborted);
    EXPECT_EQ(initiator().link->notify(notification_of("x")).status().code(), StatusCode::kAborted);
    EXPECT_EQ(initiator().link->look().code(), StatusCode::kAborted);
    Status lost;
    pump([&] {
        lost = target().link->next_notification().status();
        return !lost.is_ok();
    });
    EXPECT_EQ(lost.code(), StatusCode::kPeerLost) << lost.to_string();
}

TEST_P(RmaContract, NotificationsThatCameBeforeThePeerLeftAreSeen) {
    ASSERT_TRUE(initiator().link->notify(notification_of("last notifications")).value());
    EXPECT_EQ(await_notification(), "last notifications");
    ASSERT_TRUE(initiator().link->notify(notification_of("more")).value());
    for (int i = 0; i < 50; ++i) static_cast<void>(initiator().link->advance());
    initiator().link.reset();
    std::vector<std::string> seen;
    Status lost;
    EXPECT_TRUE(eventually(target().process->waiter(), [&] {
        const auto notification = target().link->next_notification();
        lost = notification.status();
        if (notification.is_ok() && *notification)
            seen.emplace_back(reinterpret_cast<const char*>((*notification)->data()),
                              (*notification)->size());
        return !lost.is_ok();
    }));
    EXPECT_EQ(seen, std::vector<std::string>{"more"});
    EXPECT_EQ(lost.code(), StatusCode::kPeerLost) << lost.to_string();
}

TEST_P(RmaContract, WhatCannotBeRegisteredIsRefused) {
    std::array<std::byte, 8> bytes{};
    RmaTransport& rma = *initiator().rma;
    EXPECT_EQ(rma.add({.data = bytes.data(), .bytes = 0}).status().code(),
              StatusCode::kInvalidArgument);
    EXPECT_EQ(rma.add({.data = nullptr, .bytes = 8}).status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(rma.add({.data = bytes.data(), .bytes = 8}, {.id = 1, .nonce = 0}).status().code(),
              StatusCode::kInvalidArgument);
    EXPECT_EQ(
        rma.add({.data = bytes.data(), .bytes = 8, .kind = abi::MemoryKind::kGpu, .device = 0})
            .status()
            .code(),
        sys::cuda::process_driver().is_ok() ? StatusCode::kInvalidArgument
                                            : StatusCode::kUnsupported);
    const auto kept = rma.add({.data = bytes.data(), .bytes = 8}, {.id = 5, .nonce = 77});
    ASSERT_TRUE(kept.is_ok()) << kept.status().to_string();
    EXPECT_EQ((*kept)->descriptor().id, 5U);
    EXPECT_EQ((*kept)->descriptor().nonce, 77U);
}

}  // namespace
}  // namespace pccl::transport::contract
