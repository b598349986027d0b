// SPDX-License-Identifier: Apache-2.0

// Controller of phases: one process that owns the cluster file and the sessions to the switches.
//
//     register_phase         adds the links of a phase to those of the file
//     register_transform     sets the circuits that carry them, coming from another phase
//     pre_commit             makes all switches lock and check the change; no light moves
//     commit                 all switches perform it, are read and confirm, or none does
//     switch_phase           both, with a drain by the caller in between
//     Switch: command        queues a change of one switch, for a commit of that, or of all
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pccl/cluster.h>
#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/cluster/audit_log.h"
#include "csrc/cluster/drivers/make_driver.h"
#include "csrc/cluster/inspection.h"
#include "csrc/cluster/model/description.h"
#include "csrc/cluster/phase_book.h"
#include "csrc/cluster/plan.h"
#include "csrc/cluster/switch.h"
#include "csrc/cluster/transaction.h"

namespace pccl::cluster {

/// Not thread-safe. Sessions stay open between calls.
class PCCL_API ClusterContext {
   public:
    [[nodiscard]] static Result<std::unique_ptr<ClusterContext>> open(
        Description description, const MakeDriver& make = make_driver);
    /// Loads a cluster file in JSON.
    [[nodiscard]] static Result<std::unique_ptr<ClusterContext>> load(
        const std::string& path, const MakeDriver& make = make_driver);
    /// Discards a prepared transaction.
    ~ClusterContext();
    ClusterContext(const ClusterContext&) = delete;
    ClusterContext& operator=(const ClusterContext&) = delete;

    [[nodiscard]] const Description& description() const { return phases_.description(); }
    /// Adds a phase. kInvalidArgument: it is invalid; the message contains the rule.
    [[nodiscard]] Status register_phase(Phase phase);
    /// Sets the circuits between two phases in place of circuits_of(), for instance so that fewer
    /// circuits move. kInvalidArgument: a phase does not exist, or the transform of the first
    /// phase's circuits does not carry the links of the second.
    [[nodiscard]] Status register_transform(const std::string& from, const std::string& to,
                                            Transform transform);
    /// Returns the plan from one phase to another; empty `from`: nothing is connected. Does not
    /// contact switches.
    [[nodiscard]] Result<Plan> plan(const std::string& from, const std::string& to) const;

    /// Returns a switch by name. kInvalidArgument: it does not exist, or is not optical.
    [[nodiscard]] Result<Switch*> switch_called(const std::string& name);
    [[nodiscard]] Result<OpticalSwitch*> optical_switch(const std::string& name);

    /// Returns the last proven phase; empty if there is none, or if the circuits match no phase.
    [[nodiscard]] const std::string& current() const { return current_; }
    /// Returns the number of changes of the connected circuits.
    [[nodiscard]] std::uint32_t generation() const { return generation_; }
    /// Returns an error, with the reason, if the state of a switch could not be proven; only
    /// adoption clears it.
    [[nodiscard]] Status degraded() const;

    /// Reads all switches without changing them.
    [[nodiscard]] Inspection inspect(Duration timeout, const Interrupted& interrupted = {});
    /// Reads all switches and makes the phase that they show the current one; clears the degraded
    /// state. kMismatch: they show no phase; the message contains the difference to the nearest
    /// one.
    [[nodiscard]] Status adopt(Duration timeout, const Interrupted& interrupted = {});
    /// Takes over from a controller that ended during a switch. Waits until the switches have
    /// reverted unconfirmed commits, then adopts the phase that they show and returns it; empty:
    /// all are dark. Errors are those of adopt() and of `options.interrupted`.
    [[nodiscard]] Result<std::string> inherit(const SwitchOptions& options);

    /// Makes all switches lock, store and check the change to the phase, like switch_phase() before
    /// its commit. Traffic continues. On an error, which contains the switch, nothing stays
    /// prepared.
    [[nodiscard]] Status pre_commit(const std::string& phase, const SwitchOptions& options = {});
    /// Prepares the commands that are queued at switches; at least one must be queued.
    [[nodiscard]] Status pre_commit(const SwitchOptions& options = {});
    /// Prepares as pre_commit() does, and returns the report: kPrepared, or kRefused after an error
    /// of a switch. Returns an error if no transaction was begun.
    [[nodiscard]] Result<Report> prepare(const std::string& phase, const SwitchOptions& options);
    /// Commits the prepared transaction on all switches, or rolls it back on all. kInvalidArgument:
    /// nothing is prepared.
    [[nodiscard]] Result<Report> commit();
    /// Discards the prepared transaction. kInvalidArgument: nothing is prepared.
    [[nodiscard]] Status discard();
    /// Discards it for the reason `why`, and returns the report: kPrepared if `why` is ok,
    /// otherwise kRefused.
    [[nodiscard]] Result<Report> leave(const Status& why);

    /// Switches from the current phase or, if there is none, from the phase that the switches show.
    /// If `phase` is the current one, reads and proves it. Returns an error if no transaction was
    /// begun.
    [[nodiscard]] Result<Report> switch_phase(const std::string& phase,
                                              const SwitchOptions& options = {});

    /// Returns the events of this process, oldest first.
    [[nodiscard]] std::vector<std::string> audit() const { return audit_.lines(); }

   private:
    struct Commanded {
        Switch* who = nullptr;
        std::size_t commands = 0;
    };
    /// Goal of a transaction.
    struct Goal {
        std::string phase;  // empty: queued commands
        CircuitsBySwitch from;
        CircuitsBySwitch to;
        std::vector<Commanded> commanded = {};
    };
    struct Prepared {
        Goal goal;
        std::unique_ptr<Transaction> transaction;
    };

    ClusterContext(Description description, AuditLog audit)
        : phases_(std::move(description)), audit_(std::move(audit)) {}

    [[nodiscard]] Status make_switches(const MakeDriver& make);
    [[nodiscard]] Status check_nothing_prepared() const;
    [[nodiscard]] Status await_confirm_timeouts(const SwitchOptions& options) const;
    [[nodiscard]] Status adopt(const Inspection& inspection);

    /// Returns the circuits of all switches; nullopt if a switch is not proven.
    [[nodiscard]] std::optional<CircuitsBySwitch> proven() const;
    /// Returns the actual circuits of the phase if it is the current one, or else its default ones.
    [[nodiscard]] Result<CircuitsBySwitch> circuits_in(const Phase& phase) const;
    [[nodiscard]] std::string phase_with(const CircuitsBySwitch& circuits) const;

    /// Returns the proven circuits, or those that the switches show. kMismatch: they are neither a
    /// phase nor dark, unless `may_be_any`.
    [[nodiscard]] Result<CircuitsBySwitch> origin(const SwitchOptions& options, bool may_be_any);
    [[nodiscard]] Result<Goal> goal_of(const std::string& phase, const SwitchOptions& options);
    [[nodiscard]] Result<Goal> goal_of(const std::vector<Switch*>& commanded,
                                       const SwitchOptions& options);
    [[nodiscard]] std::vector<SwitchMember> members_of(const Goal& goal);
    /// Writes the event to the audit log and creates the transaction; sends no request to its
    /// switches.
    [[nodiscard]] Result<std::unique_ptr<Transaction>> begin(const Goal& goal,
                                                             const SwitchOptions& options);
    [[nodiscard]] Result<Report> prepare(Goal goal, const SwitchOptions& options);
    [[nodiscard]] Result<Report> carry_out(const Goal& goal, const SwitchOptions& options);
    [[nodiscard]] Result<Report> commit_alone(Switch& commanded, const SwitchOptions& options);
    /// Checks that all switches show these circuits.
    [[nodiscard]] Status check_shown(const CircuitsBySwitch& wanted, const SwitchOptions& options);
    /// Returns whether a phase, or the goal, has these circuits on one switch.
    [[nodiscard]] bool is_of_phase(const std::string& of_switch, const Circuits& circuits) const;
    void conclude(const Goal& goal, Report& report);
    void take_over(const Goal& goal, const Report& report);

    PhaseBook phases_;
    AuditLog audit_;
    std::vector<std::unique_ptr<Switch>> switches_;  // in the order of the description
    std::optional<Prepared> prepared_;
    std::string current_;
    std::uint32_t generation_ = 0;
};

}  // namespace pccl::cluster
