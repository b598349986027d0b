// Switches many devices from some circuits to others: all of them, or none.
//
//     connect, lock, read, prepare      while traffic runs; a failure changes nothing
//     drain                             what the caller does
//     commit                            dark from here; those that cannot take back come last
//     settle, read, light               until here; an <ok/> proves nothing, what is read does
//     confirm, save, release
//
// A failure from commit on rolls back: cancel, then read, then write what is still wrong. A switch
// that fell silent is in doubt: it takes an unconfirmed commit back by itself, so it is left alone
// for its confirm timeout, then read. Once one has confirmed, the others are rolled forward
// instead. What can be proven neither way is degraded, and named.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/export.h"
#include "csrc/cluster/drivers/driver.h"
#include "csrc/cluster/switch_options.h"

namespace pccl::cluster {

/// A switch that takes part.
struct SwitchMember {
    std::string name;
    Driver* driver = nullptr;
    Circuits from;
    Circuits to;
    Duration settle{};
    std::chrono::seconds confirm_timeout{10};
    bool copies_to_startup = false;
    /// As in Intent.
    std::function<bool(const Circuits&)> is_of_phase = nullptr;
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
    std::string discarded;  // what others had left in its candidate, and was thrown away
    /// Of a switched one that starts with something else than it runs: "copied", "not copied", or
    /// why copying failed; empty: it has no such startup.
    std::string startup;
};

struct Report {
    Ending ending = Ending::kRefused;
    Status reason;  // why it was not switched; of a degraded one, what to do
    std::vector<MemberReport> members;
    Duration total{};
    Duration dark{};  // from the first commit to the last proof that light is where it shall be
    /// Why the end is not in the audit log; ok: it is, or there is no file.
    Status unrecorded = Status::ok();
};

/// One in two steps, of which the caller does what is to be done between them. Blocks; each wait of
/// it is bounded by options or by the members' confirm timeouts.
class PCCL_API Transaction {
   public:
    Transaction(std::vector<SwitchMember> members, SwitchOptions options);
    /// One that is prepared, and neither committed nor left, is left.
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;

    /// All of it, with the options' drain between the steps, or no more than they want.
    [[nodiscard]] Report run();

    /// Connects, locks, reads and prepares all; no light moves. An error names the switch: then
    /// leave() what has been prepared.
    [[nodiscard]] Status prepare();
    /// What follows a prepare() that was ok, once.
    [[nodiscard]] Report commit();
    /// The same, where it is not to be committed: leaves all as they are. Ends with kPrepared, or
    /// with kRefused where there is a reason.
    [[nodiscard]] Report leave(const Status& why = Status::ok());

   private:
    class Steps;
    std::unique_ptr<Steps> steps_;
};

}  // namespace pccl::cluster
