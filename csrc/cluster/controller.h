// SPDX-License-Identifier: Apache-2.0

// Controller of a cluster for several threads: a ClusterContext that admits one call at a time, and
// that a job's phases drive.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <pccl/export.h>
#include "csrc/cluster/cluster_context.h"
#include "csrc/comm/phase/network_controller.h"

namespace pccl::cluster {

/// State of a cluster after the last call.
struct ClusterState {
    std::string phase{};           // the last proven phase; empty: none, or it is unknown
    std::uint32_t generation = 0;  // number of changes of the connected circuits
    std::string degraded{};        // why the state of a switch is not proven; empty: it is
};

/// Thread-safe. A call during another one returns kUnavailable; from prepare() until commit() or
/// discard() counts as one call. Errors are otherwise those of ClusterContext.
class PCCL_API Controller final : public comm::NetworkController {
   public:
    explicit Controller(std::unique_ptr<ClusterContext> context);

    [[nodiscard]] comm::NetworkReport prepare(const std::string& phase,
                                              const comm::ControllerOptions& options) override;
    [[nodiscard]] comm::NetworkReport commit() override;
    [[nodiscard]] comm::NetworkReport discard(const Status& why) override;
    [[nodiscard]] Result<std::string> read_back(const comm::ControllerOptions& options) override;

    [[nodiscard]] Result<Report> switch_phase(const std::string& phase,
                                              const SwitchOptions& options);
    [[nodiscard]] Result<Plan> plan(const std::string& from, const std::string& to);
    [[nodiscard]] Result<Inspection> inspect(Duration timeout, const Interrupted& interrupted);
    [[nodiscard]] Status adopt(Duration timeout, const Interrupted& interrupted);
    [[nodiscard]] Result<std::vector<std::string>> audit();

    /// Returns the content of the cluster file, which does not change.
    [[nodiscard]] const Description& description() const { return context_->description(); }
    [[nodiscard]] ClusterState state() const;
    /// Sets the observer of the transactions that prepare() begins; null: none.
    void set_watch(Watch watch);

   private:
    [[nodiscard]] Status begin();
    void end();
    /// Runs `call` unless another call is under way.
    template <typename Call>
    auto alone(const Call& call) -> decltype(call());
    [[nodiscard]] SwitchOptions options_of(const comm::ControllerOptions& options) const;

    const std::unique_ptr<ClusterContext> context_;
    std::atomic<bool> is_busy_{false};
    mutable std::mutex mutex_;  // guards the members below
    ClusterState state_;
    Watch watch_;
};

/// Returns the report as the groups of a job exchange it.
[[nodiscard]] PCCL_API comm::NetworkReport network_report(const Report& report);

}  // namespace pccl::cluster
