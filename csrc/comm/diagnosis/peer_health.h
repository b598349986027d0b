// How the ranks of a group fare, as one of them sees it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "csrc/base/clock.h"
#include "csrc/base/ids.h"
#include "csrc/comm/diagnosis/rank_status.h"
#include "csrc/runtime/flight/flight_recorder.h"

namespace pccl::comm {

struct PCCL_API PeerHealth {
    enum class State {
        kHere,    // it answered
        kSilent,  // it did not: it is stopped, or cut off
        kGone,    // its process has ended, or has left the group
    };

    Rank rank = 0;
    State state = State::kHere;
    std::string detail{};      // why the group is over there, or why it did not answer
    RankStatus rank_status{};  // of a rank that answered
    /// Since its last sign of life: an answer, or an operation that needed it and went well. Empty:
    /// there was none.
    std::optional<Duration> last_sign{};
};

[[nodiscard]] PCCL_API std::string_view to_string(PeerHealth::State state);

/// Whether `entry`, an operation of rank `self` that has ended well, needed something of `peer`.
[[nodiscard]] PCCL_API bool is_sign_of(Rank peer, const runtime::FlightEntry& entry, Rank self);

}  // namespace pccl::comm
