// SPDX-License-Identifier: Apache-2.0

// Trial of a peer's addresses: it tries one after the other, with a short head start each, by
// connections that prove the group's secret both ways and then end. An address loses if it belongs
// to another process, if nothing answers there, or if packets never reach it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/transport/control/handshake.h"

namespace pccl::transport {

/// Returns whether an authenticated connection was made for a trial: nothing follows on it.
[[nodiscard]] bool is_trial(const Introduction& introduction);

struct AddressTrialOptions {
    std::vector<sys::Address> addresses{};  // the best first, at least one
    LinkRequest request{};
    Secret secret{};
    const Clock* clock = &system_clock();
};

/// Trial in progress. One thread at a time.
class PCCL_API AddressTrial {
   public:
    /// Starts the trial. Events on the sockets end the sleeps of `watcher`, which outlives this;
    /// null: none.
    static std::unique_ptr<AddressTrial> start(const AddressTrialOptions& options,
                                               SocketWatcher* watcher);

    /// Returns the first address at which the peer has proven itself; nullopt until then.
    /// kPeerLost, with the outcome at each address, once all have failed, or once one has failed
    /// and no kernel has answered at the others for kSilence. kResourceExhausted instead where this
    /// process cannot try an address, for example without descriptors. Does not block.
    Result<std::optional<sys::Address>> advance();
    /// Delay from the start of one attempt to the next; the next starts at once if the attempt
    /// fails.
    static constexpr Duration kHeadStart = std::chrono::milliseconds(20);
    static constexpr Duration kSilence = std::chrono::seconds(4);
    /// Waits until advance() may have something to do, at most `longest`.
    void await_news(Duration longest) const;
    /// Returns a kTimeout with the outcome at each address.
    [[nodiscard]] Status timeout_error() const;

   private:
    struct Candidate {
        sys::Address address;
        std::unique_ptr<HandshakeClient> client{};  // set during the attempt
        Status failure{};

        [[nodiscard]] bool has_failed() const { return !failure.is_ok(); }
    };

    AddressTrial(const AddressTrialOptions& options, SocketWatcher* watcher);
    /// Returns true once the peer has proven itself.
    bool advance(Candidate& candidate);
    void start(Candidate& candidate);
    [[nodiscard]] bool may_be_found(Duration waited) const;
    /// Returns "10.0.0.1:4000, through eth0: Connection refused; 10.1.0.1:4001, through eth1: no
    /// answer".
    [[nodiscard]] Status cause() const;
    [[nodiscard]] std::string describe() const;

    const AddressTrialOptions options_;
    SocketWatcher* const watcher_;
    const TimePoint begun_;
    std::vector<Candidate> candidates_;
};

/// Runs a trial from beginning to end, for callers that may block.
[[nodiscard]] PCCL_API Result<sys::Address> find_address(const AddressTrialOptions& options,
                                                         Deadline deadline);

}  // namespace pccl::transport
