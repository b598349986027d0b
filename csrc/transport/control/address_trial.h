// Which of a peer's addresses leads there: they are tried one after the other, without waiting for
// long until one has failed, by connections that prove the group's secret both ways and then end.
// An address that somebody else has, that nobody answers at, or that packets never reach, loses.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/transport/control/handshake.h"

namespace pccl::transport {

/// Whether a proven connection was made for a trial: nothing follows on it.
[[nodiscard]] bool is_trial(const Introduction& introduction);

struct AddressTrialOptions {
    std::vector<sys::Address> addresses{};  // the best first, at least one
    LinkRequest request{};
    Secret secret{};
    const Clock* clock = &system_clock();
};

/// One thread at a time.
class PCCL_API AddressTrial {
   public:
    /// News on the sockets end the sleeps of `watcher`, which outlives this; null: nobody's.
    static std::unique_ptr<AddressTrial> start(const AddressTrialOptions& options,
                                               SocketWatcher* watcher);

    /// Returns the first address at which the peer has proven itself; nullopt until then.
    /// kPeerLost, with what happened at each address, once all have failed, and where one has
    /// failed and no kernel has answered at the others for kSilence. Does not block.
    Result<std::optional<sys::Address>> advance();
    /// The next address is tried so long after the one before, or once that has failed.
    static constexpr Duration kHeadStart = std::chrono::milliseconds(20);
    static constexpr Duration kSilence = std::chrono::seconds(4);
    /// Returns when advance() may have something to do, after `longest` at the latest.
    void await_news(Duration longest) const;
    /// kTimeout, with what happened at each address.
    [[nodiscard]] Status timeout_error() const;

   private:
    struct Candidate {
        sys::Address address;
        std::unique_ptr<HandshakeClient> client{};  // while it is tried
        Status failure{};

        [[nodiscard]] bool has_failed() const { return !failure.is_ok(); }
    };

    AddressTrial(const AddressTrialOptions& options, SocketWatcher* watcher);
    /// True once the peer has proven itself.
    bool advance(Candidate& candidate);
    void start(Candidate& candidate);
    [[nodiscard]] bool may_be_found(Duration waited) const;
    /// "10.0.0.1:4000, through eth0: Connection refused; 10.1.0.1:4001, through eth1: no answer".
    [[nodiscard]] std::string describe() const;

    const AddressTrialOptions options_;
    SocketWatcher* const watcher_;
    const TimePoint begun_;
    std::vector<Candidate> candidates_;
};

/// The same from beginning to end, for callers that may wait.
[[nodiscard]] PCCL_API Result<sys::Address> find_address(const AddressTrialOptions& options,
                                                         Deadline deadline);

}  // namespace pccl::transport
