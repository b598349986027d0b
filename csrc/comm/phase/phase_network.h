// The network of a job where it is switched between phases: what all groups of a process share.
//
// The group that is made with it has all ranks of the network, and switches; groups that are split
// off it, or made of its ranks, follow. Who speaks to the switches is not known here: rank 0 hands
// over the transaction.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/base/export.h"
#include "csrc/comm/phase/coordinator_failover.h"
#include "csrc/comm/phase/phased_group.h"

namespace pccl::comm {

struct PhaseLinks {
    std::string name;
    std::vector<schedule::DirectedLink> links;  // between ranks of the network
    /// Ranks pass on what is not theirs where no ring leads through a group.
    bool forwards = false;
};

/// How a transaction ended.
struct Transacted {
    bool is_switched = false;  // or prepared, in a dry run
    std::string report;
};
/// Prepares all switches, calls `drain` when all are, and goes on only if that is ok.
using Transact = std::function<Transacted(const std::function<Status()>& drain)>;

struct PhaseRequest {
    std::string phase;
    bool dry_run = false;
    /// For all ranks to come, with nothing under way.
    Duration timeout = std::chrono::seconds(5);
    Transact transact{};   // of rank 0
    ReadBack read_back{};  // of the others: for when rank 0 is gone; null: they cannot
};

class PCCL_API PhaseNetwork {
   public:
    struct Settings {
        int ranks = 1;
        std::vector<PhaseLinks> phases;
        /// Ranks of one host have links of their own, whatever the phase. False where a fabric of
        /// the process stands for a network: then each rank stands for a host.
        bool has_hosts = true;
    };
    explicit PhaseNetwork(Settings settings);

    [[nodiscard]] int ranks() const { return settings_.ranks; }
    /// The phase that was last switched to; empty before, and where it is not known.
    [[nodiscard]] std::string phase() const;
    /// The number of the switch that led to it, alike on all ranks.
    [[nodiscard]] std::uint32_t generation() const;
    /// Whether a group lives that can switch.
    [[nodiscard]] bool is_in_use() const;
    /// Whether that is rank 0 of it, which has the transaction.
    [[nodiscard]] bool is_controller() const;

    /// `ranks`: those of the network, by rank of the group, which enters the present phase.
    /// kInvalidArgument where the network has no such ranks.
    [[nodiscard]] Status join(const std::shared_ptr<PhasedGroup>& group, std::vector<Rank> ranks,
                              bool may_switch);
    /// Between the ranks of a group that has joined; null: all reach each other. kInvalidArgument:
    /// there is no such phase.
    [[nodiscard]] Result<std::shared_ptr<const schedule::LinkGraph>> links_in(
        const std::string& phase, const PhasedGroup& group) const;
    /// A collective call of the ranks of the group that may switch. All ranks get the same outcome;
    /// an error, too: what is wrong with the call, or which rank did not come, or is gone.
    /// kInvalidArgument: there is no such phase, or it leaves a rank without a way.
    [[nodiscard]] Result<Transacted> switch_phase(const PhaseRequest& request);

   private:
    /// A group that follows the network: as it is kept, and as it is used.
    template <template <typename> typename Pointer>
    struct GroupEntry {
        Pointer<PhasedGroup> group;
        std::vector<Rank> ranks;  // of the network, by rank of the group
        bool may_switch = false;
    };
    using Joined = GroupEntry<std::weak_ptr>;
    using Living = GroupEntry<std::shared_ptr>;

    [[nodiscard]] std::vector<Living> living() const;
    [[nodiscard]] std::shared_ptr<PhasedGroup> switching_group() const;
    [[nodiscard]] const PhaseLinks* find(const std::string& name) const;
    [[nodiscard]] Status no_such_phase(const std::string& name) const;
    /// Null: all reach each other.
    [[nodiscard]] std::shared_ptr<const schedule::LinkGraph> graph_of(
        const PhasedGroup& group, const std::vector<Rank>& ranks, const PhaseLinks& phase) const;
    [[nodiscard]] Status why_in_doubt() const;
    /// The present one, as a group has it.
    [[nodiscard]] GroupPhase phase_of(const PhasedGroup& group,
                                      const std::vector<Rank>& ranks) const;
    /// Why this process cannot go on in the phase.
    [[nodiscard]] Status check(const std::string& name, const std::vector<Living>& groups) const;
    /// `doubt`: why it is not known what the network is; ok, with a name: it is.
    void enter(const std::string& name, const Status& doubt, const std::vector<Living>& groups);
    void follow(const Switching::SwitchResult& switch_result, const PhaseRequest& request,
                const std::vector<Living>& groups);
    [[nodiscard]] std::uint64_t digest() const;

    const Settings settings_;
    std::mutex switching_;     // held by the thread that switches
    std::uint64_t calls_ = 0;  // so far, of all groups that could switch
    mutable std::mutex mutex_;
    std::string phase_;
    Status doubt_;  // why it is not known; ok: it is, or none was switched to yet
    std::uint32_t generation_ = 0;
    std::vector<Joined> joined_;
};

}  // namespace pccl::comm
