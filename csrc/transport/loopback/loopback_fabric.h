// A network inside one process: any number of pretended processes, and faults by plan.
//
//     auto fabric = LoopbackFabric::create({.faults = {.seed = 7, .short_read = 0.2}});
//     auto first = fabric->make_transport(*first_waiter);    // process 0
//     auto second = fabric->make_transport(*second_waiter);  // process 1
//
// For tests, of ours and of users. Processes may be threads, or share one thread (accept_inline()).
// Nobody is woken when a planned delay ends: waits must look again now and then, as Backoff does.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/transport/loopback/fault_plan.h"
#include "csrc/transport/loopback/process.h"
#include "csrc/transport/transport.h"

namespace pccl::transport::loopback {

struct FabricOptions {
    FaultPlan faults = {};
    std::size_t capacity = 64 * kKiB;  // of each channel of a link
    const Clock* clock = &system_clock();
};

class LoopbackTransport;

/// Safe from every thread.
class PCCL_API LoopbackFabric final : public std::enable_shared_from_this<LoopbackFabric> {
   public:
    static std::shared_ptr<LoopbackFabric> create(const FabricOptions& options = {});

    /// The transport of the next process; processes count from 0. `waiter` outlives it and its
    /// links.
    Result<std::unique_ptr<LoopbackTransport>> make_transport(Waiter& waiter);
    /// Ends a process now: its links close, and its calls fail with kAborted.
    void kill(int process);

   private:
    friend class LoopbackTransport;
    explicit LoopbackFabric(const FabricOptions& options) : options_(options) {}
    /// Starts every address of this fabric.
    [[nodiscard]] std::string prefix() const;
    /// Null when there is no such process.
    [[nodiscard]] std::shared_ptr<Process> find(int process);
    [[nodiscard]] std::shared_ptr<Pipe> make_pipe(const LinkRequest& request);

    const FabricOptions options_;
    std::mutex mutex_;
    std::vector<std::shared_ptr<Process>> processes_;
    std::map<std::array<int, 3>, std::uint64_t>
        links_;  // so far, by source, destination and channel
};

/// Its links end with it.
class PCCL_API LoopbackTransport final : public Transport {
   public:
    ~LoopbackTransport() override;
    LoopbackTransport(const LoopbackTransport&) = delete;
    LoopbackTransport& operator=(const LoopbackTransport&) = delete;

    [[nodiscard]] TransportKind kind() const override { return TransportKind::kLoopback; }
    [[nodiscard]] std::string address() const override;
    [[nodiscard]] Status reaches(const std::string& address) const override;
    Result<std::unique_ptr<Dial>> dial(const std::string& address, const LinkRequest& request,
                                       const Secret& secret) override;
    [[nodiscard]] int accept_fd() const override { return process_->call_fd(); }
    void accept(Acceptor& acceptor) override;
    /// From now on who connects is accepted at once, on its own thread. `acceptor` outlives the
    /// transport.
    void accept_inline(Acceptor& acceptor) { process_->inline_acceptor = &acceptor; }
    /// One-sided access to and from this process, with the faults of the fabric. May outlive the
    /// transport.
    [[nodiscard]] std::unique_ptr<RmaTransport> one_sided() const;

   private:
    friend class LoopbackFabric;
    LoopbackTransport(std::shared_ptr<LoopbackFabric> fabric, std::shared_ptr<Process> process)
        : fabric_(std::move(fabric)), process_(std::move(process)) {}
    Result<std::shared_ptr<Process>> peer_at(const std::string& address) const;

    std::shared_ptr<LoopbackFabric> fabric_;
    std::shared_ptr<Process> process_;
};

}  // namespace pccl::transport::loopback
