// Switches many devices from some circuits to others: all of them, or none.
//
//     connect, lock, read, prepare      while traffic runs; a failure changes nothing
//     drain                             the caller's
//     commit                            dark from here; those that cannot take back come last
//     settle, read, light               until here; an <ok/> proves nothing, what is read does
//     confirm, release
//
// A failure from commit on rolls back: cancel, then read, then write what is still wrong. A switch
// that fell silent is in doubt: it takes an unconfirmed commit back by itself, so it is left alone
// for its confirm timeout, then read. Once one has confirmed, the others are rolled forward
// instead. What can be proven neither way is degraded, and named.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/export.h"
#include "csrc/cluster/drivers/driver.h"

namespace pccl::cluster {

/// A switch that takes part.
struct Member {
    std::string name;
    Driver* driver = nullptr;
    Circuits from;
    Circuits to;
    Duration settle{};
    std::chrono::seconds confirm_timeout{10};
};

struct TransactionOptions {
    Duration step_timeout = std::chrono::seconds(5);  // of one step, on all switches
    bool dry_run = false;                             // no further than prepare
    /// Called when all are prepared and none has committed; an error ends the transaction.
    std::function<Status()> drain = {};
    /// Asked between steps; an error is a failure of that step.
    std::function<Status()> interrupted = {};
    const Clock* clock = &system_clock();  // for settling, and for waiting on confirm timeouts
};

enum class Ending {
    kSwitched,
    kPrepared,    // a dry run: it would have been switched
    kRefused,     // nothing was touched
    kRolledBack,  // all are as they were
    kDegraded,    // some are neither
};
[[nodiscard]] PCCL_API std::string_view to_string(Ending ending);

struct StepTime {
    Step step = Step::kConnect;
    Duration took{};
};

struct MemberReport {
    std::string name;
    Status status;   // of its last step that failed; ok: none
    Circuits found;  // when it was last read
    std::vector<StepTime> steps;
    std::vector<Exchange> exchanges;
};

struct Report {
    Ending ending = Ending::kRefused;
    Status reason;  // why it was not switched; of a degraded one, what to do
    std::vector<MemberReport> members;
    Duration total{};
    Duration dark{};  // from the first commit to the last proof that light is where it shall be
};

/// Blocks; each wait of it is bounded by options or by the members' confirm timeouts.
[[nodiscard]] PCCL_API Report run_transaction(const std::vector<Member>& members,
                                              const TransactionOptions& options = {});

}  // namespace pccl::cluster
