// SPDX-License-Identifier: Apache-2.0

// Incarnations of the peer sessions: for each name, the current one and those that it has
// displaced.
//
// Incarnations are random numbers, so two of them have no order except their arrival: the current
// one is the last that was loaded, or that sent its first hello. A displaced one may still run (it
// was slow, or cut off for a while), and must not displace its successor by calling again.
//
// Names without a connection are at rest; the last kMostAtRest of them are kept. For those that the
// program has not loaded, not even the address is kept: such a peer calls again and brings it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "csrc/p2p/connection/connection_info.h"

namespace pccl::p2p {

/// Not thread-safe.
class PCCL_API PeerIncarnations {
   public:
    /// Most displaced incarnations that are kept for each name.
    static constexpr std::size_t kMostDisplaced = 64;
    /// Most names that are kept after their last connection has ended.
    static constexpr std::size_t kMostAtRest = 512;

    /// Makes this incarnation the current one. The program's choice wins, even if that incarnation
    /// was displaced.
    void load(const ConnectionInfo& peer);
    /// Makes this incarnation the current one. Returns kAborted, for the calling session, where
    /// another incarnation has displaced it.
    Status accept_hello(const ConnectionInfo& peer);
    /// Records that a known name has a connection.
    void wake(const std::string& name);
    /// Records that the last connection to the current incarnation has ended. Returns the name that
    /// is dropped to make room, if any.
    std::optional<std::string> rest(const std::string& name);
    /// Returns the info of the current incarnation, or null for an unknown name. It has neither
    /// secret nor address where the name cannot_be_called().
    [[nodiscard]] const ConnectionInfo* find(const std::string& name) const;
    /// Returns whether a known name was not loaded here and its last connection has ended.
    [[nodiscard]] bool cannot_be_called(const std::string& name) const;

   private:
    struct Known {
        ConnectionInfo meant;
        bool is_loaded = false;
        bool is_reachable = true;
        std::uint64_t rest = 0;                  // key in at_rest_; 0: none
        std::vector<std::uint64_t> displaced{};  // incarnations, the latest last

        void replace_by(const ConnectionInfo& peer);
    };
    Known& learn(const ConnectionInfo& peer);
    void wake(Known& known);

    std::map<std::string, Known> known_;
    std::map<std::uint64_t, std::string> at_rest_;  // names, the longest at rest first
    std::uint64_t rests_ = 0;                       // so far
};

}  // namespace pccl::p2p
