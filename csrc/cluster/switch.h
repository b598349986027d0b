// SPDX-License-Identifier: Apache-2.0

// Switch of a cluster, for direct commands. Phases are handled by the cluster (cluster_context.h);
// this interface serves other uses, such as a spare port or the test of one circuit.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pccl/cluster.h>
#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/cluster/command.h"
#include "csrc/cluster/drivers/driver.h"
#include "csrc/cluster/inspection.h"
#include "csrc/cluster/model/description.h"
#include "csrc/cluster/transaction.h"

namespace pccl::cluster {

/// Owned by a ClusterContext; use it only on that context's thread.
class PCCL_API Switch {
   public:
    /// Commits the queued commands of a switch.
    using Commit = std::function<Result<Report>(Switch&, const SwitchOptions&)>;

    Switch(const SwitchDescription& description, std::unique_ptr<SwitchDriver> driver,
           Commit commit);
    virtual ~Switch() = default;
    Switch(const Switch&) = delete;
    Switch& operator=(const Switch&) = delete;

    [[nodiscard]] const std::string& name() const { return description_.name; }
    [[nodiscard]] const SwitchDescription& description() const { return description_; }

    /// Queues a change, which is sent by commit() of this switch or of the cluster.
    /// kInvalidArgument: the command is invalid for this switch.
    [[nodiscard]] Status command(const Command& command);
    /// Returns the queued commands.
    [[nodiscard]] const std::vector<Command>& commands() const { return commands_; }
    /// Drop the first `count` queued commands, or all of them.
    void drop_commands(std::size_t count);
    void drop_commands() { commands_.clear(); }
    /// Performs all queued commands, or none, in a transaction of its own: read back, confirmed,
    /// and written to the audit log. Commands stay queued if they were not performed.
    [[nodiscard]] Result<Report> commit(const SwitchOptions& options = {});
    /// Reads its circuits.
    [[nodiscard]] Sight look(Duration timeout);

    // Interface for the cluster.

    [[nodiscard]] SwitchDriver& driver() { return *driver_; }
    /// Returns the last proven circuits; nullopt: none.
    [[nodiscard]] const std::optional<Circuits>& proven() const { return proven_; }
    /// Returns an error, with the reason, if its circuits could not be proven.
    [[nodiscard]] const Status& doubt() const { return doubt_; }
    void prove(Circuits circuits);
    void forget(const Status& doubt = Status::ok());

   private:
    const SwitchDescription& description_;
    const std::unique_ptr<SwitchDriver> driver_;
    const Commit commit_;
    std::vector<Command> commands_;
    std::optional<Circuits> proven_;
    Status doubt_;
};

/// Optical switch, which joins ports by directed circuits.
class PCCL_API OpticalSwitch final : public Switch {
   public:
    using Switch::Switch;

    /// Returns the ingress ports of circuits without light, in ascending order; empty if the switch
    /// does not report light.
    [[nodiscard]] Result<std::vector<int>> dark(Duration timeout);
};

}  // namespace pccl::cluster
