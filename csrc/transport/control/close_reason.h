// SPDX-License-Identifier: Apache-2.0

// Last message of a rank: the reason why it leaves its group, so that the other ranks blame the
// right one.
//
// A close reason has a fixed size. It lies in shared memory (the segment), or crosses a socket that
// carries nothing else; such a socket ends without one when the process was killed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <pccl/status.h>

namespace pccl::transport {

struct CloseReason {
    std::uint32_t code;  // StatusCode
    std::int32_t peer;   // the rank to blame, or kNoRank
    std::array<char, 504> text;
};
static_assert(sizeof(CloseReason) == 512 && std::is_trivially_copyable_v<CloseReason>);

/// The ranks that receive and send the reason.
struct CloseContext {
    Rank self = 0;
    Rank leaver = 0;
    int ranks = 1;
};

/// Returns the reason without the prefixes of earlier senders; long texts are cut.
[[nodiscard]] PCCL_API CloseReason close_reason_for(const Status& reason);

/// Returns the error that the departure of `close_context.leaver` means here. If the leaver lost a
/// rank, found a mismatch or waited for a rank in vain, that applies to all ranks; after any other
/// reason the leaver itself is the lost rank. Any bytes are safe.
[[nodiscard]] PCCL_API Status why_gone(const CloseReason& close_reason,
                                       const CloseContext& close_context);

/// Returns the error for a reason that came some other way.
[[nodiscard]] PCCL_API Status why_gone(const Status& reason, const CloseContext& close_context);

/// Reason that fits into the purpose of a connection: for ranks that have no link to receive it on.
struct Notice {
    std::uint32_t code = 0;
    std::int32_t peer = kNoRank;
};
[[nodiscard]] PCCL_API Notice notice_of(const Status& reason);
/// Returns the reason that a notice contains, from any bytes.
[[nodiscard]] PCCL_API Status reason_of(const Notice& notice);

/// Sends the close reason, as far as the socket takes it now, and shuts the socket down.
PCCL_API void send_close_reason(int socket, const Status& reason);

/// Receiver at the other end of send_close_reason().
class PCCL_API CloseReasonReceiver {
   public:
    explicit CloseReasonReceiver(const CloseContext& close_context)
        : close_context_(close_context) {}

    /// Returns ok while the peer is there, and always the same error after that. Makes a system
    /// call: call it rarely.
    Status receive(int socket);
    /// Returns whether the connection ended because the peer's host is silent: nothing is in flight
    /// then.
    [[nodiscard]] bool is_silent() const { return is_silent_; }
    [[nodiscard]] const CloseContext& close_context() const { return close_context_; }

   private:
    CloseContext close_context_;
    CloseReason close_reason_{};
    std::size_t received_ = 0;
    bool is_silent_ = false;
    Status gone_;
};

}  // namespace pccl::transport
