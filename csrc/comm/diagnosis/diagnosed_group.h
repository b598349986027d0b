// SPDX-License-Identifier: Apache-2.0

// Interface of a group for its diagnosis.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/collective/awaited.h"
#include "csrc/comm/diagnosis/diagnosis_timing.h"
#include "csrc/comm/diagnosis/peer_view.h"
#include "csrc/comm/diagnosis/wait_for_graph.h"
#include "csrc/runtime/flight/group_usage.h"
#include "csrc/runtime/peer_directory.h"
#include "csrc/runtime/runtime.h"

namespace pccl::comm {

/// Reason why a group is over; ok while it is not.
struct GroupEnd {
    Status cause{};  // the status that other ranks receive
    Status shown{};  // the status that users of this group receive
};

/// Adds to `cause` the group, `operation` unless empty, the process of the blamed rank, and advice.
[[nodiscard]] Status explained(const Status& cause, const runtime::PeerDirectory& peers,
                               std::string_view operation = {});

class DiagnosedGroup {
   public:
    virtual ~DiagnosedGroup() = default;

    // These are thread-safe:

    /// Returns the number of collectives called so far.
    [[nodiscard]] virtual std::uint64_t sequence() const = 0;
    [[nodiscard]] virtual bool is_over() const = 0;
    /// Returns a flag that is set when the user ends the group: no thread waits for another rank's
    /// answer any more.
    [[nodiscard]] virtual const std::atomic<bool>& aborted() const = 0;
    /// Returns the lock under which the group makes progress. A thread that creates the group holds
    /// it for long: the acceptor must only use lock_soon().
    [[nodiscard]] virtual std::mutex& mutex() const = 0;
    /// Returns the counters of this rank's collectives and waits.
    [[nodiscard]] virtual const runtime::GroupUsage& usage() const = 0;

    // These require the lock:

    /// Returns why the group is over. It changes once, before is_over() does.
    [[nodiscard]] virtual const GroupEnd& ended() const = 0;
    /// Returns the collective at the front of the queue; nullopt if there is none.
    [[nodiscard]] virtual std::optional<Stall> stall() const = 0;
    /// Returns whether that collective runs over links, or messages are pending, which do.
    [[nodiscard]] virtual bool uses_links() const = 0;
    /// Returns the ranks that it and the pending messages wait for.
    [[nodiscard]] virtual AwaitedRanks awaited() const = 0;

    // These must be called without the lock:

    /// Returns ok, or the error that ended the group.
    [[nodiscard]] virtual Status health() const = 0;
    /// Returns ok, or why this waiting thread has to stop waiting.
    [[nodiscard]] virtual Status check_interrupt() const = 0;
    /// Makes progress on operations. Returns true if anything moved.
    virtual bool progress() = 0;
    /// Ends the group and all its operations, unless it is over or HangDiagnosis::reconsidered()
    /// refutes `why`.
    virtual void end(const Status& why) = 0;
};

/// Members that the parts of a diagnosis share. All outlive them.
struct DiagnosisSubject {
    DiagnosedGroup& group;
    PeerView& peers;
    runtime::Runtime& runtime;
    std::uint32_t flight_group = 0;  // its operations are recorded under this id
    DiagnosisTiming timing{};
};

/// Returns the lock, or an unlocked one after 20 ms: its owner may hold it for long.
[[nodiscard]] std::unique_lock<std::mutex> lock_soon(const DiagnosedGroup& group);
/// Makes progress, and ends the group unless something moved: data that a rank sent before it left
/// still counts.
void give_up(DiagnosedGroup& group, const Status& why);

/// Returns the awaited ranks without any-source entries.
[[nodiscard]] std::vector<Rank> ranks_of(const AwaitedRanks& awaited);

}  // namespace pccl::comm
