// SPDX-License-Identifier: Apache-2.0

// A cache file is the word of this user about this boot of this machine, or it is none.
#include "csrc/costs/kept_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace pccl::costs {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

class KeptCosts : public testing::Test {
   protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "pccl-costs-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override { fs::remove_all(folder_); }

    [[nodiscard]] std::string path() const { return folder_ + "/pccl/costs.txt"; }
    void write(const std::string& text) const {
        fs::create_directories(folder_ + "/pccl");
        std::ofstream(path()) << text;
    }
    [[nodiscard]] std::string read() const {
        std::ifstream file(path());
        return {std::istreambuf_iterator<char>(file), {}};
    }

    Keeping keeping() {
        return {.path = path(),
                .is_in_cache = true,
                .here = {.machine = "m/2", .boot = "b"},
                .measure = [this] {
                    ++measured_;
                    MachineCosts costs = MachineCosts::parse(figures_).value();
                    costs.origin.tries = 1;
                    costs.origin.is_quiet = is_quiet_;
                    costs.origin.spread = is_quiet_ ? 1 : 3;
                    return costs;
                }};
    }
    /// What a process takes that starts now, in microseconds.
    double core_round_trip() { return costs_from(keeping()).core_round_trip.seconds * 1e6; }
    /// Whether the file was of no use, and another one has taken its place.
    void expect_measured_anew() {
        EXPECT_DOUBLE_EQ(core_round_trip(), 1);
        EXPECT_EQ(measured_, 1);
        EXPECT_THAT(read(), HasSubstr("beat 1\n"));
        EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(path())));
    }

    std::string folder_;
    int measured_ = 0;
    bool is_quiet_ = true;
    std::string figures_ = "beat 1\n";
};

const std::string kHere = "machine m/2\nboot b\nquiet 1\n";

TEST_F(KeptCosts, AreMeasuredOnceABoot) {
    EXPECT_DOUBLE_EQ(core_round_trip(), 1);
    EXPECT_DOUBLE_EQ(core_round_trip(), 1);
    EXPECT_EQ(measured_, 1);
    EXPECT_THAT(read(), HasSubstr("boot b\n"));
    EXPECT_THAT(read(), HasSubstr("date 2"));
}

const std::string kBetweenCores = "beat 1\nwake 2\ntcp_round 3\ntcp_message 4\ntcp_byte 5\n";

TEST_F(KeptCosts, OfQuietCoresWithoutASecondOneAreMeasuredAgain) {
    write(kHere + "cores 2\ntries 1\ncopy 7 7 7 7\n");
    Keeping of_two = keeping();
    of_two.here.cores = 2;
    figures_ = "copy 1 1 1 1\n" + kBetweenCores;
    EXPECT_DOUBLE_EQ(costs_from(of_two).wake.seconds, 2e-6);
    EXPECT_DOUBLE_EQ(costs_from(of_two).core_round_trip.seconds, 1e-6);
    EXPECT_EQ(measured_, 1);
    EXPECT_THAT(read(), HasSubstr("beat 1\n"));
    EXPECT_THAT(read(), HasSubstr("copy 1 1 1 1\n"));
}

TEST_F(KeptCosts, WithASecondCoreCountMoreThanThoseOfOneHoweverQuiet) {
    write("machine m/2\nboot b\nquiet 0\nspread 9\ntries 1\ncopy 7 7 7 7\n" + kBetweenCores);
    Keeping of_two = keeping();
    of_two.here.cores = 2;
    figures_ = "copy 1 1 1 1\n";
    for (int start = 0; start < 5; ++start)
        EXPECT_DOUBLE_EQ(at(costs_from(of_two).copy, Level::kFirst), 7e-9);
    EXPECT_EQ(measured_, kMostTries - 1);
}

TEST_F(KeptCosts, OfAMachineWithOneCoreNeedNoSecondOne) {
    write(kHere + "cores 1\ncopy 7 7 7 7\n");
    Keeping of_one = keeping();
    of_one.here.cores = 1;
    EXPECT_DOUBLE_EQ(at(costs_from(of_one).copy, Level::kFirst), 7e-9);
    EXPECT_EQ(measured_, 0);
}

TEST_F(KeptCosts, OfThisBootAreTaken) {
    write(kHere + "beat 7\n");
    EXPECT_DOUBLE_EQ(core_round_trip(), 7);
    EXPECT_EQ(measured_, 0);
}

TEST_F(KeptCosts, ThatSomebodyWroteForAnyBootAreTakenAndStay) {
    write("beat 7\n");
    EXPECT_DOUBLE_EQ(core_round_trip(), 7);
    EXPECT_EQ(measured_, 0);
    EXPECT_EQ(read(), "beat 7\n");
}

TEST_F(KeptCosts, OfAnotherBootAreMeasuredAnew) {
    write("machine m/2\nboot a\nquiet 1\nbeat 7\n");
    expect_measured_anew();
}

TEST_F(KeptCosts, OfAnotherMachineAreMeasuredAnew) {
    write("machine m/4\nboot b\nquiet 1\nbeat 7\n");
    expect_measured_anew();
}

TEST_F(KeptCosts, ThatAreNoneAreMeasuredAnew) {
    write("#!/bin/sh\nexit 1\n");
    testing::internal::CaptureStderr();
    expect_measured_anew();
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("is ignored: line 2"));
}

TEST_F(KeptCosts, ThatAreTooLongAreMeasuredAnew) {
    write(kHere + "beat 7\n#" + std::string(MachineCosts::kMostBytes, 'x') + "\n");
    expect_measured_anew();
}

TEST_F(KeptCosts, BehindALinkAreMeasuredAnewAndTheLinkIsReplaced) {
    write(kHere + "beat 7\n");
    const std::string elsewhere = folder_ + "/elsewhere.txt";
    fs::rename(path(), elsewhere);
    fs::create_symlink(elsewhere, path());
    expect_measured_anew();
    EXPECT_TRUE(fs::exists(elsewhere));
}

TEST_F(KeptCosts, ThatOthersMayWriteAreMeasuredAnew) {
    write(kHere + "beat 7\n");
    ::chmod(path().c_str(), 0666);
    expect_measured_anew();
}

TEST_F(KeptCosts, OfAnotherUserAreMeasuredAnew) {
    write(kHere + "beat 7\n");
    constexpr uid_t kOther = 12345;
    if (::chown(path().c_str(), kOther, static_cast<gid_t>(-1)) != 0)
        GTEST_SKIP() << "only root can give files to others";
    expect_measured_anew();
}

TEST_F(KeptCosts, InAFileThatTheUserNamedAreNeverReplacedByOthers) {
    write("my notes\n");
    Keeping own = keeping();
    own.is_in_cache = false;
    EXPECT_DOUBLE_EQ(costs_from(own).core_round_trip.seconds, 1e-6);
    EXPECT_EQ(read(), "my notes\n");
}

TEST_F(KeptCosts, OfABusyMachineAreMeasuredAFewTimesAndTheBestIsKept) {
    write("machine m/2\nboot b\nquiet 0\nspread 2\ntries 1\nbeat 7\nwake 9\n");
    is_quiet_ = false;
    for (int start = 0; start < 5; ++start) EXPECT_DOUBLE_EQ(core_round_trip(), 7);
    EXPECT_EQ(measured_, kMostTries - 1);
}

TEST_F(KeptCosts, OfABusyMachineAreMeasuredAgainOnceItIsLessSo) {
    write("machine m/2\nboot b\nquiet 0\nload 8\ntries 9\nbeat 7\n");
    Keeping later = keeping();
    later.here.load = 5;
    EXPECT_DOUBLE_EQ(costs_from(later).core_round_trip.seconds, 7e-6);
    later.here.load = 3;
    EXPECT_DOUBLE_EQ(costs_from(later).core_round_trip.seconds, 1e-6);
}

TEST_F(KeptCosts, AreNotMeasuredAtEachStartBecauseTheBestAreOfABusierTime) {
    write("machine m/2\nboot b\nquiet 0\nspread 2\nload 8\ntries 3\nbeat 7\n");
    is_quiet_ = false;
    Keeping later = keeping();
    later.here.load = 3;
    for (int start = 0; start < 3; ++start)
        EXPECT_DOUBLE_EQ(costs_from(later).core_round_trip.seconds, 7e-6);
    EXPECT_EQ(measured_, 1);
}

TEST_F(KeptCosts, OfABusyMachineAreMeasuredAgainAfterAWhileAndThenMoreSeldom) {
    write("machine m/2\nboot b\ndate 2026-11-25T21:00:00Z\nquiet 0\nspread 2\ntries 3\nbeat 7\n");
    is_quiet_ = false;
    const auto measured_at = [this](int minute) {
        constexpr long long kThen = 1'795'640'400'000;  // in milliseconds: that date
        Keeping later = keeping();
        later.now_ms = kThen + minute * 60'000LL;
        EXPECT_DOUBLE_EQ(costs_from(later).core_round_trip.seconds, 7e-6);
        return measured_;
    };
    EXPECT_EQ(measured_at(9), 0);
    EXPECT_EQ(measured_at(11), 1);
    EXPECT_EQ(measured_at(19), 1);
    EXPECT_EQ(measured_at(21), 2);
    EXPECT_EQ(measured_at(39), 2);
    EXPECT_EQ(measured_at(41), 3);
}

TEST_F(KeptCosts, ThatTookLongGiveWayThoughTheirStepsWereAlike) {
    write("machine m/2\nboot b\nquiet 0\nspread 1.2\ntook 100\ntries 1\nbeat 7\nwake 9\n");
    is_quiet_ = false;
    EXPECT_DOUBLE_EQ(core_round_trip(), 1);
}

TEST_F(KeptCosts, CanBeReadHoweverOftenTheyWereMeasured) {
    write("machine m/2\nboot b\nquiet 0\nspread 2\nload 8\ntries 1000\nbeat 7\n");
    is_quiet_ = false;
    const MachineCosts best = costs_from(keeping());
    EXPECT_EQ(measured_, 1);
    EXPECT_TRUE(MachineCosts::parse(best.text()).is_ok());
    EXPECT_TRUE(MachineCosts::parse(read()).is_ok()) << read();
}

TEST_F(KeptCosts, OfABusyMachineGiveWayToThoseOfAQuietOne) {
    write("machine m/2\nboot b\nquiet 0\nspread 1\ntries 1\nbeat 7\nwake 9\n");
    EXPECT_DOUBLE_EQ(core_round_trip(), 1);
    EXPECT_DOUBLE_EQ(core_round_trip(), 1);
    EXPECT_EQ(measured_, 1);
    EXPECT_THAT(read(), HasSubstr("wake 9\n"));  // what was not measured this time
}

TEST_F(KeptCosts, WithoutAPlaceAreMeasuredByEachProcess) {
    Keeping nowhere = keeping();
    nowhere.path.clear();
    EXPECT_DOUBLE_EQ(costs_from(nowhere).core_round_trip.seconds, 1e-6);
    EXPECT_DOUBLE_EQ(costs_from(nowhere).core_round_trip.seconds, 1e-6);
    EXPECT_EQ(measured_, 2);
}

TEST(CostsPath, FollowsTheSettings) {
    Config config;
    EXPECT_EQ(costs_path(config), "");
    config.cache_folder = "/home/me/.cache";
    EXPECT_THAT(costs_path(config), testing::StartsWith("/home/me/.cache/pccl/costs-4-"));
    config.costs_file = "/etc/costs";
    EXPECT_EQ(costs_path(config), "/etc/costs");
    EXPECT_FALSE(keeping_of(config).is_in_cache);
    config.costs_file = "off";
    EXPECT_EQ(costs_path(config), "");
}

}  // namespace
}  // namespace pccl::costs
