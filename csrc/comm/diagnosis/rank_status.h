// SPDX-License-Identifier: Apache-2.0

// Status of a rank in a group, as it answers other ranks, and its health from another rank's view.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/abi/wire.h"
#include "csrc/comm/diagnosis/shrinking.h"
#include "csrc/comm/diagnosis/switching.h"
#include "csrc/transport/transport.h"

namespace pccl::comm {

/// A collective of another group that a thread of the same process waits for.
struct OtherGroupWait {
    transport::GroupId group{};
    std::string name{};           // name of that group
    Rank rank = 0;                // rank of this process in that group
    std::string operation{};      // empty: it waits for none
    std::uint64_t sequence = 0;   // sequence number of the operation
    std::vector<Rank> awaited{};  // ranks of that group
    // The requesting rank sets these; they are not serialised:
    bool awaits_requester = false;
    bool lacks_requester = false;  // the requesting rank has not called the operation
    bool is_known = true;  // false if a thread holds the lock of a group that may be concerned
};

struct PCCL_API RankStatus {
    Status broken{};              // why the group is unusable there; ok while it is usable
    Rank reported_by = kNoRank;   // rank with the full reason, if this one has a short notice of it
    std::uint64_t sequence = 0;   // collectives submitted so far
    std::string operation{};      // the collective in progress; empty: none
    std::vector<Rank> awaited{};  // the ranks that it waits for
    /// Operation of a kernel that has waited for long on its GPU; empty: none.
    std::string gpu_operation{};
    std::vector<Rank> gpu_awaited{};
    std::vector<abi::CollectiveHeader> recent{};  // the last collectives, at most kMostRecent
    static constexpr std::size_t kMostRecent = 16;
    OtherGroupWait other_group_wait{};
    Shrinking shrinking{};
    Switching switching{};
    // False if a thread holds a group's lock, so that `broken`, `operation`, `awaited` and
    // `other_group_wait` may be incomplete. This is temporary.
    bool is_whole = true;
    bool has_one_thread = true;  // no second thread of the process has waited for any group

    /// Serialises it to at most transport::kLongestAnswer bytes: long texts and lists are
    /// truncated.
    [[nodiscard]] std::string serialise() const;
    /// Parses untrusted bytes; kInvalidArgument names the position.
    static Result<RankStatus> parse(std::string_view bytes);
};

/// Health of a rank of a group, from the view of another rank.
struct PCCL_API SurveyedPeer {
    enum class Liveness {
        kHere,    // it answered
        kSilent,  // it did not answer: it is stopped, or disconnected
        kGone,    // its process has ended, or has left the group
    };

    Rank rank = 0;
    Liveness state = Liveness::kHere;
    std::string detail{};      // why the group is over there, or why it did not answer
    RankStatus rank_status{};  // set if it answered
    /// Time since its last sign of life: an answer, or a successful operation that required it.
    /// Empty: there was none.
    std::optional<Duration> last_sign{};
};

[[nodiscard]] PCCL_API std::string_view to_string(SurveyedPeer::Liveness state);

}  // namespace pccl::comm
