// What a rank tells the others about how to reach it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "csrc/base/ids.h"
#include "csrc/base/status.h"
#include "csrc/transport/peer_address.h"

namespace pccl::bootstrap {

/// A plain value, comparable. Its serialised form stays below 8 KiB, so that it fits a value of any
/// Store.
struct PCCL_API Endpoint {
    Rank rank = 0;
    std::string host;      // name of the machine (management plane), for messages
    std::int64_t pid = 0;  // in its own pid namespace
    transport::TransportFlags transports;
    transport::PeerAddress address;
    std::string machine;         // the same on all ranks of a host, and nowhere else
    int numa = -1;               // node of the cores that it may run on; -1: several, or unknown
    std::string gpu;             // bus id of the GPU that it uses; empty: none, or unknown
    std::uint64_t capsules = 0;  // stands for those that it was given to use; 0: none
    std::uint64_t nonce = 0;     // made up for one exchange_roster(), to know the answer to it by

    bool operator==(const Endpoint&) const = default;

    /// Takes away these transports, and their addresses.
    void drop(transport::TransportFlags kinds);

    /// Address and host must keep the bounds that deserialise() checks.
    [[nodiscard]] std::string serialise() const;
    /// From bytes of any origin. kInvalidArgument names the field and the place.
    static Result<Endpoint> deserialise(std::string_view bytes);
    /// "rank 3 on node7 (pid 812, shm,tcp)"
    [[nodiscard]] std::string to_string() const;
};

}  // namespace pccl::bootstrap
