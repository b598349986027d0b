// SPDX-License-Identifier: Apache-2.0

// What TCP takes between hosts is timed once, and kept; this host stands for both.
#include "csrc/costs/host_ways.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "csrc/base/clock.h"
#include "csrc/sys/socket/socket.h"
#include "csrc/transport/control/echoes.h"

namespace pccl::costs {
namespace {

using ::testing::HasSubstr;

class HostWays : public ::testing::Test {
   protected:
    void SetUp() override {
        std::string name = ::testing::TempDir() + "pccl-ways-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        config_.cache_folder = name;
        listener_ = std::move(sys::listen_on(sys::Address::parse("127.0.0.1:0").value()).value());
    }
    void TearDown() override { std::filesystem::remove_all(config_.cache_folder); }

    /// To a process that answers, if it `answers`.
    SoughtWay sought(bool answers = true) {
        return {
            .from = "host-a",
            .to = "host-b",
            .name = "node7",
            .loopback_byte = 1,
            .connect = [this, answers](Deadline deadline) { return connect(answers, deadline); }};
    }
    Result<UniqueFd> connect(bool answers, Deadline deadline) {
        ++connections_;
        PCCL_ASSIGN_OR_RETURN(const sys::Address there, sys::local_address(listener_.get()));
        PCCL_ASSIGN_OR_RETURN(UniqueFd here, sys::connect_to(there, deadline));
        const sys::Interest readable{.fd = listener_.get(), .input = true};
        sys::wait_for_any({&readable, 1}, std::chrono::seconds(30));
        PCCL_ASSIGN_OR_RETURN(auto accepted, sys::accept_next(listener_.get()));
        if (answers)
            server_.accept(*std::move(accepted));
        else
            silent_ = *std::move(accepted);
        return here;
    }
    /// Under load its time may not do, or it is disturbed, and not kept.
    topo::HostWay found(const SoughtWay& what) {
        for (const Deadline answer_timeout = Deadline::after(std::chrono::seconds(60));
             !answer_timeout.passed();) {
            auto way = way_between(what, config_);
            const bool is_kept = way && read().find(way->text()) != std::string::npos;
            if (way && (is_kept || config_.cache_folder.empty())) return *std::move(way);
        }
        ADD_FAILURE() << "no way was found";
        return {};
    }
    void write(const std::string& text) const {
        std::filesystem::create_directories(
            std::filesystem::path(ways_path(config_)).parent_path());
        std::ofstream(ways_path(config_)) << text;
    }
    [[nodiscard]] std::string read() const {
        std::ifstream file(ways_path(config_));
        return {std::istreambuf_iterator<char>(file), {}};
    }

    Config config_;
    UniqueFd listener_;
    UniqueFd silent_;
    int connections_ = 0;
    transport::EchoServer server_;
};

TEST_F(HostWays, AreTimedOnceAndKept) {
    const topo::HostWay way = found(sought());
    EXPECT_EQ(way.to, "node7");
    EXPECT_GT(way.round, 0);
    EXPECT_GT(way.message, 0);
    EXPECT_LT(way.byte, 1e-6);
    EXPECT_FALSE(way.is_narrow);
    const int connections = connections_;
    EXPECT_EQ(way_between(sought(), config_)->text(), way.text());
    EXPECT_EQ(connections_, connections) << "the kept one is taken";
    EXPECT_THAT(read(), HasSubstr("host-a host-b " + way.text()));
}

TEST_F(HostWays, AreOfTwoHostsEach) {
    found(sought());
    SoughtWay other = sought();
    other.to = "host-c";
    const int connections = connections_;
    found(other);
    EXPECT_GT(connections_, connections);
    EXPECT_THAT(read(), HasSubstr("host-a host-b "));
    EXPECT_THAT(read(), HasSubstr("host-a host-c "));
}

TEST_F(HostWays, MuchSlowerThanLoopbackAreNarrow) {
    SoughtWay what = sought();
    what.loopback_byte = 1e-15;
    EXPECT_TRUE(found(what).is_narrow);
}

TEST_F(HostWays, OlderThanADayAreTimedAnew) {
    constexpr long long kDayMs = 24LL * 3600 * 1000;
    const std::string yesterday = in_utc(wall_clock_ms() - kDayMs - 5000);
    write("host-a host-b 700 3 0.5 0 " + yesterday + " node7\n");
    EXPECT_NE(found(sought()).date, yesterday);
    EXPECT_THAT(read(), ::testing::Not(HasSubstr(yesterday)));
    write("host-a host-b 700 3 0.5 0 " + now_in_utc() + " node7\n");
    EXPECT_NEAR(found(sought()).round, 700e-6, 1e-5 * 700e-6);
}

TEST_F(HostWays, FromAClockThatWasSetBackSinceAreTimedAnew) {
    constexpr long long kDayMs = 24LL * 3600 * 1000;
    const std::string tomorrow = in_utc(wall_clock_ms() + kDayMs);
    write("host-a host-b 700 3 0.5 0 " + tomorrow + " node7\n");
    EXPECT_NE(found(sought()).date, tomorrow);
    EXPECT_THAT(read(), ::testing::Not(HasSubstr(tomorrow)));
}

TEST_F(HostWays, InAFileThatOthersMayWriteAreNone) {
    write("host-a host-b 700 3 0.5 0 " + now_in_utc() + " node7\n");
    std::filesystem::permissions(ways_path(config_), std::filesystem::perms::all);
    EXPECT_NE(found(sought()).round, 700e-6);
}

TEST_F(HostWays, ThatNobodyAnswersAreNone) {
    EXPECT_FALSE(way_between(sought(false), config_).has_value());
    SoughtWay none = sought();
    none.connect = [](Deadline) -> Result<UniqueFd> { return Status::unavailable("no way"); };
    EXPECT_FALSE(way_between(none, config_).has_value());
    EXPECT_EQ(read(), "");
}

TEST_F(HostWays, AreNotTimedWhereCostsAreOff) {
    config_.costs_file = "off";
    EXPECT_FALSE(way_between(sought(), config_).has_value());
    EXPECT_EQ(connections_, 0);
}

TEST_F(HostWays, WithoutAPlaceAreTimedForEachGroup) {
    config_.cache_folder.clear();
    found(sought());
    const int connections = connections_;
    found(sought());
    EXPECT_GT(connections_, connections);
}

}  // namespace
}  // namespace pccl::costs
