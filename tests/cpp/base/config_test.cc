// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include <pccl/deadline.h>
#include "csrc/base/log/log.h"

namespace pccl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Parsed {
    Config config;
    std::vector<std::string> warnings;
};

Parsed parse(const std::map<std::string, std::string>& environment) {
    Parsed parsed;
    parsed.config = parse_config(
        [&](const char* key) {
            const auto found = environment.find(key);
            return found == environment.end() ? nullptr : found->second.c_str();
        },
        parsed.warnings);
    return parsed;
}

TEST(ConfigTest, AnEmptyEnvironmentGivesTheDefaults) {
    const Parsed parsed = parse({});
    EXPECT_EQ(parsed.config.log_level, LogLevel::kWarning);
    EXPECT_EQ(parsed.config.tcp_sockets, 2);
    EXPECT_EQ(parsed.config.connect_timeout, std::chrono::seconds(30));
    EXPECT_TRUE(parsed.config.transports.empty());
    EXPECT_EQ(parsed.config.gpu_peer_access, std::nullopt);
    EXPECT_EQ(parsed.config.gpu_host_kernels, std::nullopt);
    EXPECT_FALSE(parsed.config.gpu_copy_engines);
    EXPECT_EQ(parsed.config.copy_threads, std::nullopt);
    EXPECT_EQ(parsed.config.tcp_threads, std::nullopt);
    EXPECT_THAT(parsed.warnings, IsEmpty());
    EXPECT_TRUE(check_settings(parsed.config).is_ok());
}

TEST(ConfigTest, ReadsEveryKey) {
    const Parsed parsed = parse({{"PCCL_LOG_LEVEL", "Debug"},
                                 {"PCCL_TRANSPORTS", "shm,tcp"},
                                 {"PCCL_SOCKET_IFNAME", "=eth0,10.0.0.0/8,fe80::/10"},
                                 {"PCCL_HOST_ID", "rack3.node-7:a_b"},
                                 {"PCCL_SECRET_FILE", "/etc/pccl secret"},
                                 {"PCCL_TUNING_FILE", "/etc/pccl tuning"},
                                 {"PCCL_COSTS_FILE", "/etc/pccl costs"},
                                 {"HOME", "/home/me"},
                                 {"PCCL_TCP_SOCKETS", "16"},
                                 {"PCCL_TCP_THREADS", "0"},
                                 {"PCCL_COPY_THREADS", "31"},
                                 {"PCCL_SHM_RING_BYTES", "65536"},
                                 {"PCCL_GPU_COPY_ENGINES", "1"},
                                 {"PCCL_GPU_PEER_ACCESS", "0"},
                                 {"PCCL_GPU_HOST_KERNELS", "1"},
                                 {"PCCL_CONNECT_TIMEOUT_MS", " 1500 "},
                                 {"PCCL_ALGORITHM", "all_reduce=ring,all_gather=bruck"}});
    EXPECT_THAT(parsed.warnings, IsEmpty());
    EXPECT_THAT(parsed.config.unusable, IsEmpty());
    EXPECT_EQ(parsed.config.log_level, LogLevel::kDebug);
    EXPECT_EQ(parsed.config.transports, "shm,tcp");
    EXPECT_EQ(parsed.config.gpu_peer_access, false);
    EXPECT_EQ(parsed.config.gpu_host_kernels, true);
    EXPECT_TRUE(parsed.config.gpu_copy_engines);
    EXPECT_EQ(parsed.config.socket_ifname, "=eth0,10.0.0.0/8,fe80::/10");
    EXPECT_EQ(parsed.config.secret_file, "/etc/pccl secret");
    EXPECT_EQ(parsed.config.tuning_file, "/etc/pccl tuning");
    EXPECT_EQ(parsed.config.costs_file, "/etc/pccl costs");
    EXPECT_EQ(parsed.config.cache_folder, "/home/me/.cache");
    EXPECT_EQ(parse({{"HOME", "/a"}, {"XDG_CACHE_HOME", "/b"}}).config.cache_folder, "/b");
    EXPECT_EQ(parsed.config.tcp_sockets, 16);
    EXPECT_EQ(parsed.config.tcp_threads, 0);
    EXPECT_EQ(parsed.config.copy_threads, 31);
    EXPECT_EQ(parsed.config.shm_ring_bytes, 65536U);
    EXPECT_EQ(parsed.config.connect_timeout, std::chrono::milliseconds(1500));
    EXPECT_EQ(parsed.config.algorithm, "all_reduce=ring,all_gather=bruck");
}

TEST(ConfigTest, ReadsTheNetPlugin) {
    EXPECT_EQ(parse({}).config.net_plugin, "");
    EXPECT_EQ(parse({{"PCCL_NET_PLUGIN", "/opt/a b/libnccl-net.so"}}).config.net_plugin,
              "/opt/a b/libnccl-net.so");
}

TEST(ConfigTest, ReadsTheSettingsOfRdma) {
    const Config::Rdma usual = parse({}).config.rdma;
    EXPECT_EQ(usual.ibverbs_file, "");
    EXPECT_EQ(usual.rdmacm_file, "");
    EXPECT_EQ(usual.connect, "auto");
    EXPECT_EQ(usual.hca, "");
    EXPECT_EQ(usual.gid_index, -1);
    EXPECT_EQ(usual.traffic_class, 0);
    EXPECT_EQ(usual.service_level, 0);
    EXPECT_EQ(usual.ack_timeout, 20);
    EXPECT_EQ(usual.retry_count, 7);
    EXPECT_EQ(usual.queue_pairs, 1);
    EXPECT_EQ(usual.gpu, "auto");
    const Parsed parsed = parse({{"PCCL_IBVERBS_LIBRARY", "/opt/rdma core/libibverbs.so.1"},
                                 {"PCCL_RDMACM_LIBRARY", "/opt/rdma core/librdmacm.so.1"},
                                 {"PCCL_IB_CONNECT", "rdma_cm"},
                                 {"PCCL_IB_GPU", "peermem"},
                                 {"PCCL_IB_HCA", "=mlx5_0:1,mlx5_1"},
                                 {"PCCL_IB_GID_INDEX", "3"},
                                 {"PCCL_IB_TC", "106"},
                                 {"PCCL_IB_SL", "15"},
                                 {"PCCL_IB_TIMEOUT", "14"},
                                 {"PCCL_IB_RETRY_CNT", "0"},
                                 {"PCCL_IB_QPS", "8"}});
    EXPECT_THAT(parsed.config.unusable, IsEmpty());
    const Config::Rdma& rdma = parsed.config.rdma;
    EXPECT_EQ(rdma.ibverbs_file, "/opt/rdma core/libibverbs.so.1");
    EXPECT_EQ(rdma.rdmacm_file, "/opt/rdma core/librdmacm.so.1");
    EXPECT_EQ(rdma.connect, "rdma_cm");
    EXPECT_EQ(rdma.gpu, "peermem");
    EXPECT_EQ(rdma.hca, "=mlx5_0:1,mlx5_1");
    EXPECT_EQ(rdma.gid_index, 3);
    EXPECT_EQ(rdma.traffic_class, 106);
    EXPECT_EQ(rdma.service_level, 15);
    EXPECT_EQ(rdma.ack_timeout, 14);
    EXPECT_EQ(rdma.retry_count, 0);
    EXPECT_EQ(rdma.queue_pairs, 8);
}

TEST(ConfigTest, SettingsOfRdmaHaveRanges) {
    for (const auto& [key, value, range] :
         {std::tuple("PCCL_IB_GID_INDEX", "256", "-1 to 255"),
          std::tuple("PCCL_IB_TC", "256", "0 to 255"), std::tuple("PCCL_IB_SL", "16", "0 to 15"),
          std::tuple("PCCL_IB_TIMEOUT", "0", "1 to 31"),
          std::tuple("PCCL_IB_TIMEOUT", "32", "1 to 31"),
          std::tuple("PCCL_IB_RETRY_CNT", "8", "0 to 7"), std::tuple("PCCL_IB_QPS", "0", "1 to 8"),
          std::tuple("PCCL_IB_QPS", "9", "1 to 8"),
          std::tuple("PCCL_IB_GPU", "gdr", "auto, dmabuf, peermem or off"),
          std::tuple("PCCL_IB_HCA", "/dev/mlx5", "=mlx5_0:1,mlx5_1:1")})
        EXPECT_THAT(parse({{key, value}}).config.unusable,
                    ElementsAre(AllOf(HasSubstr(key), HasSubstr(value), HasSubstr(range))));
}

TEST(ConfigTest, TopologyFilesCountUnderNcclsNamesToo) {
    const Parsed parsed = parse({{"NCCL_TOPO_FILE", "/theirs.xml"},
                                 {"NCCL_TOPO_DUMP_FILE", "/dump.xml"},
                                 {"NCCL_GRAPH_FILE", "/graph.xml"},
                                 {"NCCL_GRAPH_DUMP_FILE", "/graphs.xml"},
                                 {"PCCL_TOPO_FILE", "/ours.xml"}});
    EXPECT_EQ(parsed.config.topo_file, "/ours.xml");
    EXPECT_EQ(parsed.config.topo_dump_file, "/dump.xml");
    EXPECT_EQ(parsed.config.graph_file, "/graph.xml");
    EXPECT_EQ(parsed.config.graph_dump_file, "/graphs.xml");
}

TEST(ConfigTest, ThePluginForNcclTakesItsInterfacesAndTheLaunchersRank) {
    EXPECT_EQ(parse({{"NCCL_SOCKET_IFNAME", "^docker"}}).config.nccl_plugin.ifname, "^docker");
    EXPECT_EQ(parse({{"NCCL_SOCKET_IFNAME", "^docker"}}).config.socket_ifname, "");
    EXPECT_EQ(parse({{"NCCL_SOCKET_IFNAME", "^docker"}, {"PCCL_SOCKET_IFNAME", "eth"}})
                  .config.nccl_plugin.ifname,
              "eth");
    EXPECT_EQ(parse({{"RANK", "7"}, {"SLURM_PROCID", "9"}}).config.nccl_plugin.rank, 7);
    EXPECT_EQ(parse({{"SLURM_PROCID", "9"}}).config.nccl_plugin.rank, 9);
    EXPECT_EQ(parse({}).config.nccl_plugin.rank, -1);
    const Parsed other = parse({{"RANK", "first"}, {"PMI_RANK", "-4"}});
    EXPECT_EQ(other.config.nccl_plugin.rank, -1);
    EXPECT_THAT(other.warnings, IsEmpty());
}

TEST(ConfigTest, EmptyValuesCountAsUnset) {
    const Parsed parsed = parse({{"PCCL_TCP_SOCKETS", ""}, {"PCCL_LOG_LEVEL", "  "}});
    EXPECT_EQ(parsed.config.tcp_sockets, 2);
    EXPECT_THAT(parsed.warnings, IsEmpty());
    EXPECT_THAT(parsed.config.unusable, IsEmpty());
}

TEST(ConfigTest, AnEmptyValueOfWhatKeepsOthersOutIsNotUsable) {
    for (const std::string key : {"PCCL_SECRET_FILE", "PCCL_TRUSTED_KEYS"})
        for (const std::string value : {"", "  "})
            EXPECT_THAT(parse({{key, value}}).config.unusable,
                        ElementsAre(AllOf(HasSubstr(key), HasSubstr("unset"))));
}

TEST(ConfigTest, APathThatIsTooLongIsNotUsable) {
    const std::string path(4097, 'x');
    for (const std::string key :
         {"PCCL_SECRET_FILE", "PCCL_TRUSTED_KEYS", "PCCL_TUNING_FILE", "PCCL_TOPO_FILE"})
        EXPECT_THAT(parse({{key, path}}).config.unusable,
                    ElementsAre(AllOf(HasSubstr(key), HasSubstr("4096"))));
    const Parsed others = parse({{"HOME", path}, {"NCCL_TOPO_FILE", path}});
    EXPECT_THAT(others.config.unusable, IsEmpty());
    EXPECT_THAT(others.warnings, SizeIs(2));
}

TEST(ConfigTest, ABadValueIsNamedWithItsRemedyAndEndsTheStart) {
    const Parsed parsed = parse({{"PCCL_TCP_SOCKETS", "17"}, {"PCCL_LOG_LEVEL", "loud"}});
    EXPECT_EQ(parsed.config.tcp_sockets, 2);
    EXPECT_EQ(parsed.config.log_level, LogLevel::kWarning);
    EXPECT_THAT(
        parsed.config.unusable,
        ElementsAre(AllOf(HasSubstr("PCCL_LOG_LEVEL"), HasSubstr("loud"), HasSubstr("trace")),
                    AllOf(HasSubstr("PCCL_TCP_SOCKETS"), HasSubstr("17"), HasSubstr("1 to 16"))));
    const Status refused = check_settings(parsed.config);
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    for (const std::string& line : parsed.config.unusable)
        EXPECT_THAT(refused.message(), HasSubstr(line));
}

class BadNumberTest : public testing::TestWithParam<const char*> {};

TEST_P(BadNumberTest, LeavesTheDefault) {
    const Parsed parsed = parse({{"PCCL_CONNECT_TIMEOUT_MS", GetParam()}});
    EXPECT_EQ(parsed.config.connect_timeout, std::chrono::seconds(30));
    EXPECT_THAT(parsed.config.unusable, SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(Values, BadNumberTest,
                         testing::Values("0", "-1", "10s", "1e3", "0x10", "1 2",
                                         "-99999999999999999999", "nan", "-inf", "+5", "\xff"));

TEST(ConfigTest, TimesWithoutLimitAreInfiniteOrTooLarge) {
    for (const std::string value : {"inf", "INF", "99999999999999999999", "9223372036854775807"}) {
        const Parsed parsed =
            parse({{"PCCL_CONNECT_TIMEOUT_MS", value}, {"PCCL_PEER_TIMEOUT_MS", value}});
        EXPECT_THAT(parsed.config.unusable, IsEmpty());
        EXPECT_TRUE(Deadline::after(parsed.config.connect_timeout).is_never()) << value;
        EXPECT_EQ(parsed.config.peer_timeout, kLongestPeerTimeout) << value;
    }
}

TEST(ConfigTest, ZeroRingBytesMeansAutomaticButTinyRingsAreRefused) {
    EXPECT_THAT(parse({{"PCCL_SHM_RING_BYTES", "0"}}).warnings, IsEmpty());
    EXPECT_THAT(parse({{"PCCL_SHM_RING_BYTES", "100"}}).config.unusable, SizeIs(1));
}

TEST(ConfigTest, WhatIsNotUsableIsOneShortPrintableLine) {
    const Parsed parsed =
        parse({{"PCCL_TRANSPORTS", "shm\n\x1b[2Jtcp" + std::string(10'000, 'x')}});
    const std::vector<std::string>& lines = parsed.config.unusable;
    ASSERT_THAT(lines, SizeIs(1));
    EXPECT_LT(lines[0].size(), 300U);
    for (const char c : lines[0]) EXPECT_TRUE(c >= ' ' && c <= '~');
    EXPECT_TRUE(parsed.config.transports.empty());
    EXPECT_EQ(parsed.config.gpu_peer_access, std::nullopt);
    EXPECT_EQ(parsed.config.gpu_host_kernels, std::nullopt);
}

std::vector<std::string> warnings_of(std::initializer_list<std::string_view> names) {
    return warn_of_unknown({names.begin(), names.size()});
}

TEST(ConfigTest, MisspeltNamesAreNamedWithWhatWasMeant) {
    EXPECT_THAT(warnings_of({"PCCL_TRANSPORT", "PATH", "PCCL_FLIGHTDIR"}),
                ElementsAre("PCCL_TRANSPORT is no setting of pccl; did you mean PCCL_TRANSPORTS?",
                            "PCCL_FLIGHTDIR is no setting of pccl; did you mean PCCL_FLIGHT_DIR?"));
    EXPECT_THAT(warnings_of({"PCCL_BLUE"}), ElementsAre("PCCL_BLUE is no setting of pccl"));
}

TEST(ConfigTest, KnownNamesAndThoseOfOthersAreNotWarnedOf) {
    EXPECT_THAT(warnings_of({"PCCL_TRANSPORTS", "PCCL_LOG_LEVEL", "PCCL_PEER_TIMEOUT_MS", "HOME",
                             "NCCL_DEBUG", "XPCCL_TRANSPORT", "PCCL_TEST_BACKEND"}),
                IsEmpty());
}

TEST(ConfigTest, UnknownNamesAreShownShortAndPrintable) {
    const std::string long_name = "PCCL_\n" + std::string(100'000, 'x');
    const auto warnings = warnings_of({long_name});
    ASSERT_THAT(warnings, SizeIs(1));
    EXPECT_LT(warnings[0].size(), 300U);
    EXPECT_EQ(warnings[0].find('\n'), std::string::npos);
}

TEST(ConfigTest, TheLoggerAndTheProcessConfigNeedEachOtherWithoutDeadlock) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a fresh process: both are made once
    EXPECT_EXIT(
        {
            ::setenv("PCCL_TCP_SOCKETS", "many", 1);
            log(LogLevel::kError, "first use");
            std::exit(process_config().tcp_sockets == 2 ? 0 : 1);
        },
        testing::ExitedWithCode(0), "PCCL_TCP_SOCKETS=\"many\".*1 to 16(.|\n)*first use");
}

}  // namespace
}  // namespace pccl
