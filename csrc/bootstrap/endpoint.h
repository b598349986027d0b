// SPDX-License-Identifier: Apache-2.0

// Endpoint of a rank: the information that the other ranks need to reach it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/transport/peer_address.h"

namespace pccl::bootstrap {

/// Comparable value. Its serialised form is below 8 KiB, so that it fits a value of any Store.
struct PCCL_API Endpoint {
    Rank rank = 0;
    std::string host;      // name of the machine (management plane), for error messages
    std::int64_t pid = 0;  // in its own pid namespace
    transport::TransportFlags transports;
    transport::PeerAddress address;
    std::string machine;         // equal on all ranks of a host, and unique to it
    int numa = -1;               // NUMA node of its allowed cores; -1: several, or unknown
    std::string gpu;             // bus id of its GPU; empty: none, or unknown
    int cores = 1;               // that the process may use, or that its CPU quota allows
    std::uint64_t core_set = 0;  // digest: ranks of a host with equal digests share these cores
    int tcp_threads = -1;        // PCCL_TCP_THREADS; -1: not set
    std::uint64_t capsules = 0;  // digest of the capsules that it was given; 0: none
    std::uint64_t nonce = 0;     // random for one exchange_roster(), to identify the answer to it

    bool operator==(const Endpoint&) const = default;

    /// Removes these transports and their addresses.
    void drop(transport::TransportFlags kinds);

    /// Serialises the endpoint. Address and host must keep the bounds that deserialise() checks.
    [[nodiscard]] std::string serialise() const;
    /// Parses untrusted bytes. Returns kInvalidArgument with the field and the place.
    static Result<Endpoint> deserialise(std::string_view bytes);
    /// Returns, for example, "rank 3 on node7 (pid 812, shm,tcp)".
    [[nodiscard]] std::string to_string() const;
};

}  // namespace pccl::bootstrap
