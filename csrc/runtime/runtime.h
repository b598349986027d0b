// SPDX-License-Identifier: Apache-2.0

// Runtime that all groups of one process share: its transports, its waiter, and two background
// threads.
//
// The acceptor thread accepts connections whenever peers make them. It never waits for anything
// else, so connecting cannot deadlock, however many ranks connect to one another at once. The
// progress thread, which the first asynchronous operation starts, makes progress on operations
// without a waiting thread. Both sleep in the kernel while there is nothing to do.
#pragma once

#include <atomic>
#include <compare>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "csrc/base/fork.h"
#include "csrc/base/log/limited_log.h"
#include "csrc/base/threads/background_thread.h"
#include "csrc/base/unique_fd.h"
#include "csrc/bootstrap/endpoint.h"
#include "csrc/runtime/flight/flight_dump.h"
#include "csrc/runtime/participant.h"
#include "csrc/runtime/transports.h"
#include "csrc/transport/control/control_plane.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/transport.h"

namespace pccl::runtime {

class PCCL_API Runtime final : public transport::ControlHost, public transport::LinkReceiver {
   public:
    /// Creates a runtime with the transports that this machine and the options permit. Returns
    /// kUnavailable when none is left.
    static Result<std::shared_ptr<Runtime>> create(const NetworkOptions& options);
    /// Creates a runtime that listens at the interface of PCCL_SOCKET_IFNAME.
    static Result<std::shared_ptr<Runtime>> create(transport::TransportFlags allowed);
    /// Returns the runtime that all groups of this process share while any of them lives. Returns
    /// kUnavailable in a child of fork().
    static Result<std::shared_ptr<Runtime>> of_process();
    /// Creates a runtime with the caller's network (a loopback fabric, in tests), whose transports
    /// use `waiter`.
    static Result<std::shared_ptr<Runtime>> with(std::shared_ptr<transport::Waiter> waiter,
                                                 TransportNetwork network);
    ~Runtime() override;
    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;

    /// Returns the waiter. Groups keep it alive: a thread that waits for an operation may outlast
    /// the runtime.
    [[nodiscard]] const std::shared_ptr<transport::Waiter>& waiter() const { return waiter_; }
    [[nodiscard]] transport::ControlPlane& control() const { return *network_.control; }
    /// Returns the transports in order of preference.
    [[nodiscard]] std::span<const std::unique_ptr<transport::Transport>> transports() const {
        return network_.transports;
    }
    [[nodiscard]] transport::Transport* find(transport::TransportKind kind) const;
    struct TransportRoute {
        transport::Transport* transport = nullptr;
        std::string reasons;  // why it is not a better one
    };
    /// Returns the route by the best permitted transport that reaches `peer`, or kUnavailable, with
    /// the reasons.
    [[nodiscard]] Result<TransportRoute> route_to(const transport::PeerAddress& peer,
                                                  transport::TransportFlags allowed) const;
    /// Returns the route to a rank; errors contain the rank.
    [[nodiscard]] Result<TransportRoute> route_to(const bootstrap::Endpoint& peer,
                                                  transport::TransportFlags allowed) const;
    /// Checks whether a process that has not joined yet still exists. Returns kPeerLost, with the
    /// process, when it does not.
    [[nodiscard]] Status probe(const bootstrap::Endpoint& peer) const;

    /// A rank of a group. One process may hold several, on separate threads.
    struct LocalRank {
        transport::GroupId group{};
        Rank rank = 0;

        auto operator<=>(const LocalRank&) const = default;
    };
    void register_rank(const LocalRank& local_rank, const transport::Secret& secret,
                       std::weak_ptr<Participant> participant);
    void unregister_rank(const LocalRank& local_rank);
    /// Keeps the answer to ranks that inquire about one that has left its group. Old answers are
    /// dropped.
    void keep_answer(const LocalRank& local_rank, const transport::Secret& secret,
                     std::string answer);
    /// Makes the progress thread take up a participant's work that may have no waiting thread.
    void notify();

    /// Returns all registered participants, in the order of their local ranks.
    [[nodiscard]] std::vector<std::shared_ptr<Participant>> participants();
    /// Registers a thread that waits for a group.
    void note_thread();
    [[nodiscard]] bool has_one_thread() const { return !has_several_threads_.load(); }

    // ControlHost:

    std::optional<transport::Secret> secret_of(const transport::GroupId& group) override;
    bool serves(const transport::LinkRequest& request) override;
    std::string answer(const transport::LinkRequest& request) override;
    std::string status(const transport::StatusQuestion& question) override;
    void noticed(const transport::LinkRequest& request, const Status& reason) override;
    void arrived(transport::Arrival arrival) override;
    void refused(std::string_view way, const Status& why) override;

    // LinkReceiver:

    void accepted(const transport::LinkRequest& request,
                  std::unique_ptr<transport::RecvLink> link) override;
    void accepted_region(const transport::LinkRequest& request,
                         std::unique_ptr<transport::Region> region) override;
    void fell_short(const transport::LinkRequest& request, transport::TransportKind kind,
                    const Status& why) override;
    Status watch(int fd) override;
    void unwatch(int fd) override;

   private:
    struct RegisteredRank {
        transport::Secret secret;
        std::weak_ptr<Participant> participant;
    };

    struct FinalAnswer {
        LocalRank local_rank;
        transport::Secret secret;
        std::string answer;
    };

    Runtime() = default;
    Status start();
    void accept_until_stopped();
    void progress_until_stopped();
    /// Result of one pass over all busy participants.
    struct PassResult {
        bool moved = false;
        Duration longest_sleep{};
    };
    /// Advances every busy participant once; returns nullopt when none is busy.
    std::optional<PassResult> progress_busy();
    void let_busy_look_around(Duration idle);
    std::shared_ptr<Participant> participant_at(const LocalRank& local_rank);
    /// Returns the participant of the rank that the request addresses.
    std::shared_ptr<Participant> participant_at(const transport::LinkRequest& request) {
        return participant_at(LocalRank{request.group, request.destination});
    }
    /// Under mutex_: returns null where there is none.
    [[nodiscard]] const FinalAnswer* final_answer_at(const LocalRank& local_rank) const;

    std::shared_ptr<transport::Waiter> waiter_;
    TransportNetwork network_;
    UniqueFd arrivals_;  // epoll set: control plane, links in the making, and `stop_`
    UniqueFd stop_;      // eventfd
    std::unique_ptr<FlightSignal> flight_signal_;
    const ForkMark made_in_;
    std::atomic<const void*> first_thread_{nullptr};  // that has waited
    std::atomic<bool> has_several_threads_{false};
    std::atomic<bool> stopping_{false};
    std::atomic<std::uint32_t> work_{0};  // incremented by every notify()
    LimitedLog refusals_{"connections refused"};
    std::mutex mutex_;  // guards members_, final_answers_ and the start of progress_
    std::map<LocalRank, RegisteredRank> members_;
    std::deque<FinalAnswer> final_answers_;           // oldest first
    std::vector<std::shared_ptr<Participant>> busy_;  // of progress_busy(), kept for its memory
    std::unique_ptr<BackgroundThread> acceptor_;      // last: the threads stop first
    std::unique_ptr<BackgroundThread> progress_;
};

}  // namespace pccl::runtime
