// The controller's side of phases: one process that knows the cluster file and speaks to switches.
//
//     register_phase         the links of a phase, beside those of the file
//     register_transform     which circuits carry them, coming from another phase
//     pre_commit             has all switches hold and check the change; no light moves
//     commit                 all switches carry it out, and are read, and confirm; or none does
//     switch_phase           both, with what the caller does in between
//     Switch: command        queues a change of one switch, for a commit of that, or of all
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/cluster/audit_log.h"
#include "csrc/cluster/drivers/make_driver.h"
#include "csrc/cluster/inspection.h"
#include "csrc/cluster/model/description.h"
#include "csrc/cluster/phase_book.h"
#include "csrc/cluster/plan.h"
#include "csrc/cluster/switch.h"
#include "csrc/cluster/switch_options.h"
#include "csrc/cluster/transaction.h"

namespace pccl::cluster {

/// One thread at a time. Sessions stay open between calls.
class PCCL_API ClusterContext {
   public:
    [[nodiscard]] static Result<std::unique_ptr<ClusterContext>> open(
        Description description, const MakeDriver& make = make_driver);
    /// Of a cluster file in JSON.
    [[nodiscard]] static Result<std::unique_ptr<ClusterContext>> load(
        const std::string& path, const MakeDriver& make = make_driver);
    /// What is prepared is discarded.
    ~ClusterContext();
    ClusterContext(const ClusterContext&) = delete;
    ClusterContext& operator=(const ClusterContext&) = delete;

    [[nodiscard]] const Description& description() const { return phases_.description(); }
    /// Another phase. kInvalidArgument where it cannot be one, with what would be right.
    [[nodiscard]] Status register_phase(Phase phase);
    /// How to get from one phase to another, where circuits_of() is not to decide over which ports
    /// its links go: so that fewer circuits move, say. kInvalidArgument where there is no such
    /// phase, or what comes of the first one's circuits does not carry the other one's links.
    [[nodiscard]] Status register_transform(const std::string& from, const std::string& to,
                                            Transform transform);
    /// What it takes to get from one phase (empty: from nothing connected) to another. Pure.
    [[nodiscard]] Result<Plan> plan(const std::string& from, const std::string& to) const;

    /// kInvalidArgument where there is none of that name, or it is not optical.
    [[nodiscard]] Result<Switch*> switch_called(const std::string& name);
    [[nodiscard]] Result<OpticalSwitch*> optical_switch(const std::string& name);

    /// The phase that was last proven; empty before one was, or where none fits.
    [[nodiscard]] const std::string& current() const { return current_; }
    /// How often what is connected has changed.
    [[nodiscard]] std::uint32_t generation() const { return generation_; }
    /// Not ok: a switch is in a state that could not be proven, and why; only adopting helps.
    [[nodiscard]] Status degraded() const;

    /// Reads all switches. Nothing is changed.
    [[nodiscard]] Inspection inspect(Duration timeout, const Interrupted& interrupted = {});
    /// The same; the phase they show is then the current one, and nothing is degraded any more.
    /// kMismatch where they show no phase, with what differs from the nearest.
    [[nodiscard]] Status adopt(Duration timeout, const Interrupted& interrupted = {});
    /// Where another controller is gone in the middle of a switch: leaves the switches alone until
    /// they have taken back what it has not confirmed, and adopts the phase that they then show,
    /// which is returned; empty: all are dark. Errors as of adopt(), or of `options.interrupted`.
    [[nodiscard]] Result<std::string> inherit(const SwitchOptions& options);

    /// Has all switches lock, hold and check what leads to the phase, as switch_phase() does before
    /// it commits. Traffic runs on. An error names the switch, and nothing is left behind.
    [[nodiscard]] Status pre_commit(const std::string& phase, const SwitchOptions& options = {});
    /// The same for the commands that are queued at switches; at least one is.
    [[nodiscard]] Status pre_commit(const SwitchOptions& options = {});
    /// Carries out what is prepared, on all switches, or takes it back on all. kInvalidArgument
    /// where nothing is.
    [[nodiscard]] Result<Report> commit();
    /// Has switches drop what is prepared. kInvalidArgument where nothing is.
    [[nodiscard]] Status discard();

    /// From the current phase, or, where none is known yet, from the one that switches show. To
    /// the current one: reads and proves it. An error where nothing was begun.
    [[nodiscard]] Result<Report> switch_phase(const std::string& phase,
                                              const SwitchOptions& options = {});

    /// The events of this process, oldest first.
    [[nodiscard]] std::vector<std::string> audit() const { return audit_.lines(); }

   private:
    struct Commanded {
        Switch* who = nullptr;
        std::size_t commands = 0;
    };
    /// What a transaction is for.
    struct Goal {
        std::string phase;  // empty: what switches were commanded
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

    /// Of all switches; nullopt where one was not proven.
    [[nodiscard]] std::optional<CircuitsBySwitch> proven() const;
    /// Those that the phase has now, if it is the current one; else its own.
    [[nodiscard]] Result<CircuitsBySwitch> circuits_in(const Phase& phase) const;
    [[nodiscard]] std::string phase_with(const CircuitsBySwitch& circuits) const;

    /// What switches were proven to have, or show; kMismatch where that is no phase, nor dark,
    /// unless `may_be_any`.
    [[nodiscard]] Result<CircuitsBySwitch> origin(const SwitchOptions& options, bool may_be_any);
    [[nodiscard]] Result<Goal> goal_of(const std::string& phase, const SwitchOptions& options);
    [[nodiscard]] Result<Goal> goal_of(const std::vector<Switch*>& commanded,
                                       const SwitchOptions& options);
    [[nodiscard]] std::vector<SwitchMember> members_of(const Goal& goal);
    /// Writes it into the audit log; nothing is asked of a switch that is to change.
    [[nodiscard]] Result<std::unique_ptr<Transaction>> begin(const Goal& goal,
                                                             const SwitchOptions& options);
    [[nodiscard]] Status prepare(Goal goal, const SwitchOptions& options);
    [[nodiscard]] Result<Report> carry_out(const Goal& goal, const SwitchOptions& options);
    [[nodiscard]] Result<Report> commit_alone(Switch& commanded, const SwitchOptions& options);
    /// Whether all switches show these circuits.
    [[nodiscard]] Status check_shown(const CircuitsBySwitch& wanted, const SwitchOptions& options);
    /// Whether a phase, or the goal, has these circuits on one switch.
    [[nodiscard]] bool is_of_phase(const std::string& of_switch, const Circuits& circuits) const;
    void conclude(const Goal& goal, Report& report);
    void take_over(const Goal& goal, const Report& report);

    PhaseBook phases_;
    AuditLog audit_;
    std::vector<std::unique_ptr<Switch>> switches_;  // as described, in that order
    std::optional<Prepared> prepared_;
    std::string current_;
    std::uint32_t generation_ = 0;
};

}  // namespace pccl::cluster
