// SPDX-License-Identifier: Apache-2.0

// Bindings behind pccl.p2p: sessions, memory, plans and transfers of C++.

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <bit>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pccl/session.h>
#include "csrc/base/config.h"
#include "csrc/bindings/bind.h"
#include "csrc/bindings/buffer.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/fork_bound_class.h"
#include "csrc/bindings/p2p_waits.h"
#include "csrc/bindings/seconds.h"
#include "csrc/bootstrap/core_claim.h"
#include "csrc/extension/gil.h"
#include "csrc/p2p/connection/connection_info.h"
#include "csrc/p2p/connection/lane_count.h"
#include "csrc/p2p/session/connect_request.h"
#include "csrc/p2p/transfers/registered_memory.h"

namespace pccl::bindings {

namespace py = pybind11;
using p2p::LocalMemory;
using p2p::Plan;
using p2p::RemoteMemory;
using p2p::Session;
using p2p::Work;
using py::arg;

namespace {

using MemoryPtr = std::shared_ptr<LocalMemory>;
using PlanPtr = std::shared_ptr<const Plan>;
using NotificationList = std::vector<std::pair<std::string, py::bytes>>;

std::span<const std::byte> span_of(std::string_view text) { return std::as_bytes(std::span(text)); }

py::bytes bytes_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::unique_ptr<Session> open_session(const std::string& name, const std::string& listen,
                                      const std::string& transports, int tcp_sockets,
                                      Seconds connect_timeout) {
    const p2p::SessionOptions options{
        .name = name,
        .listen = listen,
        .transports = transports,
        .tcp_sockets = tcp_sockets,
        .connect_timeout = duration_of(connect_timeout, "connect_timeout")};
    return released([&] { return Session::create(options); });
}

void close(Session& session) {
    throw_unless_ok([&] {
        const extension::ReleasedGil released;
        return session.close(&extension::check_signals);
    }());
}

void connect(Session& session, const std::string& peer, OptionalSeconds timeout) {
    const auto call = session.begin_connect(peer);
    std::optional<Status> ended;
    const auto try_until = [&](Deadline deadline) {
        ended = session.await_connection(*call, deadline);
        return ended ? *ended : call->timeout_error();
    };
    wait_for_signals_too(timeout, try_until, [&](const Status&) { return ended; }, peer);
}

void disconnect(Session& session, const std::string& peer) {
    const Status ended = [&] {
        const extension::ReleasedGil released;
        return session.disconnect(peer, &extension::check_signals);
    }();
    throw_unless_ok(ended, peer);
}

std::pair<std::string, std::uint64_t> id_of(const p2p::SessionId& id) {
    return {id.name, id.incarnation};
}

std::vector<std::pair<std::string, std::uint64_t>> peers_of(const Session& session) {
    std::vector<std::pair<std::string, std::uint64_t>> peers;
    for (const auto& id : session.peers()) peers.push_back(id_of(id));
    return peers;
}

MemoryPtr register_buffer(Session& session, const py::object& object) {
    auto buffers = std::make_shared<Buffers>();
    const Block block = buffers->add(object.ptr(), Access::kWrite);
    const std::span memory(block.data, block.count * size_of(buffers->type()));
    return released([&] { return session.register_memory(memory, std::move(buffers)); });
}

MemoryPtr register_address(Session& session, std::uint64_t address, std::size_t nbytes) {
    return released(
        [&] { return session.register_memory({std::bit_cast<std::byte*>(address), nbytes}); });
}

/// `owner` keeps the memory alive.
MemoryPtr register_gpu(Session& session, std::uint64_t address, std::size_t nbytes, int device,
                       py::object owner) {
    auto buffers = std::make_shared<Buffers>();
    buffers->keep(std::move(owner));
    const std::span memory(std::bit_cast<std::byte*>(address), nbytes);
    return released(
        [&] { return session.register_gpu_memory(memory, device, std::move(buffers)); });
}

/// Returns an array of bytes that keeps their registration.
py::array array_of(const MemoryPtr& memory) {
    if (memory->device() >= 0)
        throw_status(Status::invalid_argument("numpy shows no memory of GPUs"));
    return py::array_t<std::uint8_t>({memory->bytes()}, {1},
                                     reinterpret_cast<const std::uint8_t*>(memory->data()),
                                     py::cast(memory));
}

/// Parses (base, length, stride, count), or rows of offset and length.
p2p::Extents blocks_of(const py::object& blocks) {
    if (py::isinstance<py::tuple>(blocks)) {
        const auto [base, length, stride, count] =
            blocks.cast<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>>();
        return p2p::StridedExtents{base, length, stride, count};
    }
    const auto rows = blocks.cast<py::array_t<std::uint64_t, py::array::c_style>>();
    const auto at = rows.unchecked<2>();
    std::vector<p2p::Extent> list(static_cast<std::size_t>(at.shape(0)));
    for (py::ssize_t i = 0; i < at.shape(0); ++i)
        list[static_cast<std::size_t>(i)] = {at(i, 0), at(i, 1)};
    return list;
}

PlanPtr prepare(const MemoryPtr& local, const py::object& local_blocks, const RemoteMemory& remote,
                const py::object& remote_blocks) {
    Plan::Local here{local, blocks_of(local_blocks)};
    Plan::Remote there{remote, blocks_of(remote_blocks)};
    return released([&] { return Plan::make(std::move(here), std::move(there)); });
}

/// Address of a stream, and its GPU.
using StreamAddress = std::pair<std::uint64_t, int>;
using StreamOf = std::optional<StreamAddress>;
/// None: all blocks.
using Indices = std::optional<py::array_t<std::uint32_t, py::array::c_style>>;

p2p::Stream stream_at(const StreamAddress& stream) {
    return {.stream = std::bit_cast<void*>(stream.first), .device = stream.second};
}

Result<p2p::StreamEvent> event_of(const StreamOf& stream) {
    if (!stream) return p2p::StreamEvent();
    return p2p::event_of(stream_at(*stream));
}

std::span<const std::uint32_t> chosen_by(const Indices& indices) {
    if (!indices) return {};
    return {indices->data(), static_cast<std::size_t>(indices->size())};
}

Work post(Session& session, bool writes, const PlanPtr& plan, const Indices& indices,
          std::string_view notify, const StreamOf& stream) {
    const auto chosen = chosen_by(indices);
    const RmaOp op = writes ? RmaOp::kWrite : RmaOp::kRead;
    return released(
        [&]() -> Result<Work> {
            PCCL_ASSIGN_OR_RETURN(auto after, event_of(stream));
            return session.post(op, plan, chosen, span_of(notify), std::move(after));
        },
        plan->remote().owner().name);
}

/// `timeout` limits the wait for a connection, in seconds.
Work read_in_order(Session& session, const PlanPtr& plan, const Indices& indices,
                   std::string_view notify, const StreamAddress& stream, Seconds timeout) {
    const auto chosen = chosen_by(indices);
    std::optional<Work> work;
    const auto try_until = [&](Deadline deadline) -> Status {
        PCCL_ASSIGN_OR_RETURN(work, session.read_in_order(stream_at(stream), plan, deadline, chosen,
                                                          span_of(notify)));
        return Status::ok();
    };
    wait_for_signals_too(timeout, try_until, &unless_timeout, plan->remote().owner().name);
    return *work;
}

Work transfer(Session& session, bool writes, const std::pair<MemoryPtr, std::uint64_t>& local,
              const std::pair<RemoteMemory, std::uint64_t>& remote, std::uint64_t nbytes,
              std::string_view notify, const StreamOf& stream) {
    const p2p::LocalExtent here{local.first, {local.second, nbytes}};
    const p2p::RemoteExtent there{remote.first, {remote.second, nbytes}};
    return released(
        [&]() -> Result<Work> {
            PCCL_ASSIGN_OR_RETURN(auto after, event_of(stream));
            return writes ? session.write(here, there, span_of(notify), std::move(after))
                          : session.read(here, there, span_of(notify), std::move(after));
        },
        remote.first.owner().name);
}

/// Returns the seconds of each of `rounds` successive posts of all blocks. A loop in Python would
/// distort the times of small ones.
std::vector<double> time_posts(Session& session, bool writes, const PlanPtr& plan, int rounds) {
    const RmaOp op = writes ? RmaOp::kWrite : RmaOp::kRead;
    return released([&]() -> Result<std::vector<double>> {
        std::vector<double> seconds;
        for (int round = 0; round < rounds; ++round) {
            const TimePoint begin = system_clock().now();
            PCCL_ASSIGN_OR_RETURN(const Work work, session.post(op, plan));
            PCCL_TRY(work.wait(Deadline::after(std::chrono::minutes(1))));
            seconds.push_back(std::chrono::duration<double>(system_clock().now() - begin).count());
        }
        return seconds;
    });
}

/// Returns none in a child of fork(), where waiting for notifications raises.
NotificationList notifications(Session& session, OptionalSeconds timeout) {
    if (timeout != 0.0) throw_unless_ok(session.check_usable());
    const Deadline deadline = deadline_after(timeout);
    const auto received = released([&]() -> Result<std::vector<p2p::Notification>> {
        for (;;) {
            auto some = session.await_notifications(deadline.within(kSignalSlice));
            if (!some.empty() || deadline.passed()) return some;
            PCCL_TRY(extension::check_signals());
        }
    });
    NotificationList list;
    for (const auto& each : received) list.emplace_back(each.from, bytes_of(each.bytes));
    return list;
}

/// Accepts any peer if the name is empty.
std::string accept(Session& session, const std::string& peer, OptionalSeconds timeout) {
    std::string caller;
    const auto try_until = [&](Deadline deadline) {
        const auto accepted = session.accept(peer, deadline);
        if (accepted.is_ok()) caller = accepted->name;
        return accepted.status();
    };
    wait_for_signals_too(timeout, try_until, &unless_timeout, peer);
    return caller;
}

RemoteMemory fetch(Session& session, const std::string& peer, const std::string& name,
                   OptionalSeconds timeout) {
    std::shared_ptr<const p2p::Inquiry> inquiry;
    std::optional<RemoteMemory> fetched;
    const auto try_until = [&](Deadline deadline) -> Status {
        if (inquiry == nullptr) {
            PCCL_ASSIGN_OR_RETURN(inquiry, session.query(peer, name));
        }
        PCCL_ASSIGN_OR_RETURN(fetched, session.await_answer(*inquiry, deadline));
        return Status::ok();
    };
    wait_for_signals_too(timeout, try_until, &unless_timeout, peer);
    return *fetched;
}

bool is_work_done(const Work& work) {
    const bool ended = [&] {
        const extension::ReleasedGil released;
        return work.poll();
    }();
    if (!ended) return false;
    throw_unless_ok(work.status(), work.peer().name);
    return true;
}

py::dict stats_of(const Work& work) {
    const p2p::WorkStats stats = [&] {
        const extension::ReleasedGil released;
        return work.stats();
    }();
    py::dict values;
    values["nbytes"] = stats.bytes;
    values["blocks"] = stats.blocks;
    values["pieces"] = stats.pieces;
    values["seconds"] = std::chrono::duration<double>(stats.taken).count();
    values["path"] = stats.path;
    values["reasons"] = stats.reasons;
    values["lanes"] = stats.lanes;
    values["lane_reason"] = stats.lane_reason;
    return values;
}

/// Returns the lanes between this process and an equal one, and why there are none.
std::pair<std::size_t, std::string> lanes_to_an_equal(bool is_on_host) {
    throw_unless_ok(check_settings());
    const auto claim = bootstrap::CoreClaim::of_process();
    p2p::LaneCount count = p2p::lanes_between(claim, claim, is_on_host, {});
    return {count.lanes, std::move(count.reason)};
}

/// Parses a directory entry: the name of the info's session, and that session's memories. It
/// changes no session.
std::pair<std::string, std::vector<RemoteMemory>> read_entry(
    std::string_view info, const std::vector<std::string>& descriptors) {
    const auto peer = value_or_throw(p2p::ConnectionInfo::deserialise(info));
    std::vector<RemoteMemory> memories;
    memories.reserve(descriptors.size());
    for (const std::string& each : descriptors)
        memories.push_back(value_or_throw(p2p::import_descriptor(peer.id, each), peer.id.name));
    return {peer.id.name, std::move(memories)};
}

using SessionClass = ForkBoundClass<Session>;

/// Binds the functions by which sessions connect.
void bind_meeting(SessionClass& session) {
    session.anywhere()
        .def_property_readonly("id", [](const Session& self) { return id_of(self.id()); })
        .def("connection_info",
             [](const Session& self) { return py::bytes(self.connection_info()); })
        .def_static("read_entry", &read_entry, arg("info"), arg("descriptors"));
    session.def_property_readonly("refused_requests", &Session::refused_requests)
        .def(
            "load",
            [](Session& self, std::string_view info) {
                return id_of(released([&] { return self.load_remote_conn_info(info); }));
            },
            arg("info"))
        .def("connect", &connect, arg("peer"), arg("timeout"))
        .def("accept", &accept, arg("peer"), arg("timeout"))
        .def("disconnect", &disconnect, arg("peer"))
        .def("peers", &peers_of);
}

/// Binds the registration and the publication of memory.
void bind_memories(SessionClass& session) {
    session.def("register", &register_buffer, arg("buffer"))
        .def("register_address", &register_address, arg("address"), arg("nbytes"))
        .def("register_gpu", &register_gpu, arg("address"), arg("nbytes"), arg("device"),
             arg("owner"))
        .def(
            "allocate",
            [](Session& self, std::size_t nbytes) {
                return released([&] { return self.allocate(nbytes); });
            },
            arg("nbytes"))
        .def(
            "deregister",
            [](Session& self, const MemoryPtr& memory) {
                throw_unless_ok([&] {
                    const extension::ReleasedGil released;
                    return self.deregister_memory(memory);
                }());
            },
            arg("memory"))
        .def(
            "import_memory",
            [](const Session& self, const std::string& peer, std::string_view descriptor) {
                return value_or_throw(self.import_memory(peer, descriptor), peer);
            },
            arg("peer"), arg("descriptor"))
        .def(
            "publish",
            [](Session& self, const std::string& name, const MemoryPtr& memory) {
                throw_unless_ok([&] {
                    const extension::ReleasedGil released;
                    return self.publish(name, memory);
                }());
            },
            arg("name"), arg("memory"))
        .def("withdraw", &Session::withdraw, arg("name"))
        .def("fetch", &fetch, arg("peer"), arg("name"), arg("timeout"));
}

/// Binds transfers and notifications.
void bind_moves(SessionClass& session) {
    session
        .def("transfer", &transfer, arg("writes"), arg("local"), arg("remote"), arg("nbytes"),
             arg("notify"), arg("stream"))
        .def("post", &post, arg("writes"), arg("plan"), arg("indices"), arg("notify"),
             arg("stream"))
        .def("read_in_order", &read_in_order, arg("plan"), arg("indices"), arg("notify"),
             arg("stream"), arg("timeout"))
        .def(
            "create_transfer",
            [](Session& self, const std::string& peer, std::size_t window, std::uint64_t chunk) {
                return value_or_throw(
                    self.create_transfer(peer, {.window = window, .chunk = chunk}), peer);
            },
            arg("peer"), arg("window"), arg("chunk"))
        .def("time_posts", &time_posts, arg("writes"), arg("plan"), arg("rounds"))
        .def(
            "notify",
            [](Session& self, const std::string& peer, std::string_view payload) {
                const Status sent = [&] {
                    const extension::ReleasedGil released;
                    return self.notify(peer, span_of(payload));
                }();
                throw_unless_ok(sent, peer);
            },
            arg("peer"), arg("payload"))
        .anywhere()
        .def("notifications", &notifications, arg("timeout"));
}

void bind_session(extension::Module& module) {
    SessionClass session(module, "_P2pSession");
    session.anywhere()
        .def_init(&open_session, arg("name"), arg("listen") = "", arg("transports") = "",
                  arg("tcp_sockets") = 0, arg("connect_timeout") = 10.0)
        .def("close", &close);
    bind_meeting(session);
    bind_memories(session);
    bind_moves(session);
}

void bind_registered_memory(extension::Module& module) {
    extension::Class<LocalMemory, MemoryPtr>(module, "_P2pMemory")
        .def_property_readonly("nbytes", &LocalMemory::bytes)
        .def_property_readonly("device", &LocalMemory::device)
        .def("descriptor",
             [](const LocalMemory& self) { return py::bytes(self.serialised_descriptor()); })
        .def("array", &array_of);
    extension::Class<RemoteMemory>(module, "_P2pRemoteMemory")
        .def_property_readonly("nbytes", &RemoteMemory::bytes)
        .def_property_readonly("owner",
                               [](const RemoteMemory& self) { return id_of(self.owner()); });
}

void bind_work(extension::Module& module) {
    extension::Class<Plan, std::shared_ptr<Plan>>(module, "_P2pPlan")
        .def_init(
            [](const MemoryPtr& local, const py::object& local_blocks, const RemoteMemory& remote,
               const py::object& remote_blocks) {
                return std::const_pointer_cast<Plan>(
                    prepare(local, local_blocks, remote, remote_blocks));
            },
            arg("local"), arg("local_blocks"), arg("remote"), arg("remote_blocks"))
        .def("__len__", &Plan::size)
        .def_property_readonly("nbytes", &Plan::bytes);
    ForkBoundClass<Work>(module, "_P2pWork")
        .def("done", &is_work_done)
        .def("wait", &wait_for_end<Work>, arg("timeout"))
        .def("stats", &stats_of)
        .anywhere()
        .def("release", &Work::release);
}

}  // namespace

void bind_p2p(extension::Module& module) {
    bind_registered_memory(module);
    bind_work(module);
    bind_p2p_transfer(module);
    bind_session(module);
    module.def("_lanes_to_an_equal", &lanes_to_an_equal, arg("is_on_host"));
}

}  // namespace pccl::bindings
