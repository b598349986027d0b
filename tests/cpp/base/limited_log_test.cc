// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/log/limited_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace pccl {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::SizeIs;

class StoppedClock final : public Clock {
   public:
    [[nodiscard]] TimePoint now() const override { return now_; }
    void sleep_for(Duration duration) const override { now_ += duration; }

   private:
    mutable TimePoint now_{};
};

class LimitedLogTest : public testing::Test {
   protected:
    void SetUp() override { testing::internal::CaptureStderr(); }
    static std::vector<std::string> lines() {
        const std::string text = testing::internal::GetCapturedStderr();
        std::vector<std::string> found;
        for (std::size_t from = 0, end = 0; (end = text.find('\n', from)) != std::string::npos;
             from = end + 1)
            found.push_back(text.substr(from, end - from));
        return found;
    }
    void knock(const std::string& source, int times) {
        for (int i = 0; i < times; ++i)
            log_->line(LogLevel::kWarning, source, source, " knocks for the ", i);
    }

    StoppedClock clock_;
    std::unique_ptr<LimitedLog> log_ = std::make_unique<LimitedLog>("knocks", clock_);
};

TEST_F(LimitedLogTest, AFewLinesAreWrittenAsTheyAre) {
    knock("a", LimitedLog::kLinesOfOneSource);
    knock("b", LimitedLog::kLinesOfOneSource);
    log_.reset();
    const auto found = lines();
    ASSERT_THAT(found, SizeIs(2 * LimitedLog::kLinesOfOneSource));
    EXPECT_THAT(found.front(), EndsWith("a knocks for the 0"));
    EXPECT_THAT(found.back(), EndsWith("b knocks for the 7"));
}

TEST_F(LimitedLogTest, AFloodIsCountedAndHidesNobodyElse) {
    knock("a", 10'000);
    knock("b", 1);
    log_.reset();
    const auto found = lines();
    ASSERT_THAT(found, SizeIs(LimitedLog::kLinesOfOneSource + 3));
    EXPECT_THAT(found, Contains(EndsWith("more knocks: for 10 s they are counted")));
    EXPECT_THAT(found, Contains(EndsWith("b knocks for the 0")));
    EXPECT_THAT(found.back(), EndsWith("9992 more knocks"));
}

TEST_F(LimitedLogTest, ManySourcesShareALimit) {
    for (int source = 0; source < 1000; ++source) knock("source " + std::to_string(source), 2);
    log_.reset();
    const auto found = lines();
    ASSERT_THAT(found, SizeIs(LimitedLog::kLines + 2));
    EXPECT_THAT(found.back(), EndsWith("1968 more knocks"));
}

TEST_F(LimitedLogTest, TheNextPeriodBeginsWithTheCount) {
    knock("a", 100);
    clock_.sleep_for(LimitedLog::kPeriod);
    knock("a", 1);
    log_.reset();
    const auto found = lines();
    ASSERT_THAT(found, SizeIs(LimitedLog::kLinesOfOneSource + 3));
    EXPECT_THAT(found[found.size() - 2], EndsWith("92 more knocks"));
    EXPECT_THAT(found.back(), AllOf(HasSubstr("a knocks"), EndsWith("0")));
}

TEST_F(LimitedLogTest, WhatTheLevelLeavesOutCountsForNothing) {
    for (int i = 0; i < 1000; ++i) log_->line(LogLevel::kInfo, "a", "not seen");
    knock("a", 1);
    log_.reset();
    EXPECT_THAT(lines(), SizeIs(1));
}

}  // namespace
}  // namespace pccl
