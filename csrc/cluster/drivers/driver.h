// What a transaction asks of a switch, whatever protocol that speaks.
//
// A step is begun and carried on; nothing blocks, so that one thread serves all switches. Adding a
// protocol is implementing this in a file beside the others, on a room of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/cluster/model/circuits.h"

namespace pccl::cluster {

enum class Step {
    kConnect,  // or nothing, where there is a session
    kLock,     // others out, and leftovers away
    kRead,     // what is connected; circuits() then shows it
    kPrepare,  // hand the change over and have it checked; no light moves
    kCommit,   // light moves; undone by the switch itself unless confirmed, if it can
    kLight,    // through which circuits light comes; dark() then shows the others
    kConfirm,  // for good
    kCancel,   // take an unconfirmed commit back
    kWrite,    // from what kRead has shown to `to`, for good
    kSave,     // keep it for the next start of the switch, where that is a step of its own
    kRelease,  // leftovers away, others in
};
[[nodiscard]] PCCL_API std::string_view to_string(Step step);

/// How far a switch takes part in a transaction.
enum class Commitment {
    kConfirmed,  // takes a commit back by itself, unless it is confirmed
    kCandidate,  // checks before it commits; taking back is a change of its own
    kImmediate,  // neither: a change is in force as it is written
};
[[nodiscard]] PCCL_API std::string_view to_string(Commitment commitment);

struct Intent {
    Circuits from;
    Circuits to;
    std::chrono::seconds confirm_timeout{10};
    /// Whether a phase of the cluster has these circuits on this switch: another controller that
    /// died before it committed may have left them in the candidate. Null: unknown.
    std::function<bool(const Circuits&)> is_of_phase = nullptr;
    /// kLock throws away what others have left in the candidate.
    bool discards_candidate = false;
};

/// A request and what came of it, for the audit log. No secrets.
struct Exchange {
    std::string operation;
    std::uint64_t message_id = 0;
    Duration took{};
    std::string outcome;  // "ok", or the error
};

/// What ends the wait for the next step; fd -1: look again, soon.
struct Readiness {
    int fd = -1;
    bool input = false;
    bool output = false;
};

/// One thread at a time. A step that fails with kTimeout, kPeerLost or kUnavailable while it
/// connects leaves in doubt whether it was done; after all other errors it was not.
class PCCL_API Driver {
   public:
    virtual ~Driver() = default;

    /// Of a switch that has been connected.
    [[nodiscard]] virtual Commitment commitment() const = 0;
    virtual void begin(Step step, const Intent& intent) = 0;
    /// True once the step is done.
    [[nodiscard]] virtual Result<bool> advance() = 0;
    [[nodiscard]] virtual Readiness readiness() const = 0;
    /// As the last kRead showed them.
    [[nodiscard]] virtual const Circuits& circuits() const = 0;
    /// As the last kLight showed them: ingress ports of circuits without light, in ascending order.
    /// None where the switch does not tell.
    [[nodiscard]] virtual const std::vector<int>& dark() const = 0;
    /// Whether the switch, which has been connected, starts with something else than it runs,
    /// unless kSave follows a change.
    [[nodiscard]] virtual bool has_startup() const = 0;
    /// What kLock has thrown away of others, as people read it; empty: nothing. Since the last
    /// time.
    [[nodiscard]] virtual std::string take_discarded() = 0;
    /// What a step waits for, where that is not the switch itself; empty: nothing else.
    [[nodiscard]] virtual std::string awaited() const { return {}; }
    /// Gives the step up, and the session with it.
    virtual void abandon(const Status& why) = 0;
    /// Since the last time.
    [[nodiscard]] virtual std::vector<Exchange> take_exchanges() = 0;
};

}  // namespace pccl::cluster
