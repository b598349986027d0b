// SPDX-License-Identifier: Apache-2.0

// Messages by which two processes open queue pairs for one-sided access, on the message channel of
// the streams between them. The initiator opens a pair when it first needs one, and again after the
// pair has failed:
//
//     initiator -- open: lane, its end -->  target    drops its old pair of that lane
//     initiator <-- opened: lane, its end, or why not -- target
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
    enum class Kind : std::uint8_t { kOpen, kOpened };
    static constexpr std::size_t kLongest = 2 * kKiB;  // serialised

    Kind kind = Kind::kOpen;
    std::uint8_t lane = 0;  // below LinkEnd::kMostLanes
    Status failure{};       // of kOpened: why the lane cannot be opened
    LaneEnd end{};

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
