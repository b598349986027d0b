// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/config.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string_view>

#include "csrc/base/ids.h"
#include "csrc/base/stderr_sink.h"
#include "csrc/base/text/nearest.h"
#include "csrc/base/text/text.h"
#include "csrc/base/time_limit.h"

namespace pccl {
namespace {

constexpr std::size_t kLongestName = 256;
constexpr std::size_t kLongestPath = 4096;
constexpr std::size_t kLongestShown = 64;
constexpr int kMostHelpers = 31;
constexpr std::string_view kPrefix = "PCCL_";
constexpr std::array<std::string_view, 6> kLevels = {"trace",   "debug", "info",
                                                     "warning", "error", "off"};
constexpr std::array<std::string_view, 3> kConnectWays = {"auto", "direct", "rdma_cm"};
constexpr std::array<std::string_view, 4> kGpuWays = {"auto", "dmabuf", "peermem", "off"};

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kSpace = " \t\r\n";
    const std::size_t first = text.find_first_not_of(kSpace);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// Returns a value for a warning: cut short, without characters that could disturb a terminal.
std::string shown(std::string_view value) {
    std::string text(value.substr(0, kLongestShown));
    std::replace_if(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return value.size() > kLongestShown ? text + "..." : text;
}

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return result;
}

/// Parses "1500", "inf"; nullopt for anything but a whole number, and for negative ones.
std::optional<std::chrono::milliseconds> milliseconds_in(std::string_view text) {
    if (lower(text) == "inf") return kNoLimit;
    std::int64_t parsed = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, parsed);
    if (stop != end || text.starts_with('-')) return std::nullopt;
    if (error == std::errc::result_out_of_range) return kNoLimit;
    if (error != std::errc{}) return std::nullopt;
    return std::min<std::chrono::milliseconds>(std::chrono::milliseconds(parsed), kNoLimit);
}

class Parser {
   public:
    Parser(const Lookup& lookup, std::vector<std::string>& unusable,
           std::vector<std::string>& warnings)
        : lookup_(lookup), unusable_(unusable), warnings_(warnings) {}

    void level(const char* key, LogLevel& target) {
        const auto value = find(key);
        if (!value) return;
        const auto found = std::find(kLevels.begin(), kLevels.end(), lower(*value));
        if (found == kLevels.end())
            return refuse(key, *value, "use trace, debug, info, warning, error or off");
        target = static_cast<LogLevel>(found - kLevels.begin());
    }

    /// Reads a whole number in [low, high], or 0 where `zero` stands for "choose for me".
    std::optional<std::int64_t> number(const char* key, std::int64_t low, std::int64_t high,
                                       bool zero = false) {
        const auto value = find(key);
        if (!value) return std::nullopt;
        std::int64_t parsed = 0;
        const char* const end = value->data() + value->size();
        const auto [stop, error] = std::from_chars(value->data(), end, parsed);
        const bool in_range = (parsed >= low && parsed <= high) || (zero && parsed == 0);
        if (error == std::errc{} && stop == end && in_range) return parsed;
        refuse(key, *value,
               concat("use a whole number from ", low, " to ", high, zero ? ", or 0" : ""));
        return std::nullopt;
    }

    /// Reads milliseconds from `low` on; kNoLimit for "inf" and for larger values.
    void time(const char* key, std::chrono::milliseconds low, std::chrono::milliseconds& target) {
        const auto value = find(key);
        if (!value) return;
        if (const auto parsed = milliseconds_in(*value); parsed && *parsed >= low)
            target = *parsed;
        else
            refuse(key, *value,
                   concat("use whole milliseconds from ", low.count(), " on, or inf for no limit"));
    }

    void text(const char* key, std::string_view alphabet, const char* right, std::string& target) {
        const auto value = find(key);
        if (!value) return;
        const bool fits = value->size() <= kLongestName &&
                          std::all_of(value->begin(), value->end(), [alphabet](char c) {
                              return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                     (c >= '0' && c <= '9') ||
                                     alphabet.find(c) != std::string_view::npos;
                          });
        if (!fits) return refuse(key, *value, right);
        target = *value;
    }

    void path(const char* key, std::string& target) {
        const auto value = find(key);
        if (!value) return;
        if (value->size() > kLongestPath)
            return refuse(key, *value, concat("use a path of at most ", kLongestPath, " bytes"));
        target = *value;
    }

    /// Reads a setting that protects the job: an empty value would remove the protection.
    void guard(const char* key, std::string& target) {
        if (lookup_(key) != nullptr && !find(key))
            return refuse(key, "", "name a file, or unset the variable");
        path(key, target);
    }

    void choice(const char* key, std::span<const std::string_view> known, const char* right,
                std::string& target) {
        const auto value = find(key);
        if (!value) return;
        if (std::ranges::find(known, *value) == known.end()) return refuse(key, *value, right);
        target = *value;
    }

    /// Reads the variable of a launcher; -1 for anything but a rank, as others may use its name.
    int rank(const char* key) {
        int parsed = -1;
        const auto value = find(key);
        if (!value) return -1;
        const char* const end = value->data() + value->size();
        const auto [stop, error] = std::from_chars(value->data(), end, parsed);
        return stop == end && error == std::errc{} ? std::max(parsed, -1) : -1;
    }

    /// Reads a path, under another library's name where PCCL's is unset.
    void path(const char* key, const char* other, std::string& target) {
        path(other, target);
        path(key, target);
    }

   private:
    std::optional<std::string_view> find(const char* key) {
        const char* const value = lookup_(key);
        if (value == nullptr) return std::nullopt;
        const std::string_view text = trimmed(value);
        return text.empty() ? std::nullopt : std::optional(text);
    }

    void refuse(const char* key, std::string_view value, std::string_view right) {
        const bool is_own = std::string_view(key).starts_with(kPrefix);
        (is_own ? unusable_ : warnings_)
            .push_back(concat(key, "=\"", shown(value), "\" is not usable",
                              is_own ? ": " : " and is ignored: ", right));
    }

    const Lookup& lookup_;
    std::vector<std::string>& unusable_;
    std::vector<std::string>& warnings_;
};

std::vector<std::string_view> names_in_environment() {
    std::vector<std::string_view> names;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        names.push_back(text.substr(0, text.find('=')));
    }
    return names;
}

/// Returns the names that parse_config() looks up.
std::vector<std::string_view> keys() {
    std::vector<std::string_view> requested;
    std::vector<std::string> none;
    static_cast<void>(parse_config(
        [&requested](const char* key) {
            requested.emplace_back(key);
            return nullptr;
        },
        none));
    return requested;
}

void parse_rdma(Parser& parser, Config::Rdma& rdma) {
    const auto number = [&parser](const char* key, std::int64_t low, std::int64_t high,
                                  int& target) {
        if (const auto value = parser.number(key, low, high)) target = static_cast<int>(*value);
    };
    parser.path("PCCL_IBVERBS_LIBRARY", rdma.ibverbs_file);
    parser.path("PCCL_RDMACM_LIBRARY", rdma.rdmacm_file);
    parser.choice("PCCL_IB_CONNECT", kConnectWays, "use auto, direct or rdma_cm", rdma.connect);
    parser.choice("PCCL_IB_GPU", kGpuWays, "use auto, dmabuf, peermem or off", rdma.gpu);
    parser.text("PCCL_IB_HCA", "=^,:_-. ",
                "use device names such as mlx5, =mlx5_0:1,mlx5_1:1 or ^mlx5_3", rdma.hca);
    number("PCCL_IB_GID_INDEX", -1, 255, rdma.gid_index);
    number("PCCL_IB_TC", 0, 255, rdma.traffic_class);
    number("PCCL_IB_SL", 0, 15, rdma.service_level);
    number("PCCL_IB_TIMEOUT", 1, 31, rdma.ack_timeout);
    number("PCCL_IB_RETRY_CNT", 0, 7, rdma.retry_count);
    number("PCCL_IB_QPS", 1, 8, rdma.queue_pairs);
}

constexpr const char* kInterfaceSyntax =
    "use interface names such as eth, =eth0 or ^lo, or a subnet such as 10.0.0.0/8";

void parse_interfaces(Parser& parser, const char* key, std::string& target) {
    parser.text(key, "=^,.:/_-@ ", kInterfaceSyntax, target);
}

void parse_nccl_plugin(Parser& parser, Config& config) {
    parse_interfaces(parser, "NCCL_SOCKET_IFNAME", config.nccl_plugin.ifname);
    if (!config.socket_ifname.empty()) config.nccl_plugin.ifname = config.socket_ifname;
    for (const char* key : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"})
        if (config.nccl_plugin.rank < 0) config.nccl_plugin.rank = parser.rank(key);
}

Config read_environment() {
    std::vector<std::string> warnings;
    Config config = parse_config([](const char* key) { return std::getenv(key); }, warnings);
    for (std::string& unknown : warn_of_unknown(names_in_environment()))
        warnings.push_back(std::move(unknown));
    // Does not use log(), which takes its level from here.
    warnings.insert(warnings.end(), config.unusable.begin(), config.unusable.end());
    if (config.log_level <= LogLevel::kWarning)
        for (const std::string& warning : warnings) log_about_settings(warning);
    return config;
}

}  // namespace

Config parse_config(const Lookup& lookup, std::vector<std::string>& warnings) {
    constexpr std::int64_t kMostSockets = 16;
    constexpr auto kLeastRing = static_cast<std::int64_t>(4 * kKiB);
    constexpr auto kMostRing = static_cast<std::int64_t>(1024 * kMiB);
    constexpr std::chrono::milliseconds kLeastConnectTimeout(1);
    constexpr std::chrono::milliseconds kLeastPeerTimeout(100);

    Config config;
    Parser parser(lookup, config.unusable, warnings);
    parser.level("PCCL_LOG_LEVEL", config.log_level);
    parser.text("PCCL_TRANSPORTS", "_, ", "use a list such as shm,tcp", config.transports);
    parse_interfaces(parser, "PCCL_SOCKET_IFNAME", config.socket_ifname);
    parse_interfaces(parser, "PCCL_MANAGEMENT_IFNAME", config.management_ifname);
    parser.text("PCCL_HOST_ID", ".:_-", "use letters, digits and . : _ -", config.host_id);
    parser.guard("PCCL_SECRET_FILE", config.secret_file);
    parser.path("PCCL_TUNING_FILE", config.tuning_file);
    parser.path("PCCL_COSTS_FILE", config.costs_file);
    parser.path("HOME", config.cache_folder);
    if (!config.cache_folder.empty()) config.cache_folder += "/.cache";
    parser.path("XDG_CACHE_HOME", config.cache_folder);
    parser.path("PCCL_FLIGHT_DIR", config.flight_dir);
    if (const auto sockets = parser.number("PCCL_TCP_SOCKETS", 1, kMostSockets))
        config.tcp_sockets = static_cast<int>(*sockets);
    if (const auto threads = parser.number("PCCL_COPY_THREADS", 0, kMostHelpers))
        config.copy_threads = static_cast<int>(*threads);
    if (const auto threads = parser.number("PCCL_TCP_THREADS", 0, kMostHelpers))
        config.tcp_threads = static_cast<int>(*threads);
    if (const auto bytes = parser.number("PCCL_SHM_RING_BYTES", kLeastRing, kMostRing, true))
        config.shm_ring_bytes = static_cast<std::size_t>(*bytes);
    parser.time("PCCL_CONNECT_TIMEOUT_MS", kLeastConnectTimeout, config.connect_timeout);
    if (const auto access = parser.number("PCCL_GPU_PEER_ACCESS", 0, 1))
        config.gpu_peer_access = *access == 1;
    if (const auto kernels = parser.number("PCCL_GPU_HOST_KERNELS", 0, 1))
        config.gpu_host_kernels = *kernels == 1;
    if (const auto engines = parser.number("PCCL_GPU_COPY_ENGINES", 0, 1))
        config.gpu_copy_engines = *engines == 1;
    parser.path("PCCL_TOPO_FILE", "NCCL_TOPO_FILE", config.topo_file);
    parser.path("PCCL_TOPO_DUMP_FILE", "NCCL_TOPO_DUMP_FILE", config.topo_dump_file);
    parser.path("PCCL_GRAPH_FILE", "NCCL_GRAPH_FILE", config.graph_file);
    parser.path("PCCL_GRAPH_DUMP_FILE", "NCCL_GRAPH_DUMP_FILE", config.graph_dump_file);
    parse_rdma(parser, config.rdma);
    parser.path("PCCL_NET_PLUGIN", config.net_plugin);
    parse_nccl_plugin(parser, config);
    parser.time("PCCL_PEER_TIMEOUT_MS", kLeastPeerTimeout, config.peer_timeout);
    config.peer_timeout = std::min(config.peer_timeout, kLongestPeerTimeout);
    parser.path("PCCL_CAPSULES", config.capsules);
    parser.guard("PCCL_TRUSTED_KEYS", config.trusted_keys);
    parser.path("PCCL_CLUSTER", config.cluster);
    parser.text("PCCL_ALGORITHM", "_=,- ", "use a list such as all_reduce=ring,all_gather=bruck",
                config.algorithm);
    return config;
}

std::vector<std::string> warn_of_unknown(std::span<const std::string_view> names) {
    // The common prefix makes no name nearer than another.
    std::vector<std::string_view> known = keys();
    std::erase_if(known, [&](std::string_view name) { return !name.starts_with(kPrefix); });
    for (std::string_view& name : known) name.remove_prefix(kPrefix.size());
    std::vector<std::string> warnings;
    for (const std::string_view name : names) {
        if (!name.starts_with(kPrefix) || name.starts_with("PCCL_TEST_")) continue;
        const std::string_view rest = name.substr(kPrefix.size());
        if (std::ranges::find(known, rest) != known.end()) continue;
        const std::string meant = did_you_mean(rest, known, kPrefix);
        warnings.push_back(
            concat(shown(name), " is no setting of pccl", meant.empty() ? "" : "; ", meant));
    }
    return warnings;
}

Status check_settings(const Config& config) {
    if (config.unusable.empty()) return Status::ok();
    std::string text;
    for (const std::string& line : config.unusable) text += concat(text.empty() ? "" : "; ", line);
    return Status::invalid_argument(std::move(text));
}

const Config& process_config() {
    static const Config config = read_environment();
    return config;
}

}  // namespace pccl
