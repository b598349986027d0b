// SPDX-License-Identifier: Apache-2.0

// Messages by which two processes open queue pairs for one-sided access, on the message channel of
// the streams between them. The initiator opens a pair when it first needs one, and again after the
// pair has failed:
//
//     initiator -- open: lane, its end -->  target    drops its old pair of that lane
//     initiator <-- opened: lane, its end, or why not -- target
//
// Immediates behind writes (rma/immediates.h) need receive requests of the target, which posts them
// again, and a count of those that have arrived when a pair has failed:
//
//     initiator <-- credit: lane, pair, immediates for which receive requests were posted again --
//     initiator -- close: lane, pair -->  target      ends the pair, takes what has arrived
//     initiator <-- closed: lane, pair, immediates that have arrived -- target
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <pccl/status.h>
#include "csrc/transport/link.h"
#include "csrc/transport/transport.h"
#include "csrc/transport/verbs/link_exchange.h"

namespace pccl::transport::verbs {

struct RmaMessage {
    enum class Kind : std::uint8_t { kOpen, kOpened, kClose, kClosed, kCredit };
    static constexpr std::size_t kLongest = 2 * kKiB;  // serialised

    Kind kind = Kind::kOpen;
    std::uint8_t lane = 0;         // below LinkEnd::kMostLanes
    std::uint32_t pair = 0;        // number of the lane's queue pair, from 1
    std::uint32_t immediates = 0;  // of kClosed and kCredit: so many from the first one on
    Status failure{};              // of kOpened: why the lane cannot be opened
    LaneEnd end{};                 // of kOpen and kOpened

    [[nodiscard]] bool has_end() const { return kind == Kind::kOpen || kind == Kind::kOpened; }
    [[nodiscard]] std::string serialise() const;
    /// Parses bytes of any origin. kInvalidArgument names the place.
    static Result<RmaMessage> parse(std::string_view bytes);
};

/// Messages on the message channel of one direction each; one thread at a time.
class RmaMailbox {
   public:
    RmaMailbox(SendLink& out, RecvLink& in) : out_(out), in_(in) {}

    /// Returns whether no more may be added: the peer takes none.
    [[nodiscard]] bool is_full() const { return unsent_.size() >= kMostUnsent; }
    void add(const RmaMessage& message);
    /// Sends what the stream takes.
    Status send();
    /// Returns the next message that has arrived, if there is one. kPeerLost, without a rank, for a
    /// malformed one.
    Result<std::optional<RmaMessage>> next();

   private:
    static constexpr std::size_t kMostUnsent = 64 * kKiB;

    SendLink& out_;
    RecvLink& in_;
    std::vector<std::byte> unsent_;
};

}  // namespace pccl::transport::verbs
