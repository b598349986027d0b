// How a rank fares in a group, as it tells another that asks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/abi/wire.h"
#include "csrc/base/status.h"
#include "csrc/comm/diagnosis/shrinking.h"
#include "csrc/comm/diagnosis/switching.h"
#include "csrc/transport/transport.h"

namespace pccl::comm {

/// A collective of another group that a thread of the same process waits for.
struct OtherGroupWait {
    transport::GroupId group{};
    std::string name{};           // of that group
    Rank rank = 0;                // of this process there
    std::string operation{};      // empty: it waits for none
    std::uint64_t sequence = 0;   // of that
    std::vector<Rank> awaited{};  // ranks there
    // Known to who asked; these do not travel:
    bool awaits_asker = false;
    bool lacks_asker = false;  // who has not called the operation
    bool is_known = true;      // false where a thread holds a group that this may be about
};

struct PCCL_API RankStatus {
    Status broken{};              // why the group cannot be used there; ok while it can
    Rank told_by = kNoRank;       // who knows all about that, where it has a short notice of it
    std::uint64_t sequence = 0;   // collectives submitted so far
    std::string operation{};      // the collective that it is in; empty: none
    std::vector<Rank> awaited{};  // the ranks that this waits for
    std::string gpu_operation{};  // what a kernel on its GPU waits in; empty: none does for long
    std::vector<Rank> gpu_awaited{};
    std::vector<abi::CollectiveHeader> recent{};  // the last collectives, at most kMostRecent
    static constexpr std::size_t kMostRecent = 16;
    OtherGroupWait other_group_wait{};
    Shrinking shrinking{};
    Switching switching{};
    // False where a thread holds a group so that `broken`, `operation`, `awaited` and
    // `other_group_wait` may lack what is there; it does not for long.
    bool is_whole = true;
    bool has_one_thread = true;  // no second thread of the process has waited for any group

    /// At most transport::kLongestAnswer bytes: long texts and lists are cut.
    [[nodiscard]] std::string serialise() const;
    /// From bytes of any origin; kInvalidArgument names the place.
    static Result<RankStatus> parse(std::string_view bytes);
};

}  // namespace pccl::comm
