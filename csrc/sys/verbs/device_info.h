// SPDX-License-Identifier: Apache-2.0

// RDMA devices of this machine and their ports, as plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pccl::sys::verbs {

using RawGid = std::array<std::uint8_t, 16>;

enum class GidType : std::uint8_t { kInfiniband, kRoceV1, kRoceV2 };
/// Returns "IB", "RoCE v1" or "RoCE v2".
[[nodiscard]] const char* to_string(GidType type);

struct GidEntry {
    int index = 0;
    RawGid gid{};
    GidType type = GidType::kInfiniband;

    /// Returns whether the GID is an IPv4 address (::ffff:a.b.c.d).
    [[nodiscard]] bool is_ipv4() const;
    /// Returns whether the GID is of one link alone (fe80::/10).
    [[nodiscard]] bool is_link_local() const;
    /// Returns the address as text: "10.0.0.1", or an IPv6 address.
    [[nodiscard]] std::string address() const;
};

struct PortInfo {
    int number = 1;
    bool is_active = false;
    std::string state;         // "ACTIVE", "DOWN", ...
    bool is_ethernet = false;  // RoCE or iWARP; else InfiniBand
    std::uint16_t lid = 0;
    std::size_t mtu_bytes = 0;  // active MTU
    double gigabits = 0;        // width x speed; 0: unknown
    std::vector<GidEntry> gids;
};

struct DeviceInfo {
    std::string name;  // "mlx5_0"
    std::uint64_t guid = 0;
    bool is_iwarp = false;
    /// Whether the kernel emulates the device on a network interface (rxe, siw).
    bool is_soft = false;
    int max_queue_pairs = 0;
    int max_registrations = 0;
    int max_completions = 0;    // of one completion queue
    int max_work_requests = 0;  // of one queue
    int max_reads = 0;          // outstanding RDMA reads of a queue pair, as their target
    int max_read_posts = 0;     // outstanding RDMA reads of a queue pair, as their initiator
    int max_pieces = 0;         // memory pieces of one work request
    std::vector<PortInfo> ports;

    /// Returns the port of that number, or null.
    [[nodiscard]] const PortInfo* port(int number) const;
};

}  // namespace pccl::sys::verbs
