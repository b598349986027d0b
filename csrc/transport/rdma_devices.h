// SPDX-License-Identifier: Apache-2.0

// Report on the RDMA devices of this machine, and the steps of their examination: plain values,
// which also exist in builds without transport/verbs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/status.h>

namespace pccl::transport {

struct RdmaGid {
    int index = 0;
    std::string type;     // "IB", "RoCE v1" or "RoCE v2"
    std::string address;  // "10.0.0.1", or an IPv6 address
};

struct RdmaPort {
    int number = 1;
    std::string state;       // "ACTIVE", "DOWN", ...
    std::string link_layer;  // "Ethernet" or "InfiniBand"
    double gigabits = 0;     // 0: unknown
    std::size_t mtu_bytes = 0;
    int lid = 0;
    std::vector<RdmaGid> gids;
    int gid_index = -1;  // the chosen one; -1: the port is not used
    std::string reason;  // why that GID is chosen, or why the port is not used

    [[nodiscard]] bool is_used() const { return gid_index >= 0; }
};

struct RdmaDevice {
    std::string name;
    bool is_soft = false;
    bool is_iwarp = false;
    std::vector<RdmaPort> ports;
    std::string gpu_access;  // how it reaches memory of GPUs: "by dmabuf"
    std::string failure;     // why the device cannot be opened; empty: it can
};

struct RdmaReport {
    std::string ibverbs_path;  // path of libibverbs; empty: none
    std::string version;       // of rdma-core; empty: unknown
    std::string rdmacm_path;   // path of librdmacm; empty: none
    std::string rdmacm_version;
    std::string rdmacm_failure;  // why there is no librdmacm
    std::vector<RdmaDevice> devices;
    std::string failure;  // why the list of devices is empty or has no choices
};

/// Steps of RdmaDoctor, in their order.
enum class RdmaStep : std::uint8_t {
    kLibrary,   // libibverbs is opened
    kDevice,    // a device is there, and can be opened
    kPort,      // a port is used by this process's settings
    kGid,       // its GID table has one that fits
    kMemory,    // memory of a link can be registered
    kMtu,       // MTU, link layer and kind of GID fit those of the peer
    kReach,     // a queue pair is connected to the peer's
    kLoopback,  // a write between two queue pairs of the port
    kWrite,     // a write to the peer, and one from it
    kGpu,       // ways of the device to memory of GPUs
};
inline constexpr std::array<std::string_view, 10> kRdmaSteps{
    "library", "device", "port", "gid", "memory", "mtu", "reach", "loopback", "write", "gpu"};

/// Examination of a port, step by step. One thread at a time.
class RdmaDoctor {
   public:
    virtual ~RdmaDoctor() = default;

    /// Runs a step, after those before it, and returns what it found. The error has what failed and
    /// the setting to change. `peer` is the peer's end(); empty: none. kReach and kWrite need it.
    virtual Result<std::string> run(RdmaStep step, std::string_view peer, Deadline deadline) = 0;
    /// Returns the description of this end for the peer, after kMemory.
    virtual Result<std::string> end() = 0;
};

}  // namespace pccl::transport
