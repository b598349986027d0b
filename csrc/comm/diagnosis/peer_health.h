// SPDX-License-Identifier: Apache-2.0

// Health of a rank of a group, from the view of another rank.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <pccl/deadline.h>
#include "csrc/base/ids.h"
#include "csrc/comm/diagnosis/rank_status.h"
#include "csrc/runtime/flight/flight_recorder.h"

namespace pccl::comm {

struct PCCL_API PeerHealth {
    enum class State {
        kHere,    // it answered
        kSilent,  // it did not answer: it is stopped, or disconnected
        kGone,    // its process has ended, or has left the group
    };

    Rank rank = 0;
    State state = State::kHere;
    std::string detail{};      // why the group is over there, or why it did not answer
    RankStatus rank_status{};  // set if it answered
    /// Time since its last sign of life: an answer, or a successful operation that required it.
    /// Empty: there was none.
    std::optional<Duration> last_sign{};
};

[[nodiscard]] PCCL_API std::string_view to_string(PeerHealth::State state);

/// Returns whether `entry`, a successful operation of rank `self`, required `peer`.
[[nodiscard]] PCCL_API bool is_sign_of(Rank peer, const runtime::FlightEntry& entry, Rank self);

}  // namespace pccl::comm
