// Settings from the environment: the only place that reads it. docs/configuration.md lists every
// key.
//
// Read once, at the first use in a process; later changes of the environment have no effect.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/export.h"
#include "csrc/base/log_level.h"
#include "csrc/base/status.h"

namespace pccl {

/// The kernel counts a socket's silence in an int.
inline constexpr std::chrono::milliseconds kLongestPeerTimeout = std::chrono::hours(24);

struct Config {
    LogLevel log_level = LogLevel::kWarning;  // PCCL_LOG_LEVEL
    std::string transports;                   // PCCL_TRANSPORTS: "shm,tcp"; empty = all
    std::string
        socket_ifname;  // PCCL_SOCKET_IFNAME: "eth", "=eth0", "^lo", or a subnet "10.0.0.0/8"
    std::string
        host_id;  // PCCL_HOST_ID: names this host; empty = by its kernel and network namespace
    std::string management_ifname;  // PCCL_MANAGEMENT_IFNAME: the same, of a network beside that
    std::string secret_file;  // PCCL_SECRET_FILE: the job secret; empty = from the rendezvous store
    int tcp_sockets = 2;      // PCCL_TCP_SOCKETS: data sockets a direction and peer, 1 to 16
    std::size_t shm_ring_bytes = 0;  // PCCL_SHM_RING_BYTES: 0 = by the number of ranks
    std::chrono::milliseconds connect_timeout{30'000};  // PCCL_CONNECT_TIMEOUT_MS
    std::chrono::milliseconds peer_timeout{10'000};  // PCCL_PEER_TIMEOUT_MS: a host that is silent;
                                                     // at most kLongestPeerTimeout
    std::string flight_dir;    // PCCL_FLIGHT_DIR: where flight records go; empty = nowhere
    std::string tuning_file;   // PCCL_TUNING_FILE: what pccl tune found; empty = in cache_folder
    std::string costs_file;    // PCCL_COSTS_FILE: what this machine's steps cost; "off" = measure
                               // and read nothing; empty = in cache_folder
    std::string cache_folder;  // XDG_CACHE_HOME, or HOME's .cache; empty without both
    std::string algorithm;     // PCCL_ALGORITHM: "all_reduce=ring,all_gather=bruck"; empty = the
                               // selector's choice
    std::string cluster;       // PCCL_CLUSTER: the cluster file of a job whose network has phases
    std::string capsules;      // PCCL_CAPSULES: files, and folders of files *.capsule, between ":"
    std::string trusted_keys;  // PCCL_TRUSTED_KEYS: a file of public keys, one of which must have
                               // signed a capsule; empty = nobody need
    bool gpu_copy_engines = false;  // PCCL_GPU_COPY_ENGINES: 1 = for large all_gathers, all_to_alls
    // PCCL_GPU_PEER_ACCESS: 0 = CUDA tensors go through host memory; 1 = by kernels also where
    // ranks take turns on a GPU
    std::optional<bool> gpu_peer_access{};
    // NCCL's names, NCCL_TOPO_FILE and so on, count where ours are unset.
    std::string topo_file;        // PCCL_TOPO_FILE: what is known of the machine, before detection
    std::string topo_dump_file;   // PCCL_TOPO_DUMP_FILE: where a detected machine is written
    std::string graph_file;       // PCCL_GRAPH_FILE: plans, instead of a search
    std::string graph_dump_file;  // PCCL_GRAPH_DUMP_FILE: where plans are written
    /// A line for each setting whose value cannot be used, with its name, the value and what would
    /// be right: check_settings().
    std::vector<std::string> unusable;
};

/// The environment: the value of a key, or null.
using Lookup = std::function<const char*(const char* key)>;

/// Reads every key through `lookup`. A value that cannot be used leaves its default and adds one
/// line to Config::unusable; to `warnings`, where the key is not PCCL's own (HOME, NCCL_TOPO_FILE).
/// Empty values count as unset, but for secret_file and trusted_keys, where they cannot be used: an
/// unset variable in a script must not leave a job without its secret. Names of transports,
/// interfaces and algorithms are checked for form here and for existence by those who own them.
/// Milliseconds are whole numbers; "inf", and those that are too large, are no limit.
[[nodiscard]] Config parse_config(const Lookup& lookup, std::vector<std::string>& warnings);

/// A line for each of `names` that begins with PCCL_ and is no key, with the key that it resembles.
/// Names that begin with PCCL_TEST_ are for tests.
[[nodiscard]] std::vector<std::string> warn_of_unknown(std::span<const std::string_view> names);

/// What the environment says; a value that cannot be used is named in a warning.
[[nodiscard]] PCCL_API const Config& process_config();

/// kInvalidArgument with the lines of `config.unusable`, if there are any. Whatever goes by
/// settings begins with this.
[[nodiscard]] PCCL_API Status check_settings(const Config& config = process_config());

}  // namespace pccl
