// A switch of a cluster, as a program commands it by itself. Phases come from the cluster
// (cluster_context.h); this is for what they have no word for: a spare port, a test of one circuit.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/cluster/command.h"
#include "csrc/cluster/drivers/driver.h"
#include "csrc/cluster/inspection.h"
#include "csrc/cluster/model/description.h"
#include "csrc/cluster/switch_options.h"
#include "csrc/cluster/transaction.h"

namespace pccl::cluster {

/// Of a ClusterContext, and as long as that; on its thread.
class PCCL_API Switch {
   public:
    /// Carries out what a switch was commanded.
    using Commit = std::function<Result<Report>(Switch&, const SwitchOptions&)>;

    Switch(const SwitchDescription& description, std::unique_ptr<Driver> driver, Commit commit);
    virtual ~Switch() = default;
    Switch(const Switch&) = delete;
    Switch& operator=(const Switch&) = delete;

    [[nodiscard]] const std::string& name() const { return description_.name; }
    [[nodiscard]] const SwitchDescription& description() const { return description_; }

    /// Queues a change; the switch is not asked before commit(), here or of the cluster.
    /// kInvalidArgument where it is none for this switch.
    [[nodiscard]] Status command(const Command& command);
    /// What is queued.
    [[nodiscard]] const std::vector<Command>& commands() const { return commands_; }
    /// Drops the first `count` of these; all of them.
    void discard(std::size_t count);
    void discard() { commands_.clear(); }
    /// Has the switch do all that is queued, or nothing, as a transaction of its own: read back,
    /// confirmed, and written into the audit log. What is queued stays where it was not done.
    [[nodiscard]] Result<Report> commit(const SwitchOptions& options = {});
    /// Reads what it has connected.
    [[nodiscard]] Sight look(Duration timeout);

    // What its cluster knows of it.

    [[nodiscard]] Driver& driver() { return *driver_; }
    /// What it was last proven to have connected; nullopt: nothing was.
    [[nodiscard]] const std::optional<Circuits>& proven() const { return proven_; }
    /// Not ok: what it has could not be proven, and why.
    [[nodiscard]] const Status& doubt() const { return doubt_; }
    void prove(Circuits circuits);
    void forget(const Status& doubt = Status::ok());

   private:
    const SwitchDescription& description_;
    const std::unique_ptr<Driver> driver_;
    const Commit commit_;
    std::vector<Command> commands_;
    std::optional<Circuits> proven_;
    Status doubt_;
};

/// One whose ports are joined by circuits of light, each one way.
class PCCL_API OpticalSwitch final : public Switch {
   public:
    using Switch::Switch;

    /// Ingress ports of circuits through which no light comes, in ascending order. None where the
    /// switch does not tell.
    [[nodiscard]] Result<std::vector<int>> dark(Duration timeout);
};

}  // namespace pccl::cluster
