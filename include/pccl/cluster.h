// SPDX-License-Identifier: Apache-2.0

// Controller of a network with phases: one process that owns the cluster file and the sessions to
// the switches.
//
//     PCCL_ASSIGN_OR_RETURN(const auto cluster, Cluster::load("cluster.json"));
//     PCCL_TRY(cluster->register_phase({.name = "pair", .links = both_ways({RankLink{0, 1}})}));
//     PCCL_TRY(cluster->pre_commit("pair"));              // all switches check it; no light moves
//     PCCL_ASSIGN_OR_RETURN(Report report, cluster->commit());               // all, or none
//     PCCL_ASSIGN_OR_RETURN(report, cluster->switch_phase("ring"));          // both steps
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/export.h>
#include <pccl/phases.h>
#include <pccl/status.h>

namespace pccl::cluster {

class ClusterContext;

/// New connection of one port, outside of phases.
struct PCCL_API Command {
    /// Kind of a command.
    enum class Kind {
        kCrossConnect,  // optical: connects ingress `port` to egress `to`
        kDisconnect,    // optical: disconnects the port
        kJoinVlan,      // electrical, with VLANs
        kEnable,        // electrical, without VLANs
        kDisable,       // electrical, both kinds
    };

    Kind kind = Kind::kDisconnect;  // kind of the command
    int port = 0;                   // optical: the ingress
    int to = 0;                     // egress or VLAN

    /// Returns the command that connects `ingress` to `egress`, for optical switches.
    static Command cross_connect(int ingress, int egress);
    /// Returns the command that disconnects a port, for optical switches.
    static Command disconnect(int ingress);
    /// Returns the command that adds a port to a VLAN, for electrical switches with VLANs.
    static Command join_vlan(int port, int vlan);
    /// Returns the command that enables a port, for electrical switches without VLANs.
    static Command enable(int port);
    /// Returns the command that disables a port, for electrical switches.
    static Command disable(int port);

    /// Compares all members.
    friend bool operator==(const Command&, const Command&) = default;
};

/// Returns "cross-connect 1 -> 2".
[[nodiscard]] PCCL_API std::string to_string(const Command& command);

/// Plan of one switch.
struct SwitchPlan {
    std::string name;  // of the switch
    Circuits from;     // before the change
    Circuits to;       // after it
    Change change;     // from `from` to `to`
    std::string xml;   // request that would be sent; empty for a fabric in this process
};

/// Plan from one phase to another.
struct Plan {
    std::string from;                       // empty: nothing is connected
    std::string to;                         // the new phase
    std::vector<SwitchPlan> switches = {};  // switches that change
    std::vector<RankLink> dark = {};    // links of both phases that move, dark during the switch
    std::vector<RankLink> lost = {};    // links of `from` only
    std::vector<RankLink> gained = {};  // links of `to` only
    /// Estimated time without light: control, plus the slowest switch's settling.
    std::chrono::duration<double> estimate{};
};

/// Step of a transaction on one switch.
enum class Step {
    kConnect,  // nothing to do if there is a session
    kLock,     // excludes other sessions and removes leftovers
    kRead,     // reads the circuits
    kPrepare,  // transfers the change and has it checked; no light moves
    kCommit,   // light moves; the switch reverts it unless confirmed, if it supports that
    kLight,    // reads the light status
    kConfirm,  // makes the commit permanent
    kCancel,   // reverts an unconfirmed commit
    kWrite,    // restores circuits without a commit to cancel, permanently
    kSave,     // stores it for the next start of the switch, if that is separate
    kRelease,  // removes leftovers and admits other sessions
};
/// Returns "connect", "lock", ...
[[nodiscard]] PCCL_API std::string_view to_string(Step step);

/// Request to a switch with its outcome, as in the audit log; without secrets.
struct Exchange {
    std::string operation;         // name of the request
    std::uint64_t message_id = 0;  // in the session
    Duration took{};               // until the reply
    std::string outcome;           // "ok", or the error
};

/// Called about 20 times a second during a wait; an error ends the wait.
using Interrupted = std::function<Status()>;

/// Progress of one switch.
struct SwitchProgress {
    std::string name;  // of the switch
    /// Name of a Step, "settle", or "wait" (for a switch to revert an unconfirmed commit); empty:
    /// not begun.
    std::string_view doing = {};
    bool is_done = false;  // `doing` has ended
    Status fault = {};     // error of `doing`
};

/// Progress of a transaction.
struct Progress {
    /// "prepare", "drain", "commit", "confirm", "roll back" or "release".
    std::string_view part;
    std::vector<SwitchProgress> switches;  // all that take part
};

/// Called on the transaction's thread on each progress of a switch; it must return quickly.
using Watch = std::function<void(const Progress&)>;

/// Options of a switch of phases: its limits, and the caller's actions during it.
struct SwitchOptions {
    Duration step_timeout = std::chrono::seconds(5);  // per step, on all switches
    /// No step begins after the deadline: an unconfirmed transaction is then refused or rolled
    /// back.
    Deadline deadline = Deadline::never();
    bool dry_run = false;  // stops after prepare
    /// Accepts the circuits that the switches show as the origin, even if they are no phase.
    bool adopt = false;
    /// Discards edits of others in the candidates of switches, instead of refusing; the report
    /// contains them.
    bool discard_candidate = false;
    /// Called when all are prepared and none has committed; an error ends the transaction.
    std::function<Status()> drain = {};
    /// Called between steps, and during steps that change nothing; an error makes the step fail.
    Interrupted interrupted = {};
    Watch watch = {};                      // observer; empty: none
    const Clock* clock = &system_clock();  // for settling and confirm timeouts; not null
};

/// Duration of one step.
struct StepTime {
    Step step = Step::kConnect;  // the step
    Duration took{};             // on this switch
};

/// Result of one switch.
struct MemberReport {
    std::string name;                 // of the switch
    Status status;                    // error of its last failed step; ok: none
    Circuits found;                   // in the last reading
    std::vector<StepTime> steps;      // in order
    std::vector<Exchange> exchanges;  // in order
    std::string discarded;            // edits of others in its candidate that were discarded
    /// For a switched one with a separate startup configuration: "copied", "not copied", or the
    /// error of the copy; empty: there is none.
    std::string startup;
};

/// Result of a transaction.
struct Report {
    Ending ending = Ending::kRefused;   // how it ended
    Status reason;                      // reason of a failure; for kDegraded, with the remedy
    std::vector<MemberReport> members;  // the switches that took part
    Duration total{};                   // from begin to end
    Duration dark{};                    // from the first commit to the last proof of light
    /// Error if the end is not in the audit log; ok if it is, or if there is no file.
    Status unrecorded = Status::ok();
};

/// Reading of one switch.
struct Sight {
    std::string name;       // of the switch
    Status status;          // the error if it could not be read
    Circuits circuits;      // that it shows
    std::vector<int> dark;  // ingress ports of these circuits without light
};

/// Reading of all switches.
struct Inspection {
    std::vector<Sight> switches;  // in the order of the description
    std::string phase;            // phase whose circuits all of them show; empty: none
};

/// Controller. Not thread-safe. Sessions to the switches stay open between calls. Every call blocks
/// for as long as its options, or the switches' confirm timeouts, allow.
class PCCL_API Cluster {
   public:
    /// Opens a cluster; contacts no switch. The caller vouches for the description, which parse()
    /// would check. Errors are those of the audit log's file, and of unknown dialects.
    [[nodiscard]] static Result<std::unique_ptr<Cluster>> open(Description description);
    /// Opens the cluster of a file in JSON. kInvalidArgument contains the place and the expected
    /// content.
    [[nodiscard]] static Result<std::unique_ptr<Cluster>> load(const std::string& path);
    /// Opens a cluster of the text of such a file; `name` names it in error messages. Without
    /// switches there is one, "fabric", in this process, to which every device has two ports.
    [[nodiscard]] static Result<std::unique_ptr<Cluster>> parse(std::string_view text,
                                                                std::string_view name);
    /// Discards a prepared transaction.
    ~Cluster();
    Cluster(const Cluster&) = delete;
    Cluster& operator=(const Cluster&) = delete;

    /// Returns the cluster with the phases registered since.
    [[nodiscard]] const Description& description() const;
    /// Adds a phase. kInvalidArgument: it is invalid; the message contains the rule.
    [[nodiscard]] Status register_phase(Phase phase);
    /// Sets the circuits between two phases in place of the default ones, for instance so that
    /// fewer circuits move. kInvalidArgument: a phase does not exist, or the transform of the first
    /// phase's circuits does not carry the links of the second.
    [[nodiscard]] Status register_transform(const std::string& from, const std::string& to,
                                            Transform transform);
    /// Returns the plan from one phase to another; empty `from`: nothing is connected. Does not
    /// contact switches. kInvalidArgument contains a phase that does not exist.
    [[nodiscard]] Result<Plan> plan(const std::string& from, const std::string& to) const;

    /// Returns the last proven phase; empty if there is none, or if the circuits match no phase.
    [[nodiscard]] const std::string& current() const;
    /// Returns the number of changes of the connected circuits.
    [[nodiscard]] std::uint32_t generation() const;
    /// Returns an error, with the reason, if the state of a switch could not be proven; only
    /// adoption clears it.
    [[nodiscard]] Status degraded() const;

    /// Reads all switches without changing them, with `timeout` for each step.
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
    /// Prepares the commands that are queued at switches. kInvalidArgument: none is queued.
    [[nodiscard]] Status pre_commit(const SwitchOptions& options = {});
    /// Commits the prepared transaction on all switches, or rolls it back on all. kInvalidArgument:
    /// nothing is prepared.
    [[nodiscard]] Result<Report> commit();
    /// Discards the prepared transaction. kInvalidArgument: nothing is prepared.
    [[nodiscard]] Status discard();
    /// Switches from the current phase or, if there is none, from the phase that the switches show.
    /// If `phase` is the current one, reads and proves it. Returns an error if no transaction was
    /// begun: kInvalidArgument for a phase that does not exist, kMismatch where the switches show
    /// no phase.
    [[nodiscard]] Result<Report> switch_phase(const std::string& phase,
                                              const SwitchOptions& options = {});

    // One switch, by name, outside of phases. kInvalidArgument: it does not exist.

    /// Queues a change, which commit_switch(), or a pre_commit() of all switches, sends.
    /// kInvalidArgument: the command is invalid for this switch; the message contains a valid one.
    [[nodiscard]] Status command(const std::string& of_switch, const Command& command);
    /// Returns the queued commands.
    [[nodiscard]] Result<std::vector<Command>> commands(const std::string& of_switch) const;
    /// Drops the queued commands.
    [[nodiscard]] Status discard_commands(const std::string& of_switch);
    /// Performs all queued commands of a switch, or none, in a transaction of its own: read back,
    /// confirmed, and written to the audit log. Commands stay queued if they were not performed.
    [[nodiscard]] Result<Report> commit_switch(const std::string& of_switch,
                                               const SwitchOptions& options = {});
    /// Returns the last proven circuits; nullopt: none.
    [[nodiscard]] Result<std::optional<Circuits>> proven(const std::string& of_switch) const;
    /// Reads the circuits of a switch.
    [[nodiscard]] Result<Sight> look(const std::string& of_switch, Duration timeout);
    /// Returns the ingress ports of an optical switch's circuits without light, in ascending order;
    /// empty if the switch does not report light.
    [[nodiscard]] Result<std::vector<int>> dark(const std::string& of_switch, Duration timeout);

    /// Returns the events of this process in the audit log, oldest first: JSON objects of one line.
    [[nodiscard]] std::vector<std::string> audit() const;

   private:
    explicit Cluster(std::unique_ptr<ClusterContext> context);

    const std::unique_ptr<ClusterContext> context_;
};

}  // namespace pccl::cluster
