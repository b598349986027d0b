// SPDX-License-Identifier: Apache-2.0

// Settings from the environment: the only file that reads it. docs/reference/configuration.md
// lists every key.
//
// The settings are read once, at the first use in a process; later changes of the environment have
// no effect.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/base/log_level.h"

namespace pccl {

/// Bound of peer_timeout: the kernel stores the silence of a socket in an int.
inline constexpr std::chrono::milliseconds kLongestPeerTimeout = std::chrono::hours(24);

struct Config {
    LogLevel log_level = LogLevel::kWarning;  // PCCL_LOG_LEVEL
    std::string transports;                   // PCCL_TRANSPORTS: "shm,tcp"; empty = all
    std::string
        socket_ifname;  // PCCL_SOCKET_IFNAME: "eth", "=eth0", "^lo", or a subnet "10.0.0.0/8"
    std::string
        host_id;  // PCCL_HOST_ID: name of this host; empty = from its kernel and network namespace
    std::string management_ifname;  // PCCL_MANAGEMENT_IFNAME: like socket_ifname, for a separate
                                    // management network
    std::string secret_file;  // PCCL_SECRET_FILE: the job secret; empty = from the rendezvous store
    int tcp_sockets = 2;      // PCCL_TCP_SOCKETS: data sockets a direction and peer, 1 to 16
    std::optional<int> copy_threads{};  // PCCL_COPY_THREADS: maximum helpers of copies and
                                        // reductions in host memory, 0 to 31; empty = measured
    std::optional<int> tcp_threads{};   // PCCL_TCP_THREADS: maximum helpers of transfers over
                                        // links, 0 to 31; empty = measured
    std::size_t shm_ring_bytes = 0;     // PCCL_SHM_RING_BYTES: 0 = derived from the number of ranks
    std::chrono::milliseconds connect_timeout{30'000};  // PCCL_CONNECT_TIMEOUT_MS
    std::chrono::milliseconds peer_timeout{10'000};     // PCCL_PEER_TIMEOUT_MS: limit for a silent
                                                        // host; at most kLongestPeerTimeout
    std::string flight_dir;    // PCCL_FLIGHT_DIR: folder for flight records; empty = none
    std::string tuning_file;   // PCCL_TUNING_FILE: results of pccl tune; empty = in cache_folder
    std::string costs_file;    // PCCL_COSTS_FILE: costs of this machine's steps; "off" = measure
                               // and read nothing; empty = in cache_folder
    std::string cache_folder;  // XDG_CACHE_HOME, or HOME's .cache; empty without both
    std::string algorithm;     // PCCL_ALGORITHM: "all_reduce=ring,all_gather=bruck"; empty = the
                               // selector's choice
    std::string cluster;       // PCCL_CLUSTER: the cluster file of a job whose network has phases
    std::string capsules;      // PCCL_CAPSULES: files, and folders of files *.capsule, between ":"
    std::string trusted_keys;  // PCCL_TRUSTED_KEYS: a file of public keys, one of which must have
                               // signed a capsule; empty = no signature is required
    bool gpu_copy_engines = false;  // PCCL_GPU_COPY_ENGINES: 1 = use them for large all_gathers,
                                    // all_to_alls
    // PCCL_GPU_PEER_ACCESS: 0 = kernels access no memory of peers; 1 = they do so also where ranks
    // share a GPU
    std::optional<bool> gpu_peer_access{};
    // PCCL_GPU_HOST_KERNELS: 0 = without peer access, no kernels carry CUDA tensors through host
    // memory; 1 = they do so also where ranks share a GPU
    std::optional<bool> gpu_host_kernels{};
    /// Settings of RDMA by libibverbs (csrc/transport/verbs).
    struct Rdma {
        std::string ibverbs_file;      // PCCL_IBVERBS_LIBRARY: a file, in place of libibverbs.so.1
        std::string rdmacm_file;       // PCCL_RDMACM_LIBRARY: a file, in place of librdmacm.so.1
        std::string connect = "auto";  // PCCL_IB_CONNECT: "auto", "direct" or "rdma_cm"
        std::string gpu = "auto";      // PCCL_IB_GPU: "auto", "dmabuf", "peermem" or "off"
        std::string hca;        // PCCL_IB_HCA: devices and ports, "mlx5", "=mlx5_0:1", "^mlx5_3"
        int gid_index = -1;     // PCCL_IB_GID_INDEX: -1 = chosen by type and address
        int traffic_class = 0;  // PCCL_IB_TC
        int service_level = 0;  // PCCL_IB_SL
        int ack_timeout = 20;   // PCCL_IB_TIMEOUT: 4.096 us * 2^x, 1 to 31
        int retry_count = 7;    // PCCL_IB_RETRY_CNT: 0 to 7
        int queue_pairs = 1;    // PCCL_IB_QPS: queue pairs of a link and port, 1 to 8
    };
    Rdma rdma{};
    std::string net_plugin;  // PCCL_NET_PLUGIN: name or path of a net plug-in of NCCL's ABI; empty
                             // = none, or libnccl-net.so where transports lists netplugin
    /// Settings of the plug-in for NCCL (plugins/nccl).
    struct NcclPlugin {
        std::string ifname;  // PCCL_SOCKET_IFNAME, or NCCL_SOCKET_IFNAME where that is unset
        int rank = -1;       // RANK, or its name in MPI's launchers and Slurm; -1: none of them
    };
    NcclPlugin nccl_plugin{};
    // NCCL's names, NCCL_TOPO_FILE and so on, apply where PCCL's are unset.
    std::string topo_file;        // PCCL_TOPO_FILE: a description of the machine, used before
                                  // detection
    std::string topo_dump_file;   // PCCL_TOPO_DUMP_FILE: output file for a detected machine
    std::string graph_file;       // PCCL_GRAPH_FILE: input file of plans, in place of a search
    std::string graph_dump_file;  // PCCL_GRAPH_DUMP_FILE: output file for plans
    /// A line for each setting whose value is unusable, with its name, the value and a valid
    /// example: check_settings().
    std::vector<std::string> unusable;
};

/// Environment: returns the value of a key, or null.
using Lookup = std::function<const char*(const char* key)>;

/// Reads every key through `lookup`. An unusable value leaves its default and adds one line to
/// Config::unusable; to `warnings`, where the key is not PCCL's own (HOME, NCCL_TOPO_FILE). Empty
/// values count as unset. For secret_file and trusted_keys they are unusable: an unset variable in
/// a script must not leave a job without its secret. This function checks the form of names of
/// transports, interfaces and algorithms; their owners check that these exist. Milliseconds are
/// whole numbers; "inf", and too large numbers, mean no limit.
[[nodiscard]] Config parse_config(const Lookup& lookup, std::vector<std::string>& warnings);

/// Returns a line for each of `names` that begins with PCCL_ and is no key, with the most similar
/// key. Names that begin with PCCL_TEST_ are for tests.
[[nodiscard]] std::vector<std::string> warn_of_unknown(std::span<const std::string_view> names);

/// Returns the settings of the environment; a warning names each unusable value.
[[nodiscard]] PCCL_API const Config& process_config();

/// Returns kInvalidArgument with the lines of `config.unusable`, if there are any. Every entry
/// point that depends on settings calls this first.
[[nodiscard]] PCCL_API Status check_settings(const Config& config = process_config());

}  // namespace pccl
