// SPDX-License-Identifier: Apache-2.0

// Communicator over Python buffers. Synchronous calls run on the caller's thread without the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/bindings/call.h"
#include "csrc/bindings/event.h"
#include "csrc/bindings/seconds.h"
#include "csrc/bindings/store_adaptor.h"
#include "csrc/comm/communicator.h"
#include "csrc/comm/operator.h"
#include "csrc/comm/phase/phase_network.h"

namespace pccl::bindings {

struct GroupOptions {
    Meeting meeting;
    double timeout = 0;  // in seconds
    std::string name;
    std::string transports;
    std::string algorithm;
    std::string gpu;
    std::shared_ptr<comm::PhaseNetwork> network;
};

class PyCommunicator {
   public:
    explicit PyCommunicator(const GroupOptions& options);
    ~PyCommunicator();
    PyCommunicator(const PyCommunicator&) = delete;
    PyCommunicator& operator=(const PyCommunicator&) = delete;

    /// None, or an Event when asynchronous.
    using Outcome = pybind11::object;

    Outcome all_reduce(const pybind11::object& x, const Reducing& op, const CallOptions& options);
    Outcome broadcast(const pybind11::object& x, Rank root, const CallOptions& options);
    Outcome reduce(const pybind11::object& x, Rank root, const Reducing& op,
                   const CallOptions& options);
    /// Collectives. `out` and `x` are one buffer of equal blocks, or a list of n buffers.
    Outcome all_gather(const pybind11::object& out, const pybind11::object& x,
                       const CallOptions& options);
    Outcome reduce_scatter(const pybind11::object& out, const pybind11::object& x,
                           const Reducing& op, const CallOptions& options);
    Outcome gather(const pybind11::object& out, const pybind11::object& x, Rank root,
                   const CallOptions& options);
    Outcome scatter(const pybind11::object& out, const pybind11::object& x, Rank root,
                    const CallOptions& options);
    Outcome all_to_all(const pybind11::object& out, const pybind11::object& x,
                       const CallOptions& options);
    /// Runs an operator of this communicator.
    Outcome run(const comm::OperatorImpl& bound, std::optional<double> timeout);
    /// Starts an operator. Returns an Event, which keeps `buffers` while the operation runs.
    Outcome execute(const comm::OperatorImpl& bound, Buffers buffers,
                    std::optional<double> timeout);
    Outcome send(const pybind11::object& x, Rank peer, int tag, const CallOptions& options);
    /// Receives a message, from any rank where `peer` is negative.
    Outcome receive(const pybind11::object& x, Rank peer, int tag, const CallOptions& options);
    Outcome barrier(const CallOptions& options);
    /// Returns a pccl.results.table.Table of pccl.results.peer_health.PeerHealth.
    [[nodiscard]] pybind11::object health(Seconds timeout) const;
    /// Aborts this communicator and returns a smaller one. Without ranks, excludes those that are
    /// gone or do not answer.
    std::unique_ptr<PyCommunicator> shrink(const std::optional<std::vector<Rank>>& excluded,
                                           std::optional<int> least);

    /// Returns null for ranks without a color. Waits without the GIL.
    std::unique_ptr<PyCommunicator> split(std::optional<int> color, int key,
                                          OptionalSeconds timeout);

    /// Loads a pccl.Capsule, its base type, or the file at a path, on all ranks together. Returns
    /// the capsule for this number of ranks.
    capsule::VerifiedCapsule load(const pybind11::object& capsule,
                                  const std::optional<std::string>& sizes,
                                  std::optional<double> timeout);
    void unload(const std::string& name, OptionalSeconds timeout);
    /// Returns a pccl.results.table.Table of pccl.results.loaded_capsule.LoadedCapsule.
    [[nodiscard]] pybind11::object loaded() const;

    comm::CommunicatorImpl& operator*() { return *communicator_; }
    [[nodiscard]] const std::shared_ptr<comm::CommunicatorImpl>& shared() const {
        return communicator_;
    }

   private:
    PyCommunicator(std::shared_ptr<Store> store,
                   std::shared_ptr<comm::CommunicatorImpl> communicator)
        : store_(std::move(store)), communicator_(std::move(communicator)) {}

    Outcome perform(const CallKind& what, const pybind11::object& x, const pybind11::object& out,
                    const CallOptions& options);
    /// Notifies the other ranks that this one refuses a buffer, and throws the reason.
    [[noreturn]] void refuse(BufferCall& call, OptionalTimeout timeout);
    /// Calls run(), a synchronous collective, without the GIL.
    template <typename Run>
    Outcome wait_here(Run run);
    /// Returns the Event of an asynchronous operation on `buffers`.
    Outcome hand_out(const Event& event, Buffers buffers);
    /// Calls post(), which starts a message, without the GIL.
    template <typename Post>
    Outcome exchange(Buffers buffers, const CallOptions& options, Post post);

    // On rank 0, it may be the server from which other ranks still read.
    std::shared_ptr<Store> store_;
    std::shared_ptr<comm::CommunicatorImpl> communicator_;
    std::shared_ptr<DeferredReleases> deferred_ = std::make_shared<DeferredReleases>();
};

}  // namespace pccl::bindings
