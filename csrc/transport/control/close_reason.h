// What a rank sends last: why it leaves its group, so that those who stay blame the right rank.
//
// A close reason has a fixed size. It lies in shared memory (the segment), or crosses a socket that
// carries nothing else; such a socket ends without one when the process was killed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "csrc/base/status.h"

namespace pccl::transport {

struct CloseReason {
    std::uint32_t code;  // StatusCode
    std::int32_t peer;   // the rank to blame, or kNoRank
    std::array<char, 504> text;
};
static_assert(sizeof(CloseReason) == 512 && std::is_trivially_copyable_v<CloseReason>);

/// Which rank receives the reason, and whose it is.
struct CloseContext {
    Rank self = 0;
    Rank leaver = 0;
    int ranks = 1;
};

/// The reason without what was said of those who told it before; long texts are cut.
[[nodiscard]] PCCL_API CloseReason close_reason_for(const Status& reason);

/// What `close_context.leaver` being gone means here: what it lost, found to differ or waited for
/// in vain is so for all; anything else makes itself the one that is lost. Any bytes are safe.
[[nodiscard]] PCCL_API Status why_gone(const CloseReason& close_reason,
                                       const CloseContext& close_context);

/// The same for a reason that came some other way.
[[nodiscard]] PCCL_API Status why_gone(const Status& reason, const CloseContext& close_context);

/// What fits into the purpose of a connection: told to ranks that have no link to receive it on.
struct Notice {
    std::uint32_t code = 0;
    std::int32_t peer = kNoRank;
};
[[nodiscard]] PCCL_API Notice notice_of(const Status& reason);
/// The reason behind a notice, from any bytes.
[[nodiscard]] PCCL_API Status reason_of(const Notice& notice);

/// Sends the close reason, as far as the socket takes it now, and shuts the socket down.
PCCL_API void send_close_reason(int socket, const Status& reason);

/// Receives from the other end of send_close_reason().
class PCCL_API CloseReasonReceiver {
   public:
    explicit CloseReasonReceiver(const CloseContext& close_context)
        : close_context_(close_context) {}

    /// ok while the peer is there. Once it is not, always the same status. A system call: for now
    /// and then.
    Status receive(int socket);
    /// Whether it is gone as nothing came from its host any more: nothing is on its way either.
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
