// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/contention.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <thread>

#include "tests/cpp/sys/test_files.h"

namespace pccl::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr CoreUse kAlone{.ran = milliseconds(20)};
constexpr CoreUse kBesideAnother{.ran = milliseconds(10), .queued = milliseconds(10)};

TimePoint instant(Duration since_start) { return TimePoint(seconds(1000)) + since_start; }

TEST(ContentionTest, CoresThatNobodyElseWantsAreFree) {
    Contention contention;
    contention.note(instant(seconds(0)), kAlone);
    EXPECT_FALSE(contention.is_contended());
}

TEST(ContentionTest, AThreadThatWaitsForItsCoreSleepsEarly) {
    Contention contention;
    contention.note(instant(seconds(0)), kBesideAnother);
    EXPECT_TRUE(contention.is_contended());
}

TEST(ContentionTest, RanksOfACoreAreNoOthers) {
    Contention contention;
    CoreUse use = kBesideAnother;
    use.ranks_on_core = 2;
    contention.note(instant(seconds(0)), use);
    EXPECT_FALSE(contention.is_contended());
    use.was_stopped = true;
    contention.note(instant(seconds(1)), use);
    EXPECT_TRUE(contention.is_contended());
}

TEST(ContentionTest, TimesThatAreKnownTooCoarselyShowNothing) {
    Contention contention;
    contention.note(instant(seconds(0)), {.queued = milliseconds(4)});
    EXPECT_FALSE(contention.is_contended());
}

TEST(ContentionTest, AQuotaThatStoppedThemSleepsEarly) {
    Contention contention;
    contention.note(instant(seconds(0)), {.ran = milliseconds(20), .was_stopped = true});
    EXPECT_TRUE(contention.is_contended());
}

TEST(ContentionTest, SpinningIsTriedAgainAfterAWhile) {
    Contention contention;
    contention.note(instant(seconds(0)), kBesideAnother);
    contention.note(instant(Contention::kLeastHold / 2), kAlone);
    EXPECT_TRUE(contention.is_contended());
    contention.note(instant(Contention::kLeastHold), kAlone);
    EXPECT_FALSE(contention.is_contended());
}

TEST(ContentionTest, RanksThatQueueWhileTheySleepSpinAgain) {
    Contention contention;
    contention.note(instant(seconds(0)), kBesideAnother);
    contention.note(instant(Contention::kLeastHold / 2), kBesideAnother);
    EXPECT_TRUE(contention.is_contended());
    contention.note(instant(Contention::kLeastHold), kBesideAnother);
    EXPECT_FALSE(contention.is_contended());
    contention.note(instant(Contention::kLeastHold + milliseconds(20)), kBesideAnother);
    EXPECT_TRUE(contention.is_contended());
}

TEST(ContentionTest, FailedAttemptsBecomeRare) {
    Contention contention;
    TimePoint now = instant(seconds(0));
    Duration held{};
    for (int attempt = 0; attempt < 10; ++attempt) {
        contention.note(now, kBesideAnother);
        const TimePoint begin = now;
        while (contention.is_contended()) contention.note(now += milliseconds(100), kAlone);
        EXPECT_GE(now - begin, held);
        held = now - begin;
    }
    EXPECT_EQ(held, Contention::kMostHold);
    now += 3 * Contention::kMostHold;
    contention.note(now, kBesideAnother);
    contention.note(now + Contention::kLeastHold, kAlone);
    EXPECT_FALSE(contention.is_contended()) << "a long time without others is forgotten";
}

class ContentionWatchTest : public sys::FileTest {
   protected:
    void SetUp() override {
        FileTest::SetUp();
        put("/proc/self/cgroup", "0::/job\n");
        quota("max");
        throttled(0);
    }
    void put(const std::string& path, const std::string& text) const {
        const sys::fs::path file = folder_.string() + path;
        sys::fs::create_directories(file.parent_path());
        std::ofstream(file) << text;
    }
    void quota(const std::string& time) const {
        put("/sys/fs/cgroup/job/cpu.max", time + " 100000\n");
    }
    void throttled(int periods) const {
        put("/sys/fs/cgroup/job/cpu.stat", "nr_throttled " + std::to_string(periods) + "\n");
    }
    /// Looks with two processes. A new thread has no looks before.
    bool look(ContentionWatch& watch, Duration when) const {
        std::thread([&] { watch.look(instant(when), 2, 1); }).join();
        return watch.is_contended();
    }
};

TEST_F(ContentionWatchTest, WithoutAQuotaNothingStopsTheProcess) {
    ContentionWatch watch(folder_.string());
    EXPECT_FALSE(look(watch, seconds(0)));
    throttled(3);
    EXPECT_FALSE(look(watch, seconds(1)));
}

TEST_F(ContentionWatchTest, AQuotaBelowTheProcessesIsUsedUpBySpinning) {
    quota("150000");
    ContentionWatch watch(folder_.string());
    EXPECT_TRUE(look(watch, seconds(0)));
    EXPECT_FALSE(look(watch, seconds(1))) << "it has stopped nobody";
}

TEST_F(ContentionWatchTest, AQuotaThatStoppedTheProcessCounts) {
    quota("400000");
    throttled(7);
    ContentionWatch watch(folder_.string());
    EXPECT_FALSE(look(watch, seconds(0))) << "that was before";
    throttled(8);
    EXPECT_TRUE(look(watch, seconds(1)));
    EXPECT_FALSE(look(watch, seconds(2)));
}

TEST_F(ContentionWatchTest, AChangedQuotaIsFound) {
    ContentionWatch watch(folder_.string());
    EXPECT_FALSE(look(watch, seconds(0)));
    quota("50000");
    EXPECT_TRUE(look(watch, ContentionWatch::kBetweenQuotas));
}

TEST_F(ContentionWatchTest, YieldsThatOthersKeepForLongCount) {
    ContentionWatch watch(folder_.string());
    for (int yield = 0; yield < 2; ++yield) watch.note_yield(instant(seconds(0)), milliseconds(3));
    EXPECT_FALSE(watch.is_contended());
    watch.note_yield(instant(seconds(1)), milliseconds(3));
    EXPECT_FALSE(watch.is_contended()) << "the others were long ago";
    for (int yield = 0; yield < 2; ++yield) watch.note_yield(instant(seconds(1)), milliseconds(3));
    EXPECT_TRUE(watch.is_contended());
}

}  // namespace
}  // namespace pccl::transport
