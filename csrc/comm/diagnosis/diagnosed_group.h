// A group, as its diagnosis sees it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/base/status.h"
#include "csrc/collective/awaited.h"
#include "csrc/comm/diagnosis/diagnosis_timing.h"
#include "csrc/comm/diagnosis/peer_view.h"
#include "csrc/comm/diagnosis/wait_for_graph.h"
#include "csrc/runtime/runtime.h"

namespace pccl::comm {

/// Why a group is over; ok while it is not.
struct GroupEnd {
    Status cause{};  // as other ranks are told
    Status shown{};  // as users of this one see it
};

class DiagnosedGroup {
   public:
    virtual ~DiagnosedGroup() = default;

    // From any thread:

    /// Collectives called so far.
    [[nodiscard]] virtual std::uint64_t sequence() const = 0;
    [[nodiscard]] virtual bool is_over() const = 0;
    /// Set when its user ends the group: nobody waits for another rank's answer any more.
    [[nodiscard]] virtual const std::atomic<bool>& aborted() const = 0;
    /// The lock under which it moves. Whoever makes the group holds it for long: the acceptor takes
    /// it by lock_soon() alone.
    [[nodiscard]] virtual std::mutex& mutex() const = 0;

    // Under the lock:

    /// It changes once, before is_over() does.
    [[nodiscard]] virtual const GroupEnd& ended() const = 0;
    /// The collective at the front; nullopt where there is none.
    [[nodiscard]] virtual std::optional<Stall> stall() const = 0;
    /// Whether that goes over links, or messages are under way, which do.
    [[nodiscard]] virtual bool uses_links() const = 0;
    /// Whom that and the messages under way wait for.
    [[nodiscard]] virtual AwaitedRanks awaited() const = 0;

    // Not under it:

    /// ok, or the error that ended it.
    [[nodiscard]] virtual Status health() const = 0;
    /// ok, or why this thread, which waits, is to wait no longer.
    [[nodiscard]] virtual Status check_interrupt() const = 0;
    /// Carries operations on; true when something moved.
    virtual bool progress() = 0;
    /// Ends the group and all its operations, unless it is over, or `why` turns out to be wrong
    /// (HangDiagnosis::reconsidered).
    virtual void end(const Status& why) = 0;
};

/// What the parts of a diagnosis share, all of which outlives them.
struct DiagnosisSubject {
    DiagnosedGroup& group;
    PeerView& peers;
    runtime::Runtime& runtime;
    std::uint32_t flight_group = 0;  // under which its operations are recorded
    DiagnosisTiming timing{};
};

/// The lock, or not after 20 ms: who holds it may be long in the middle of something.
[[nodiscard]] std::unique_lock<std::mutex> lock_soon(const DiagnosedGroup& group);
/// Ends the group, unless it moves on: what a rank did before it left still counts.
void give_up(DiagnosedGroup& group, const Status& why);

/// Without those that may be any rank.
[[nodiscard]] std::vector<Rank> ranks_of(const AwaitedRanks& awaited);

}  // namespace pccl::comm
