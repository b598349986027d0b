// What a rank says last: why it leaves its group, so that those who stay blame the right rank.
//
// A farewell has a fixed size. It lies in shared memory (the segment), or crosses a socket that
// carries nothing else; such a socket ends without one when the process was killed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "csrc/base/status.h"

namespace pccl::transport {

struct Farewell {
    std::uint32_t code;  // StatusCode
    std::int32_t peer;   // the rank to blame, or kNoRank
    std::array<char, 504> text;
};
static_assert(sizeof(Farewell) == 512 && std::is_trivially_copyable_v<Farewell>);

/// Who hears of whom.
struct Departure {
    Rank self = 0;
    Rank leaver = 0;
    int ranks = 1;
};

/// The reason without what was said of those who told it before; long texts are cut.
[[nodiscard]] PCCL_API Farewell farewell_for(const Status& reason);

/// What `departure.leaver` being gone means here: what it lost, found to differ or waited for in
/// vain is so for all; anything else makes itself the one that is lost. Any bytes are safe.
[[nodiscard]] PCCL_API Status why_gone(const Farewell& farewell, const Departure& departure);

/// The same for a reason that came some other way.
[[nodiscard]] PCCL_API Status why_gone(const Status& reason, const Departure& departure);

/// What fits into the purpose of a connection: told to ranks that have no link to hear it on.
struct Notice {
    std::uint32_t code = 0;
    std::int32_t peer = kNoRank;
};
[[nodiscard]] PCCL_API Notice notice_of(const Status& reason);
/// The reason behind a notice, from any bytes.
[[nodiscard]] PCCL_API Status reason_of(const Notice& notice);

/// Sends the farewell, as far as the socket takes it now, and shuts the socket down.
PCCL_API void say_farewell(int socket, const Status& reason);

/// Hears the other end of say_farewell().
class PCCL_API FarewellListener {
   public:
    explicit FarewellListener(const Departure& departure) : departure_(departure) {}

    /// ok while the peer is there. Once it is not, always the same status. A system call: for now
    /// and then.
    Status listen(int socket);
    /// Whether it is gone as nothing came from its host any more: nothing is on its way either.
    [[nodiscard]] bool is_silent() const { return is_silent_; }
    [[nodiscard]] const Departure& departure() const { return departure_; }

   private:
    Departure departure_;
    Farewell farewell_{};
    std::size_t received_ = 0;
    bool is_silent_ = false;
    Status gone_;
};

}  // namespace pccl::transport
