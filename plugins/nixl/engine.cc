// SPDX-License-Identifier: Apache-2.0
#include "plugins/nixl/engine.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "csrc/base/bytes.h"
#include "csrc/base/ids.h"
#include "csrc/base/log/log.h"
#include "csrc/base/text/digest.h"
#include "csrc/base/text/text.h"
#include "csrc/p2p/connection/control_message.h"

namespace pccl::nixl {
namespace {

constexpr std::size_t kLongestAgent = 4 * kKiB;
// Limit of connecting, and of the wait for cancelled transfers when their memory is deregistered.
constexpr Duration kTimeout = std::chrono::seconds(10);

nixl_status_t code_of(const Status& status) {
    switch (status.code()) {
        case StatusCode::kOk:
            return NIXL_SUCCESS;
        case StatusCode::kInvalidArgument:
            return NIXL_ERR_INVALID_PARAM;
        case StatusCode::kUnsupported:
            return NIXL_ERR_NOT_SUPPORTED;
        case StatusCode::kUnavailable:
            return NIXL_ERR_NOT_FOUND;
        case StatusCode::kPeerLost:
            return NIXL_ERR_REMOTE_DISCONNECT;
        case StatusCode::kAborted:
            return NIXL_ERR_CANCELED;
        default:
            return NIXL_ERR_BACKEND;
    }
}

/// NIXL has no words for errors.
nixl_status_t nixl_status_of(const Status& status) {
    if (!status.is_ok()) log(LogLevel::kWarning, "nixl: ", status.message());
    return code_of(status);
}

/// Agents may have any name.
std::string session_name(const std::string& agent) {
    if (p2p::check_name(agent).is_ok()) return agent;
    Digest digest;
    digest.add(agent);
    return concat("agent-", digest.value());
}

bool is_known(nixl_mem_t kind) { return kind == DRAM_SEG || kind == VRAM_SEG; }

/// Pairs of one local and one remote memory.
struct Pairs {
    const LocalMetadata* local;
    const RemoteMetadata* remote;
    std::vector<p2p::Extent> here;
    std::vector<p2p::Extent> there;
};

/// In the order in which each pair of memories comes first.
std::vector<Pairs> sorted(const nixl_meta_dlist_t& local, const nixl_meta_dlist_t& remote) {
    std::vector<Pairs> all;
    std::map<std::pair<const nixlBackendMD*, const nixlBackendMD*>, std::size_t> places;
    for (int i = 0; i < local.descCount(); ++i) {
        const auto [place, is_new] =
            places.try_emplace({local[i].metadataP, remote[i].metadataP}, all.size());
        if (is_new)
            all.push_back({.local = static_cast<const LocalMetadata*>(local[i].metadataP),
                           .remote = static_cast<const RemoteMetadata*>(remote[i].metadataP),
                           .here = {},
                           .there = {}});
        Pairs& pairs = all[place->second];
        pairs.here.push_back({local[i].addr - pairs.local->begin(), local[i].len});
        pairs.there.push_back({remote[i].addr - pairs.remote->begin(), remote[i].len});
    }
    return all;
}

Result<std::vector<std::shared_ptr<const p2p::Plan>>> plans_for(const nixl_meta_dlist_t& local,
                                                                const nixl_meta_dlist_t& remote) {
    std::vector<std::shared_ptr<const p2p::Plan>> plans;
    for (Pairs& pairs : sorted(local, remote)) {
        PCCL_ASSIGN_OR_RETURN(auto plan,
                              p2p::Plan::make({pairs.local->memory(), std::move(pairs.here)},
                                              {pairs.remote->memory(), std::move(pairs.there)}));
        plans.push_back(std::move(plan));
    }
    return plans;
}

}  // namespace

Engine::Engine(const nixlBackendInitParams* parameters) : nixlBackendEngine(parameters) {
    auto session = p2p::Session::create({.name = session_name(localAgent),
                                         .listen = parameter("listen"),
                                         .transports = parameter("transports")});
    initErr = nixl_status_of(session.status()) != NIXL_SUCCESS;
    if (initErr) return;
    session_ = std::move(*session);
    initErr = loadRemoteConnInfo(localAgent, session_->connection_info()) != NIXL_SUCCESS;
}

std::string Engine::parameter(const std::string& name) const {
    std::string value;
    return getInitParam(name, value) == NIXL_SUCCESS ? value : std::string();
}

nixl_status_t Engine::registerMem(const nixlBlobDesc& memory, const nixl_mem_t& kind,
                                  nixlBackendMD*& out) {
    if (!is_known(kind)) return NIXL_ERR_NOT_SUPPORTED;
    const std::span bytes(reinterpret_cast<std::byte*>(memory.addr), memory.len);
    auto registered = kind == DRAM_SEG
                          ? session_->register_memory(bytes)
                          : session_->register_gpu_memory(bytes, static_cast<int>(memory.devId));
    if (!registered.is_ok()) return nixl_status_of(registered.status());
    out = new LocalMetadata(std::move(*registered));
    return NIXL_SUCCESS;
}

nixl_status_t Engine::deregisterMem(nixlBackendMD* metadata) {
    const std::unique_ptr<LocalMetadata> local(static_cast<LocalMetadata*>(metadata));
    await_released();
    return nixl_status_of(session_->deregister_memory(local->memory()));
}

/// Memory of what was given up is in use until that has ended.
void Engine::await_released() const {
    std::vector<p2p::Work> released;
    {
        const std::lock_guard lock(mutex_);
        released.swap(released_);
    }
    const Deadline deadline = Deadline::after(kTimeout);
    for (const p2p::Work& work : released) static_cast<void>(work.wait(deadline));
}

nixl_status_t Engine::getPublicData(const nixlBackendMD* metadata, std::string& out) const {
    out = static_cast<const LocalMetadata*>(metadata)->memory()->serialised_descriptor();
    return NIXL_SUCCESS;
}

nixl_status_t Engine::loadRemoteMD(const nixlBlobDesc& memory, const nixl_mem_t& kind,
                                   const std::string& agent, nixlBackendMD*& out) {
    if (!is_known(kind)) return NIXL_ERR_NOT_SUPPORTED;
    return load(agent, memory.metaInfo, memory.addr, out);
}

nixl_status_t Engine::loadLocalMD(nixlBackendMD* local, nixlBackendMD*& out) {
    const auto* const registered = static_cast<const LocalMetadata*>(local);
    return load(localAgent, registered->memory()->serialised_descriptor(), registered->begin(),
                out);
}

nixl_status_t Engine::load(const std::string& agent, const std::string& descriptor,
                           std::uintptr_t begin, nixlBackendMD*& out) const {
    const auto session = session_of(agent);
    if (!session.is_ok()) return NIXL_ERR_NOT_FOUND;
    auto imported = session_->import_memory(*session, descriptor);
    if (!imported.is_ok()) return nixl_status_of(imported.status());
    out = new RemoteMetadata(std::move(*imported), begin);
    return NIXL_SUCCESS;
}

nixl_status_t Engine::unloadMD(nixlBackendMD* metadata) {
    delete metadata;
    return NIXL_SUCCESS;
}

nixl_status_t Engine::getConnInfo(std::string& out) const {
    out = session_->connection_info();
    return NIXL_SUCCESS;
}

nixl_status_t Engine::loadRemoteConnInfo(const std::string& agent, const std::string& info) {
    const auto peer = session_->load_remote_conn_info(info);
    if (!peer.is_ok()) return nixl_status_of(peer.status());
    const std::lock_guard lock(mutex_);
    sessions_[agent] = peer->name;
    return NIXL_SUCCESS;
}

Result<std::string> Engine::session_of(const std::string& agent) const {
    const std::lock_guard lock(mutex_);
    const auto found = sessions_.find(agent);
    if (found != sessions_.end()) return found->second;
    return Status::invalid_argument(
        concat("the connection info of agent \"", agent.substr(0, 64), "\" is not loaded"));
}

nixl_status_t Engine::connect(const std::string& agent) {
    const auto session = session_of(agent);
    if (!session.is_ok()) return NIXL_ERR_NOT_FOUND;
    if (agent == localAgent) return NIXL_SUCCESS;  // with the first transfer
    return nixl_status_of(session_->connect(*session, Deadline::after(kTimeout)));
}

nixl_status_t Engine::disconnect(const std::string& agent) {
    const auto session = session_of(agent);
    if (!session.is_ok()) return NIXL_ERR_NOT_FOUND;
    if (agent != localAgent) {
        const std::lock_guard lock(mutex_);
        sessions_.erase(agent);
    }
    return nixl_status_of(session_->disconnect(*session));
}

nixl_status_t Engine::prepXfer(const nixl_xfer_op_t&, const nixl_meta_dlist_t& local,
                               const nixl_meta_dlist_t& remote, const std::string& agent,
                               nixlBackendReqH*& out, const nixl_opt_b_args_t*) const {
    const auto session = session_of(agent);
    if (!session.is_ok()) return NIXL_ERR_NOT_FOUND;
    if (local.descCount() != remote.descCount() || local.descCount() == 0)
        return NIXL_ERR_INVALID_PARAM;
    auto plans = plans_for(local, remote);
    if (!plans.is_ok()) return nixl_status_of(plans.status());
    out = new Request(*session, std::move(*plans));
    return NIXL_SUCCESS;
}

nixl_status_t Engine::postXfer(const nixl_xfer_op_t& op, const nixl_meta_dlist_t&,
                               const nixl_meta_dlist_t&, const std::string&,
                               nixlBackendReqH*& handle, const nixl_opt_b_args_t* options) const {
    auto& request = static_cast<Request&>(*handle);
    request.works.clear();
    request.notification.clear();
    std::vector<std::byte> payload;
    if (options != nullptr && options->hasNotif) payload = payload_of(options->notifMsg);
    // Behind one plan the session itself sends it.
    if (request.plans.size() > 1) request.notification = std::exchange(payload, {});
    const auto direction = op == NIXL_READ ? RmaOp::kRead : RmaOp::kWrite;
    for (const auto& plan : request.plans) {
        auto work = session_->post(direction, plan, {}, payload);
        if (!work.is_ok()) {
            for (const p2p::Work& begun : request.works) begun.release();
            return nixl_status_of(work.status());
        }
        request.works.push_back(std::move(*work));
    }
    return checkXfer(handle);
}

nixl_status_t Engine::checkXfer(nixlBackendReqH* handle) const {
    auto& request = static_cast<Request&>(*handle);
    if (!std::ranges::all_of(request.works, &p2p::Work::poll)) return NIXL_IN_PROG;
    for (const p2p::Work& work : request.works)
        if (!work.status().is_ok()) return nixl_status_of(work.status());
    if (request.notification.empty()) return NIXL_SUCCESS;
    return nixl_status_of(
        session_->notify(request.session, std::exchange(request.notification, {})));
}

nixl_status_t Engine::releaseReqH(nixlBackendReqH* handle) const {
    const std::unique_ptr<Request> request(static_cast<Request*>(handle));
    for (const p2p::Work& work : request->works) {
        if (work.is_complete()) continue;
        work.release();
        const std::lock_guard lock(mutex_);
        std::erase_if(released_, [](const p2p::Work& each) { return each.is_complete(); });
        released_.push_back(work);
    }
    return NIXL_SUCCESS;
}

std::vector<std::byte> Engine::payload_of(const std::string& message) const {
    ByteWriter out;
    out.text(localAgent);
    out.text(message);
    const std::string text = out.take();
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

nixl_status_t Engine::getNotifs(notif_list_t& out) {
    if (!out.empty()) return NIXL_ERR_INVALID_PARAM;
    for (const p2p::Notification& each : session_->notifications()) {
        ByteReader in({reinterpret_cast<const char*>(each.bytes.data()), each.bytes.size()});
        std::string agent;
        std::string message;
        Status read = in.text(agent, kLongestAgent);
        if (read.is_ok()) read = in.text(message, p2p::kMostNotification);
        if (nixl_status_of(read.with_context(concat("a notification of ", each.from))) ==
            NIXL_SUCCESS)
            out.emplace_back(std::move(agent), std::move(message));
    }
    return NIXL_SUCCESS;
}

nixl_status_t Engine::genNotif(const std::string& agent, const std::string& message) const {
    const auto session = session_of(agent);
    if (!session.is_ok()) return NIXL_ERR_NOT_FOUND;
    return nixl_status_of(session_->notify(*session, payload_of(message)));
}

}  // namespace pccl::nixl
