// SPDX-License-Identifier: Apache-2.0

// Network inside one process: any number of simulated processes, with planned faults.
//
//     auto fabric = LoopbackFabric::create({.faults = {.seed = 7, .short_read = 0.2}});
//     auto first = fabric->join(*first_waiter);    // process 0: its control plane and transport
//     auto second = fabric->join(*second_waiter);  // process 1
//
// Processes may be threads, or share one thread
// (answer_inline()). The end of a planned delay wakes nobody: waits must check again now and then,
// as Backoff does.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/transport/transport.h"
#include "tests/fakes/loopback/control_plane.h"
#include "tests/fakes/loopback/fault_plan.h"
#include "tests/fakes/loopback/process_table.h"

namespace pccl::transport::loopback {

struct FabricOptions {
    FaultPlan faults = {};
    std::size_t capacity = 64 * kKiB;  // of each channel of a link
    const Clock* clock = &system_clock();
};

class LoopbackTransport;
struct LoopbackMember;

/// Loopback network. Thread-safe.
class LoopbackFabric final : public std::enable_shared_from_this<LoopbackFabric> {
   public:
    static std::shared_ptr<LoopbackFabric> create(const FabricOptions& options = {});

    /// Adds the next process; numbers start at 0. `waiter` outlives its transport and links.
    Result<LoopbackMember> join(Waiter& waiter);
    /// Ends a process now: its links close, and its calls fail with kAborted.
    void kill(int process);

   private:
    friend class LoopbackTransport;
    /// Link from one process to another that is not accepted yet.
    struct OnItsWay {
        std::uint64_t number = 0;
        std::shared_ptr<Pipe> pipe;
    };

    explicit LoopbackFabric(const FabricOptions& options) : options_(options) {}
    [[nodiscard]] OnItsWay make_pipe(const LinkRequest& request);
    /// Returns a pipe, once; null where its other end is gone.
    [[nodiscard]] std::shared_ptr<Pipe> take_pipe(std::uint64_t number);

    const FabricOptions options_;
    const std::shared_ptr<ProcessTable> processes_ = std::make_shared<ProcessTable>();
    std::mutex mutex_;
    std::map<std::array<int, 3>, std::uint64_t>
        links_;  // links made so far, by source, destination and channel
    std::map<std::uint64_t, std::weak_ptr<Pipe>> on_their_way_;
    std::uint64_t pipes_ = 0;  // pipes made so far
};

/// Transport of one simulated process. Its links end with it.
class LoopbackTransport final : public Transport {
   public:
    ~LoopbackTransport() override;
    LoopbackTransport(const LoopbackTransport&) = delete;
    LoopbackTransport& operator=(const LoopbackTransport&) = delete;

    [[nodiscard]] TransportKind kind() const override { return TransportKind::kLoopback; }
    [[nodiscard]] std::vector<std::string> addresses() const override;
    [[nodiscard]] Status reaches(const PeerAddress& peer) const override;
    Result<std::unique_ptr<PendingConnect>> connect(const PeerAddress& peer,
                                                    const LinkRequest& request,
                                                    const Secret& secret) override;
    void accept(Arrival arrival, LinkReceiver& receiver) override;
    void advance(LinkReceiver& /*receiver*/) override {}
    /// Returns one-sided access with the faults of the fabric.
    [[nodiscard]] Result<std::shared_ptr<RmaTransport>> one_sided() override { return one_sided_; }

   private:
    friend class LoopbackFabric;
    LoopbackTransport(std::shared_ptr<LoopbackFabric> fabric, std::shared_ptr<Process> process);

    const std::shared_ptr<LoopbackFabric> fabric_;
    const std::shared_ptr<Process> process_;
    const std::shared_ptr<RmaTransport> one_sided_;
};

/// Process of a fabric.
struct LoopbackMember {
    std::unique_ptr<LoopbackControlPlane> control;
    std::unique_ptr<LoopbackTransport> transport;
};

}  // namespace pccl::transport::loopback
