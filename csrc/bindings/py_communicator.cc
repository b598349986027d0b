// SPDX-License-Identifier: Apache-2.0
#include "csrc/bindings/py_communicator.h"

#include <pybind11/stl.h>

#include <chrono>
#include <utility>

#include "csrc/base/text/digest.h"
#include "csrc/base/text/text.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/seconds.h"
#include "csrc/capsule/sizes.h"
#include "csrc/extension/gil.h"
#include "csrc/extension/signals.h"
#include "csrc/runtime/transports.h"

namespace pccl::bindings {

namespace py = pybind11;
namespace {

transport::TransportFlags transports_of(const std::string& text) {
    return value_or_throw(runtime::transports_named(text));
}

std::chrono::milliseconds timeout_of_group(double seconds) {
    return in_milliseconds(positive_duration_of(seconds));
}

/// The caller's thread waits for a synchronous message.
MessageOptions message_options(DataType type, const CallOptions& options) {
    return {.timeout = timeout_of(options.timeout), .type = type, .is_awaited = !options.async_op};
}

std::span<std::byte> payload_of(Block block, DataType type) {
    return {block.data, block.count * size_of(type)};
}

}  // namespace

PyCommunicator::PyCommunicator(const GroupOptions& options)
    : store_(store_at(options.meeting, options.name,
                      Deadline::after(timeout_of_group(options.timeout)), StoreContent::kAny)) {
    comm::CommunicatorImplOptions wanted{.rank = options.meeting.place.rank,
                                         .size = options.meeting.place.world_size,
                                         .store = store_,
                                         .name = options.name,
                                         .timeout = timeout_of_group(options.timeout),
                                         .transports = transports_of(options.transports),
                                         .algorithm = options.algorithm,
                                         .runtime = nullptr,
                                         .global_ranks = {},
                                         .interrupted = extension::check_signals,
                                         .gpu = options.gpu,
                                         .network = options.network};
    auto communicator = [&] {
        const extension::ReleasedGil released;
        return comm::CommunicatorImpl::create(wanted);
    }();
    communicator_ = value_or_throw(std::move(communicator));
}

PyCommunicator::~PyCommunicator() {
    const extension::ReleasedGil released;
    communicator_.reset();
    store_.reset();
}

PyCommunicator::Outcome PyCommunicator::perform(const CallKind& what, const py::object& x,
                                                const py::object& out, const CallOptions& options) {
    BufferCall call(what, communicator_->rank(), communicator_->size());
    call.bind(x, out);
    const auto timeout = timeout_of(options.timeout);
    if (!call.why_refused().is_ok()) refuse(call, timeout);
    if (!options.async_op) {
        Outcome none = wait_here([&] { return communicator_->run(call.collective(), timeout); });
        call.buffers().release();
        return none;
    }
    const Event event = released([&] { return communicator_->submit(call.collective(), timeout); });
    return hand_out(event, std::move(call.buffers()));
}

void PyCommunicator::refuse(BufferCall& call, OptionalTimeout timeout) {
    Status status;
    {
        const extension::ReleasedGil without_gil;
        status = communicator_->run(call.collective(), timeout);
    }
    const bool differs = status.code() == StatusCode::kMismatch;
    const Status why = status.is_ok() || differs ? call.why_refused() : status;
    throw_status(why.with_context(schedule::to_string(call.kind())));
}

PyCommunicator::Outcome PyCommunicator::run(const comm::OperatorImpl& bound,
                                            std::optional<double> timeout) {
    const auto limit = timeout_of(timeout);
    return wait_here([&] { return bound.run(limit); });
}

PyCommunicator::Outcome PyCommunicator::execute(const comm::OperatorImpl& bound, Buffers buffers,
                                                std::optional<double> timeout) {
    const auto limit = timeout_of(timeout);
    const Event event = released([&] { return bound.execute(limit); });
    return hand_out(event, std::move(buffers));
}

template <typename Run>
PyCommunicator::Outcome PyCommunicator::wait_here(Run run) {
    const Status status = [&] {
        const extension::ReleasedGil released;
        return run();
    }();
    throw_unless_ok(status);
    deferred_->clear();
    return py::none();
}

PyCommunicator::Outcome PyCommunicator::hand_out(const Event& event, Buffers buffers) {
    auto held = hold_until_done(event, std::make_unique<Buffers>(std::move(buffers)), deferred_);
    deferred_->clear();
    return py::cast(std::make_unique<PyEvent>(event, std::move(held)));
}

template <typename Post>
PyCommunicator::Outcome PyCommunicator::exchange(Buffers buffers, const CallOptions& options,
                                                 Post post) {
    const Event event = released(post);
    if (options.async_op) return hand_out(event, std::move(buffers));
    const Status status = wait_for(event, std::nullopt);
    // An interrupted wait leaves the message in flight.
    if (event.is_done())
        buffers.release();
    else
        hold_until_done(event, std::make_unique<Buffers>(std::move(buffers)), deferred_);
    throw_unless_ok(status);
    deferred_->clear();
    return py::none();
}

PyCommunicator::Outcome PyCommunicator::all_reduce(const py::object& x, const Reducing& op,
                                                   const CallOptions& options) {
    return perform({.kind = CollectiveKind::kAllReduce, .reducing = op}, x, py::none(), options);
}

PyCommunicator::Outcome PyCommunicator::broadcast(const py::object& x, Rank root,
                                                  const CallOptions& options) {
    return perform({.kind = CollectiveKind::kBroadcast, .root = root}, x, py::none(), options);
}

PyCommunicator::Outcome PyCommunicator::reduce(const py::object& x, Rank root, const Reducing& op,
                                               const CallOptions& options) {
    return perform({.kind = CollectiveKind::kReduce, .root = root, .reducing = op}, x, py::none(),
                   options);
}

PyCommunicator::Outcome PyCommunicator::all_gather(const py::object& out, const py::object& x,
                                                   const CallOptions& options) {
    return perform({.kind = CollectiveKind::kAllGather}, x, out, options);
}

PyCommunicator::Outcome PyCommunicator::reduce_scatter(const py::object& out, const py::object& x,
                                                       const Reducing& op,
                                                       const CallOptions& options) {
    return perform({.kind = CollectiveKind::kReduceScatter, .reducing = op}, x, out, options);
}

PyCommunicator::Outcome PyCommunicator::gather(const py::object& out, const py::object& x,
                                               Rank root, const CallOptions& options) {
    return perform({.kind = CollectiveKind::kGather, .root = root}, x, out, options);
}

PyCommunicator::Outcome PyCommunicator::scatter(const py::object& out, const py::object& x,
                                                Rank root, const CallOptions& options) {
    return perform({.kind = CollectiveKind::kScatter, .root = root}, x, out, options);
}

PyCommunicator::Outcome PyCommunicator::all_to_all(const py::object& out, const py::object& x,
                                                   const CallOptions& options) {
    return perform({.kind = CollectiveKind::kAllToAll}, x, out, options);
}

PyCommunicator::Outcome PyCommunicator::send(const py::object& x, Rank peer, int tag,
                                             const CallOptions& options) {
    Buffers buffers;
    const Block block = buffers.add(x.ptr(), Access::kRead);
    const DataType type = buffers.type();
    const auto bytes = payload_of(block, type);
    const MessageOptions how = message_options(type, options);
    return exchange(std::move(buffers), options,
                    [&] { return communicator_->send(peer, tag, bytes, how); });
}

PyCommunicator::Outcome PyCommunicator::receive(const py::object& x, Rank peer, int tag,
                                                const CallOptions& options) {
    Buffers buffers;
    const Block block = buffers.add(x.ptr(), Access::kWrite);
    const DataType type = buffers.type();
    const auto bytes = payload_of(block, type);
    const MessageOptions how = message_options(type, options);
    return exchange(std::move(buffers), options,
                    [&] { return communicator_->receive(peer, tag, bytes, how); });
}

PyCommunicator::Outcome PyCommunicator::barrier(const CallOptions& options) {
    const auto limit = timeout_of(options.timeout);
    return wait_here([&] { return communicator_->barrier(limit); });
}

py::object PyCommunicator::health(Seconds timeout) const {
    const auto limit = in_milliseconds(duration_of(timeout));
    const auto peers = released([&] { return communicator_->survey(limit); });
    const py::object make = py::module_::import("pccl.results.peer_health").attr("PeerHealth");
    py::list all;
    for (const comm::SurveyedPeer& peer : peers) {
        const py::object last =
            peer.last_sign
                ? py::object(py::float_(std::chrono::duration<double>(*peer.last_sign).count()))
                : py::none();
        all.append(make(peer.rank, std::string(to_string(peer.state)), peer.detail, last,
                        peer.rank_status.sequence, peer.rank_status.operation,
                        py::tuple(py::cast(peer.rank_status.awaited)),
                        peer.rank_status.gpu_operation,
                        py::tuple(py::cast(peer.rank_status.gpu_awaited))));
    }
    return py::module_::import("pccl.results.table").attr("Table")(all);
}

std::unique_ptr<PyCommunicator> PyCommunicator::shrink(
    const std::optional<std::vector<Rank>>& excluded, std::optional<int> least) {
    auto shrunk = [&]() -> Result<std::shared_ptr<comm::CommunicatorImpl>> {
        const extension::ReleasedGil released;
        const ShrinkOptions wanted{.least = least};
        if (!excluded) return communicator_->shrink(wanted);
        if (excluded->empty()) return Status::invalid_argument("name the ranks to leave out");
        PCCL_TRY(communicator_->check_shrink(*excluded, wanted));
        communicator_->abort(Status::aborted("this communicator is being shrunk"));
        return communicator_->shrink(*excluded, wanted);
    }();
    return std::unique_ptr<PyCommunicator>(
        new PyCommunicator(store_, value_or_throw(std::move(shrunk))));
}

std::unique_ptr<PyCommunicator> PyCommunicator::split(std::optional<int> color, int key,
                                                      OptionalSeconds timeout) {
    const auto limit = timeout_of(timeout);
    auto part = released([&] { return communicator_->split(color, key, limit); });
    if (part == nullptr) return nullptr;
    return std::unique_ptr<PyCommunicator>(new PyCommunicator(store_, std::move(part)));
}

capsule::VerifiedCapsule PyCommunicator::load(const py::object& capsule,
                                              const std::optional<std::string>& sizes,
                                              std::optional<double> timeout) {
    const py::object core = py::getattr(capsule, "_core", capsule);
    const bool is_path = !py::isinstance<capsule::CapsuleFile>(core);
    const auto path =
        is_path ? py::str(py::module_::import("os").attr("fspath")(capsule)).cast<std::string>()
                : std::string();
    std::optional<Result<capsule::CapsuleFile>> file;
    if (!is_path) file = core.cast<capsule::CapsuleFile>();
    const auto limit = timeout_of(timeout);
    return released([&] {
        if (!file) file = capsule::CapsuleFile::read(path);
        return communicator_->load(*file, sizes, limit);
    });
}

void PyCommunicator::unload(const std::string& name, OptionalSeconds timeout) {
    const auto limit = timeout_of(timeout);
    Status status;
    {
        const extension::ReleasedGil released;
        status = communicator_->unload(name, limit);
    }
    throw_unless_ok(status);
}

py::object PyCommunicator::loaded() const {
    const py::object make =
        py::module_::import("pccl.results.loaded_capsule").attr("LoadedCapsule");
    py::list all;
    for (const schedule::SourcePtr& source : communicator_->loaded())
        all.append(make(source->name, to_string(source->kind), capsule::to_text(*source->sizes),
                        hex_digits(source->digest)));
    return py::module_::import("pccl.results.table").attr("Table")(all);
}

}  // namespace pccl::bindings
