// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>

#include <pccl/session.h>
#include "csrc/base/config.h"
#include "csrc/base/fork_checked.h"
#include "csrc/base/text/text.h"
#include "csrc/p2p/session/connect_request.h"
#include "csrc/p2p/session/session_core.h"
#include "csrc/p2p/session/stream_order.h"
#include "csrc/p2p/transfers/plan.h"
#include "csrc/p2p/transfers/registered_memory.h"
#include "csrc/runtime/transports.h"
#include "csrc/sys/socket/interfaces.h"
#include "csrc/transport/rma/gpu_memory.h"
#include "csrc/transport/tcp/wire.h"

namespace pccl::p2p {
namespace {

/// Converts an address to the syntax of PCCL_SOCKET_IFNAME, which has prefixes instead.
std::string interface_of(const std::string& listen) {
    if (listen.empty()) return process_config().socket_ifname;
    if (listen.find('/') != std::string::npos) return listen;
    if (listen.find(':') != std::string::npos) return concat(listen, "/128");
    const bool is_ipv4 = listen.find_first_not_of("0123456789.") == std::string::npos;
    return is_ipv4 ? concat(listen, "/32") : listen;
}

Status check_interface(const std::string& interface) {
    PCCL_ASSIGN_OR_RETURN(const auto all, sys::list_interfaces());
    return sys::choose_interface(all, interface).status().with_context("listen");
}

Status check_sockets(int sockets) {
    const auto most = static_cast<int>(transport::tcp::SocketPurpose::kMostDataSockets);
    if (sockets >= 0 && sockets <= most) return Status::ok();
    return Status::invalid_argument(
        concat(sockets, " TCP sockets: 1 to ", most, ", or 0 for PCCL_TCP_SOCKETS"));
}

/// Returns the runtime of the process, unless the options request a different network.
Result<std::shared_ptr<runtime::Runtime>> runtime_for(const SessionOptions& options) {
    if (options.listen.empty() && options.transports.empty() && options.tcp_sockets == 0)
        return runtime::Runtime::of_process();
    const std::string& names =
        options.transports.empty() ? process_config().transports : options.transports;
    PCCL_ASSIGN_OR_RETURN(const auto allowed, runtime::transports_named(names));
    const std::string interface = interface_of(options.listen);
    // Without the interface, the network would serve this host only, contrary to the request.
    if (!options.listen.empty()) PCCL_TRY(check_interface(interface));
    return runtime::Runtime::create(
        {.allowed = allowed, .interface = interface, .tcp_sockets = options.tcp_sockets});
}

Status check_indices(std::span<const std::uint32_t> indices, std::uint64_t blocks) {
    for (const std::uint32_t index : indices)
        if (index >= blocks)
            return Status::invalid_argument(
                concat("block ", index, " of a plan that has ", blocks));
    return Status::ok();
}

Result<std::shared_ptr<const Plan>> plan_of(const LocalExtent& here, const RemoteExtent& there) {
    return Plan::make({here.memory, here.extent}, {there.memory, there.extent});
}

/// Returns the arguments of a read; callers change them for a write.
Result<TransferArgs> args_of(std::shared_ptr<const Plan> plan,
                             std::span<const std::uint32_t> indices,
                             std::span<const std::byte> notification) {
    PCCL_TRY(check_indices(indices, plan->size()));
    TransferArgs args{.plan = std::move(plan), .indices = {indices.begin(), indices.end()}};
    PCCL_ASSIGN_OR_RETURN(args.notification, payload_of(notification));
    return args;
}

}  // namespace

struct Session::Members {
    /// Returns the core, unless this process is a child of fork().
    [[nodiscard]] ForkChecked<SessionCore> checked() const { return {made_in, *core, "session"}; }
    [[nodiscard]] Result<SessionCore*> get() const { return checked().get(); }

    ForkMark made_in;
    std::shared_ptr<runtime::Runtime> runtime;  // outlives the core's use of it
    std::shared_ptr<SessionCore> core;
};

Result<std::unique_ptr<Session>> Session::create(const SessionOptions& options) {
    PCCL_TRY(check_name(options.name));
    PCCL_TRY(check_sockets(options.tcp_sockets));
    PCCL_ASSIGN_OR_RETURN(auto runtime, runtime_for(options));
    PCCL_ASSIGN_OR_RETURN(auto core, SessionCore::create(options, runtime));
    auto members = std::make_unique<Members>();
    members->runtime = std::move(runtime);
    members->core = std::move(core);
    return std::unique_ptr<Session>(new Session(std::move(members)));
}

Session::Session(std::unique_ptr<Members> members) : members_(std::move(members)) {}

Session::~Session() { close(); }

Status Session::check_usable() const { return members_->checked().check(); }

void Session::close() { static_cast<void>(close(Interrupted())); }

Status Session::close(const Interrupted& interrupted) {
    return members_->checked().use(Status(),
                                   [&](SessionCore& core) { return core.close(interrupted); });
}

const SessionId& Session::id() const { return members_->core->info().id; }

std::string Session::connection_info() const { return members_->core->info().serialise(); }

Result<SessionId> Session::load_remote_conn_info(std::string_view info) {
    PCCL_ASSIGN_OR_RETURN(SessionCore* const core, members_->get());
    PCCL_ASSIGN_OR_RETURN(const auto peer, ConnectionInfo::deserialise(info));
    PCCL_TRY(core->load(peer));
    return peer.id;
}

Status Session::connect(const std::string& peer, Deadline deadline) {
    const auto call = begin_connect(peer);
    const std::optional<Status> ended = await_connection(*call, deadline);
    return ended ? *ended : call->timeout_error();
}

std::shared_ptr<ConnectRequest> Session::begin_connect(const std::string& peer) const {
    return std::make_shared<ConnectRequest>(peer);
}

std::optional<Status> Session::await_connection(ConnectRequest& call, Deadline deadline) {
    const Result<SessionCore*> core = members_->get();
    if (!core.is_ok()) return core.status();
    Status outcome;
    const auto is_decided = [&] {
        const Result<bool> is_connected = call.advance(**core);
        outcome = is_connected.status();
        return !is_connected.is_ok() || *is_connected;
    };
    if (!progress_until(**core, deadline, is_decided)) return std::nullopt;
    return outcome;
}

Result<SessionId> Session::accept(Deadline deadline) { return accept({}, deadline); }

Result<SessionId> Session::accept(const std::string& peer, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(SessionCore* const core, members_->get());
    if (!peer.empty()) PCCL_TRY(check_name(peer));
    Result<std::optional<SessionId>> caller = std::optional<SessionId>();
    const auto is_decided = [&] {
        caller = core->take_caller(peer);
        return !caller.is_ok() || caller->has_value();
    };
    if (!progress_until(*core, deadline, is_decided))
        return Status::timeout(peer.empty()
                                   ? std::string("no session has connected in time")
                                   : concat("session \"", peer, "\" has not connected in time"));
    PCCL_TRY(caller.status());
    return std::move(**caller);
}

Status Session::disconnect(const std::string& peer, const Interrupted& interrupted) {
    PCCL_ASSIGN_OR_RETURN(SessionCore* const core, members_->get());
    const Status reason = Status::aborted(concat("session \"", id().name, "\" has disconnected"));
    return core->disconnect(peer, reason, interrupted);
}

std::vector<SessionId> Session::peers() const {
    return members_->checked().use(std::vector<SessionId>(),
                                   [](const SessionCore& core) { return core.peers(); });
}

Result<std::shared_ptr<LocalMemory>> Session::register_memory(std::span<std::byte> memory,
                                                              std::shared_ptr<const void> owner) {
    PCCL_ASSIGN_OR_RETURN(SessionCore* const core, members_->get());
    PCCL_ASSIGN_OR_RETURN(
        std::shared_ptr<LocalMemory> added,
        core->memory().add({.data = memory.data(), .bytes = memory.size()}, std::move(owner)));
    return added;
}

Result<std::shared_ptr<LocalMemory>> Session::register_gpu_memory(
    std::span<std::byte> memory, int device, std::shared_ptr<const void> owner) {
    PCCL_ASSIGN_OR_RETURN(SessionCore* const core, members_->get());
    if (device < 0) {
        PCCL_ASSIGN_OR_RETURN(device, transport::gpu_of(memory.data()));
    }
    PCCL_ASSIGN_OR_RETURN(std::shared_ptr<LocalMemory> added,
                          core->memory().add({.data = memory.data(),
                                              .bytes = memory.size(),
                                              .kind = abi::MemoryKind::kGpu,
                                              .device = device},
                                             std::move(owner)));
    return added;
}

Result<std::shared_ptr<LocalMemory>> Session::allocate(std::size_t bytes) {
    PCCL_ASSIGN_OR_RETURN(SessionCore* const core, members_->get());
    PCCL_ASSIGN_OR_RETURN(std::shared_ptr<LocalMemory> added, core->memory().allocate(bytes));
    return added;
}

Status Session::deregister_memory(const std::shared_ptr<LocalMemory>& memory) {
    PCCL_ASSIGN_OR_RETURN(SessionCore* const core, members_->get());
    return core->memory().remove(memory);
}

std::uint64_t Session::refused_requests() const {
    return members_->checked().use(
        std::uint64_t{0}, [](const SessionCore& core) { return core.memory().refusals(); });
}

Result<RemoteMemory> Session::import_memory(const std::string& peer,
                                            std::string_view descriptor) const {
    PCCL_ASSIGN_OR_RETURN(const SessionCore* const core, members_->get());
    PCCL_ASSIGN_OR_RETURN(const SessionId owner, core->id_of(peer));
    return import_descriptor(owner, descriptor);
}

Status Session::publish(const std::string& name, const std::shared_ptr<LocalMemory>& memory) {
    PCCL_ASSIGN_OR_RETURN(SessionCore* const core, members_->get());
    return core->memory().publish(name, memory);
}

void Session::withdraw(const std::string& name) {
    members_->checked().use([&](SessionCore& core) { core.inquiries().catalog().withdraw(name); });
}

Result<RemoteMemory> Session::fetch(const std::string& peer, const std::string& name,
                                    Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const auto inquiry, query(peer, name));
    return await_answer(*inquiry, deadline);
}

Result<std::shared_ptr<const Inquiry>> Session::query(const std::string& peer,
                                                      const std::string& name) {
    PCCL_ASSIGN_OR_RETURN(SessionCore* const core, members_->get());
    PCCL_TRY(check_name(name));
    PCCL_ASSIGN_OR_RETURN(const ChosenConnection chosen, core->connection_to(peer));
    return core->inquiries().query(chosen.connection, name);
}

Result<RemoteMemory> Session::await_answer(const Inquiry& inquiry, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(SessionCore* const core, members_->get());
    if (progress_until(*core, deadline, [&] { return inquiry.is_answered(); }))
        return inquiry.answer();
    const ConnectionInfo& queried = inquiry.to()->peer();
    return Status::timeout(concat(queried.to_string(), " has not answered in time what memory \"",
                                  inquiry.name(), "\" is"))
        .with_process(queried.process);
}

Result<Work> Session::read(const LocalExtent& into, const RemoteExtent& from,
                           std::span<const std::byte> notification, StreamEvent after) {
    PCCL_ASSIGN_OR_RETURN(auto plan, plan_of(into, from));
    return post(RmaOp::kRead, std::move(plan), {}, notification, std::move(after));
}

Result<Work> Session::write(const LocalExtent& from, const RemoteExtent& to,
                            std::span<const std::byte> notification, StreamEvent after) {
    PCCL_ASSIGN_OR_RETURN(auto plan, plan_of(from, to));
    return post(RmaOp::kWrite, std::move(plan), {}, notification, std::move(after));
}

Result<Work> Session::post(RmaOp op, std::shared_ptr<const Plan> plan,
                           std::span<const std::uint32_t> indices,
                           std::span<const std::byte> notification, StreamEvent after) {
    PCCL_ASSIGN_OR_RETURN(SessionCore* const core, members_->get());
    PCCL_ASSIGN_OR_RETURN(TransferArgs args, args_of(std::move(plan), indices, notification));
    args.op = op;
    args.after = std::move(after);
    PCCL_ASSIGN_OR_RETURN(auto request, core->begin_transfer(std::move(args)));
    return Work(std::move(request));
}

Result<Work> Session::read_in_order(const Stream& stream, std::shared_ptr<const Plan> plan,
                                    Deadline deadline, std::span<const std::uint32_t> indices,
                                    std::span<const std::byte> notification) {
    PCCL_ASSIGN_OR_RETURN(SessionCore* const core, members_->get());
    PCCL_ASSIGN_OR_RETURN(TransferArgs args, args_of(std::move(plan), indices, notification));
    args.in_order_of = stream;
    PCCL_ASSIGN_OR_RETURN(auto request, begin_ordered_read(*core, std::move(args), deadline));
    return Work(std::move(request));
}

Result<Transfer> Session::create_transfer(const std::string& peer, const TransferOptions& options) {
    PCCL_ASSIGN_OR_RETURN(const SessionCore* const core, members_->get());
    PCCL_TRY(core->id_of(peer).status());
    if (options.window == 0) return Status::invalid_argument("a window of no messages");
    if (options.chunk < TransferOptions::kLeastChunk || options.chunk > Plan::kLongestPiece)
        return Status::invalid_argument(concat("a chunk of ", options.chunk,
                                               " bytes: ", TransferOptions::kLeastChunk, " to ",
                                               Plan::kLongestPiece, " are possible"));
    return Transfer(members_->core, peer, options);
}

Status Session::notify(const std::string& peer, std::span<const std::byte> payload) {
    PCCL_ASSIGN_OR_RETURN(SessionCore* const core, members_->get());
    PCCL_TRY(check_notification(payload));
    return core->send_message(peer, Notified{{payload.begin(), payload.end()}});
}

std::vector<Notification> Session::notifications() {
    return members_->checked().use(std::vector<Notification>(), [](SessionCore& core) {
        SessionProgressGuard(core).progress();
        return core.take_notifications();
    });
}

std::vector<Notification> Session::await_notifications(Deadline deadline) {
    return members_->checked().use(std::vector<Notification>(), [&](SessionCore& core) {
        std::vector<Notification> some;
        static_cast<void>(progress_until(core, deadline, [&] {
            some = core.take_notifications();
            return !some.empty();
        }));
        return some;
    });
}

}  // namespace pccl::p2p
