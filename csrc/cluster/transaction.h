// SPDX-License-Identifier: Apache-2.0

// Transaction that switches many devices from some circuits to others: all of them, or none.
//
//     connect, lock, read, prepare      while traffic continues; a failure changes nothing
//     drain                             the action of the caller
//     commit                            dark from here; switches without rollback come last
//     settle, read, light               until here; proof is the reading, not an <ok/>
//     confirm, save, release
//
// A failure from commit on rolls back: cancel, then read, then write if circuits are still wrong. A
// switch that stopped responding is in doubt: it reverts an unconfirmed commit by itself, so the
// transaction waits for its confirm timeout and then reads it. Once one switch has confirmed, the
// others are rolled forward instead. A switch that can be proven in neither state is degraded and
// named in the report.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <pccl/cluster.h>
#include <pccl/deadline.h>
#include <pccl/export.h>
#include "csrc/cluster/drivers/driver.h"

namespace pccl::cluster {

/// Switch that takes part.
struct SwitchMember {
    std::string name;
    SwitchDriver* driver = nullptr;
    Circuits from;
    Circuits to;
    Duration settle{};
    std::chrono::seconds confirm_timeout{10};
    bool copies_to_startup = false;
    /// As in Intent.
    std::function<bool(const Circuits&)> is_of_phase = nullptr;
};

/// Transaction in two steps, with the caller's action between them. Blocks; each wait is bounded by
/// the options or by the members' confirm timeouts.
class PCCL_API Transaction {
   public:
    Transaction(std::vector<SwitchMember> members, SwitchOptions options);
    /// Leaves a transaction that was not ended.
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;

    /// Runs the whole transaction, with the options' drain between the steps; a dry run stops after
    /// prepare().
    [[nodiscard]] Report run();

    /// Connects, locks, reads and prepares all; no light moves. An error contains the switch; then
    /// call leave().
    [[nodiscard]] Status prepare();
    /// Publishes the progress "drain": the caller acts until commit() or leave().
    void begin_drain();
    /// Commits after a successful prepare(); call it once.
    [[nodiscard]] Report commit();
    /// Ends the transaction without a commit; all switches keep their circuits. The ending is
    /// kPrepared, or kRefused if `why` is an error.
    [[nodiscard]] Report leave(const Status& why = Status::ok());

   private:
    class Steps;
    std::unique_ptr<Steps> steps_;
};

}  // namespace pccl::cluster
