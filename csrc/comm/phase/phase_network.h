// SPDX-License-Identifier: Apache-2.0

// The network of a job that switches between phases. All groups of a process share it.
//
// The group that is created with it has all ranks of the network, and switches; groups that are
// split off it, or made of its ranks, follow. Rank 0 drives the controller of the switches through
// NetworkController.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <pccl/export.h>
#include "csrc/comm/phase/coordinator_failover.h"
#include "csrc/comm/phase/network_controller.h"
#include "csrc/comm/phase/phased_group.h"

namespace pccl::comm {

struct PhaseLinks {
    std::string name;
    std::vector<schedule::DirectedLink> links;  // between ranks of the network
    /// Whether ranks forward blocks of other ranks when no ring leads through a group.
    bool forwards = false;
};

struct PhaseRequest {
    std::string phase;
    bool dry_run = false;
    /// Time for all ranks to call and drain, and for each step of the switches.
    Duration timeout = std::chrono::seconds(5);
    /// Drives the switches on rank 0. Another rank reads them with it after the loss of rank 0;
    /// null there: it cannot.
    NetworkController* controller = nullptr;
    bool discard_candidate = false;
    /// As in NetworkOptions.
    std::function<Status()> interrupted = {};
};

class PCCL_API PhaseNetwork {
   public:
    struct Settings {
        int ranks = 1;
        std::vector<PhaseLinks> phases;
        /// Ranks of one host have direct links in every phase. False if a fabric of the process
        /// simulates a network: then each rank represents a host.
        bool has_hosts = true;
    };
    explicit PhaseNetwork(Settings settings);

    [[nodiscard]] int ranks() const { return settings_.ranks; }
    /// Returns the current phase; empty before the first switch, and if it is in doubt.
    [[nodiscard]] std::string phase() const;
    /// Returns the number of the switch that led to it; equal on all ranks.
    [[nodiscard]] std::uint32_t generation() const;
    /// Returns whether a group exists that can switch.
    [[nodiscard]] bool is_in_use() const;
    /// Returns whether this process has rank 0 of that group, which runs the transaction.
    [[nodiscard]] bool is_controller() const;

    /// Adds a group, which enters the current phase. `ranks`: ranks of the network, indexed by rank
    /// of the group. kInvalidArgument if the network has no such ranks.
    [[nodiscard]] Status join(const std::shared_ptr<PhasedGroup>& group, std::vector<Rank> ranks,
                              bool may_switch);
    /// Returns the links between the ranks of a group that has joined; null: all reach each other.
    /// kInvalidArgument: there is no such phase.
    [[nodiscard]] Result<std::shared_ptr<const schedule::LinkGraph>> links_in(
        const std::string& phase, const PhasedGroup& group) const;
    /// Switches the phase. All ranks of the group that may switch must call it, as a collective.
    /// All ranks get the same outcome or error: an invalid call, or the rank that did not call or
    /// is gone. Only rank 0's report contains the circuits that were read. kInvalidArgument: there
    /// is no such phase, or it disconnects a rank.
    [[nodiscard]] Result<NetworkReport> switch_phase(const PhaseRequest& request);

   private:
    /// A group that follows the network; the pointer is weak in storage and shared in use.
    template <template <typename> typename Pointer>
    struct GroupEntry {
        Pointer<PhasedGroup> group;
        std::vector<Rank> ranks;  // ranks of the network, indexed by rank of the group
        bool may_switch = false;
    };
    using Joined = GroupEntry<std::weak_ptr>;
    using Living = GroupEntry<std::shared_ptr>;

    [[nodiscard]] std::vector<Living> living() const;
    [[nodiscard]] std::shared_ptr<PhasedGroup> switching_group() const;
    [[nodiscard]] const PhaseLinks* find(const std::string& name) const;
    [[nodiscard]] Status no_such_phase(const std::string& name) const;
    /// Returns null if all ranks reach each other.
    [[nodiscard]] std::shared_ptr<const schedule::LinkGraph> graph_of(
        const PhasedGroup& group, const std::vector<Rank>& ranks, const PhaseLinks& phase) const;
    [[nodiscard]] Status why_in_doubt() const;
    /// Returns the current phase for a group.
    [[nodiscard]] GroupPhase phase_of(const PhasedGroup& group,
                                      const std::vector<Rank>& ranks) const;
    /// Returns why this process cannot continue in the phase.
    [[nodiscard]] Status check(const std::string& name, const std::vector<Living>& groups) const;
    /// Enters a phase. `doubt`: why the state of the network is undefined; ok, with a name: it is
    /// defined.
    void enter(const std::string& name, const Status& doubt, const std::vector<Living>& groups);
    void apply_result(const Switching::SwitchResult& switch_result, const PhaseRequest& request,
                      const std::vector<Living>& groups);
    [[nodiscard]] std::uint64_t digest() const;

    const Settings settings_;
    std::mutex switching_;     // held by the switching thread
    std::uint64_t calls_ = 0;  // number of calls so far by all groups that could switch
    mutable std::mutex mutex_;
    std::string phase_;
    Status doubt_;  // why the phase is undefined; ok: it is defined, or there was no switch yet
    std::uint32_t generation_ = 0;
    std::vector<Joined> joined_;
};

}  // namespace pccl::comm
