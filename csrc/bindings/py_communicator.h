// Communicator over Python buffers. Synchronous calls run on the caller's thread with the GIL
// released.
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
    Place place;
    pybind11::object rendezvous;  // as store_at() takes it
    double timeout = 0;           // seconds
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
    /// `out` and `x` of the collectives below: one buffer that holds equal blocks, or a list of n
    /// buffers.
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
    /// Of this communicator.
    Outcome run(const comm::Operator& bound, std::optional<double> timeout);
    /// An Event, which holds `buffers` while the operation runs.
    Outcome execute(const comm::Operator& bound, Buffers buffers, std::optional<double> timeout);
    Outcome send(const pybind11::object& x, Rank peer, int tag, const CallOptions& options);
    /// From any rank where `peer` is negative.
    Outcome receive(const pybind11::object& x, Rank peer, int tag, const CallOptions& options);
    Outcome barrier(const CallOptions& options);
    /// A pccl.table.Table of pccl.PeerHealth.
    [[nodiscard]] pybind11::object health(Seconds timeout) const;
    /// Aborts this one. Without ranks: leaves out those that are gone or do not answer.
    std::unique_ptr<PyCommunicator> shrink(const std::optional<std::vector<Rank>>& excluded,
                                           std::optional<int> least);

    /// Null for ranks without a color. Waits without the GIL.
    std::unique_ptr<PyCommunicator> split(std::optional<int> color, int key,
                                          OptionalSeconds timeout);

    /// Loads a pccl.Capsule, what it stands on, or the one of a path, with all other ranks; returns
    /// what runs on so many ranks.
    capsule::Capsule load(const pybind11::object& capsule, const std::optional<std::string>& sizes,
                          std::optional<double> timeout);
    void unload(const std::string& name, OptionalSeconds timeout);
    /// A pccl.table.Table of pccl.capsule_results.LoadedCapsule.
    [[nodiscard]] pybind11::object loaded() const;

    comm::Communicator& operator*() { return *communicator_; }
    [[nodiscard]] const std::shared_ptr<comm::Communicator>& shared() const {
        return communicator_;
    }

   private:
    PyCommunicator(std::shared_ptr<bootstrap::Store> store,
                   std::shared_ptr<comm::Communicator> communicator)
        : store_(std::move(store)), communicator_(std::move(communicator)) {}

    Outcome perform(const CallKind& what, const pybind11::object& x, const pybind11::object& out,
                    const CallOptions& options);
    /// Lets other ranks know that this one refuses a buffer; throws why.
    [[noreturn]] void refuse(Call& call, comm::OptionalTimeout timeout);
    /// Calls run(), a synchronous collective, without the GIL.
    template <typename Run>
    Outcome wait_here(Run run);
    /// Of an asynchronous operation on `buffers`.
    Outcome hand_out(const runtime::Event& event, Buffers buffers);
    /// Calls post(), which starts a message, without the GIL.
    template <typename Post>
    Outcome exchange(Buffers buffers, const CallOptions& options, Post post);

    // Rank 0's may be the server that the others still read from.
    std::shared_ptr<bootstrap::Store> store_;
    std::shared_ptr<comm::Communicator> communicator_;
    std::shared_ptr<Discarded> discarded_ = std::make_shared<Discarded>();
};

}  // namespace pccl::bindings
