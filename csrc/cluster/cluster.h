// The controller's side of phases: one process that knows the cluster file and speaks to switches.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/cluster/audit_log.h"
#include "csrc/cluster/drivers/driver.h"
#include "csrc/cluster/inspection.h"
#include "csrc/cluster/model/description.h"
#include "csrc/cluster/plan.h"
#include "csrc/cluster/transaction.h"

namespace pccl::cluster {

struct SwitchOptions {
    Duration step_timeout = std::chrono::seconds(5);
    bool dry_run = false;
    /// Take what the switches show for what is meant, whatever phase that is.
    bool adopt = false;
    std::function<Status()> drain = {};
    std::function<Status()> interrupted = {};
    const Clock* clock = &system_clock();
};

/// Makes the driver of a switch; tests have their own.
using MakeDriver = std::function<Result<std::unique_ptr<Driver>>(const Switch&)>;
/// Over SSH, or a fabric of this process. Looks its host up when it connects.
[[nodiscard]] PCCL_API Result<std::unique_ptr<Driver>> make_driver(const Switch& of);

/// One thread at a time. Sessions stay open between calls.
class PCCL_API Cluster {
   public:
    [[nodiscard]] static Result<std::unique_ptr<Cluster>> open(
        Description description, const MakeDriver& make = make_driver);

    [[nodiscard]] const Description& description() const { return description_; }
    /// The phase that was last proven; empty before one was, or where none fits.
    [[nodiscard]] const std::string& current() const { return current_; }
    /// How often the phase has changed.
    [[nodiscard]] std::uint32_t generation() const { return generation_; }
    /// Not ok: a switch is in a state that could not be proven, and why; only adopting helps.
    [[nodiscard]] const Status& degraded() const { return degraded_; }

    /// Reads all switches. Nothing is changed.
    [[nodiscard]] Inspection inspect(Duration timeout);
    /// The same; the phase they show is then the current one, and nothing is degraded any more.
    /// kMismatch where they show no phase, with what differs from the nearest.
    [[nodiscard]] Status adopt(Duration timeout);
    /// Where another controller is gone in the middle of a switch: leaves the switches alone until
    /// they have taken back what it has not confirmed, and adopts the phase that they then show,
    /// which is returned; empty: all are dark. Errors as of adopt(), or of `options.interrupted`.
    [[nodiscard]] Result<std::string> inherit(const SwitchOptions& options);
    /// From the current phase, or, where none is known yet, from the one that switches show. To
    /// the current one: reads and proves it. An error where nothing was begun.
    [[nodiscard]] Result<Report> switch_to(const std::string& phase, const SwitchOptions& options);

    /// The lines of this process, oldest first.
    [[nodiscard]] std::vector<std::string> audit() const { return audit_.lines(); }

   private:
    Cluster(Description description, AuditLog audit)
        : description_(std::move(description)), audit_(std::move(audit)) {}

    [[nodiscard]] Status make_drivers(const MakeDriver& make);
    [[nodiscard]] Status await_confirm_timeouts(const SwitchOptions& options) const;
    [[nodiscard]] Status adopt(const Inspection& inspection);
    [[nodiscard]] std::string phase_shown(const std::vector<Sight>& sights) const;
    [[nodiscard]] Result<CircuitsBySwitch> origin(const SwitchOptions& options);
    [[nodiscard]] std::vector<Member> members_between(const CircuitsBySwitch& from,
                                                      const CircuitsBySwitch& to);
    /// Whether all switches show these circuits.
    [[nodiscard]] Status prove(const CircuitsBySwitch& wanted, Duration timeout);
    void conclude(const std::string& phase, const Report& report);

    const Description description_;
    AuditLog audit_;
    std::map<std::string, std::unique_ptr<Driver>> drivers_;
    std::string current_;
    std::uint32_t generation_ = 0;
    Status degraded_;
};

}  // namespace pccl::cluster
