// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/acceptor.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <span>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/sys/crypto/sha256.h"
#include "csrc/sys/socket/socket.h"
#include "plugins/nccl/data_socket.h"
#include "plugins/nccl/nccl_log.h"

namespace pccl::nccl {
namespace {

// Strangers can cause any number of refusals.
constexpr int kMostRefusals = 10;
// A sender's process may stall while it starts.
constexpr std::chrono::seconds kHandshakeTimeout{60};

}  // namespace

void Arrivals::add(UniqueFd socket, const SocketRole& role) {
    Arrival& arrival = arrivals_[role.path];
    if (arrival.socket.is_open()) return;
    arrival.socket = std::move(socket);
    arrival.interface = role.interface;
}

Status Arrivals::read_begin(std::size_t path) {
    Arrival& arrival = arrivals_[path];
    const auto whole = std::as_writable_bytes(std::span(&arrival.begin, 1));
    while (arrival.received < whole.size()) {
        PCCL_ASSIGN_OR_RETURN(
            const std::size_t got,
            sys::receive_some(arrival.socket.get(), whole.subspan(arrival.received)));
        if (got == 0) return Status::ok();
        arrival.received += got;
    }
    if (!arrival.begin.is_valid(path) || (paths_ != 0 && paths_ != arrival.begin.paths))
        return Status::mismatch(source_, "a sender begins with bytes that are no beginning");
    paths_ = arrival.begin.paths;
    return Status::ok();
}

Result<bool> Arrivals::advance() {
    int begun = 0;
    for (std::size_t i = 0; i < arrivals_.size(); ++i) {
        if (!arrivals_[i].socket.is_open()) continue;
        PCCL_TRY(read_begin(i));
        begun += arrivals_[i].received == sizeof(Begin) ? 1 : 0;
    }
    if (paths_ != 0 && begun == std::popcount(paths_)) return true;
    if (deadline_.passed()) return Status::unavailable("a sender has connected only some paths");
    return false;
}

Result<Paths> Arrivals::finish(const Identity& identity, const NetworkDevice& device) {
    std::vector<Path> paths;
    for (std::size_t i = 0; i < arrivals_.size(); ++i) {
        if (((paths_ >> i) & 1U) == 0) continue;
        Path path{.socket = std::move(arrivals_[i].socket)};
        PCCL_ASSIGN_OR_RETURN(path.ends.near, sys::local_address(path.socket.get()));
        PCCL_ASSIGN_OR_RETURN(path.ends.far, sys::peer_address(path.socket.get()));
        path.ends.far_interface = arrivals_[i].interface.get();
        for (const sys::Interface& own : device.interfaces)
            if (own.address.same_ip(path.ends.near)) path.ends.near_interface = own.name;
        paths.push_back(std::move(path));
    }
    PCCL_ASSIGN_OR_RETURN(
        const std::size_t sent,
        sys::send_some(paths.front().socket.get(), std::as_bytes(std::span(&identity, 1))));
    if (sent != sizeof identity) return Status::unavailable("a new connection takes no bytes");
    return Paths({.rank = source_, .host = role_.host.get()}, std::move(paths));
}

Result<std::shared_ptr<Acceptor>> Acceptor::create(const NetworkDevice& device, Self self) {
    std::shared_ptr<Acceptor> acceptor(new Acceptor(device, std::move(self)));
    for (const sys::Interface& interface : device.interfaces) {
        PCCL_ASSIGN_OR_RETURN(auto server,
                              transport::HandshakeServer::listen(
                                  interface.address.with_port(0),
                                  {.stream = kDataStream, .timeout = kHandshakeTimeout}));
        acceptor->servers_.push_back(std::move(server));
    }
    return acceptor;
}

Result<Handle> Acceptor::listen() {
    Handle handle{.needs_secret = !process_config().secret_file.empty(), .rank = self_.rank};
    PCCL_TRY(sys::fill_random(handle.id));
    if (!handle.needs_secret) PCCL_TRY(sys::fill_random(handle.key));
    PCCL_ASSIGN_OR_RETURN(const transport::Secret secret, handle.secret());
    const std::scoped_lock lock(mutex_);
    for (const auto& server : servers_) handle.addresses.push_back(server->address());
    listening_[handle.id].secret = secret;
    return handle;
}

void Acceptor::ignore(const transport::GroupId& id) {
    const std::scoped_lock lock(mutex_);
    listening_.erase(id);
}

Result<std::unique_ptr<RecvComm>> Acceptor::accept(const transport::GroupId& id) {
    const std::scoped_lock lock(mutex_);
    for (const auto& server : servers_)
        server->advance(*this,
                        [this](UniqueFd socket, const transport::Introduction& introduction) {
                            take(std::move(socket), introduction);
                        });
    std::list<Arrivals>& arrivals = listening_[id].arrivals;
    for (auto each = arrivals.begin(); each != arrivals.end();) {
        const auto is_whole = each->advance();
        if (is_whole.is_ok() && !*is_whole) {
            ++each;
            continue;
        }
        auto paths = is_whole.is_ok() ? each->finish(identity(), device_) : is_whole.status();
        each = arrivals.erase(each);
        if (paths.is_ok()) return std::make_unique<RecvComm>(std::move(*paths));
        refused("tcp", paths.status());
    }
    return std::unique_ptr<RecvComm>();
}

Identity Acceptor::identity() const {
    Identity identity{.rank = self_.rank, .host = HostName::of(self_.host)};
    for (std::size_t i = 0; i < device_.interfaces.size() && i < kMostPaths; ++i)
        identity.interfaces[i] = InterfaceName::of(device_.interfaces[i].name);
    return identity;
}

std::optional<transport::Secret> Acceptor::secret_of(const transport::GroupId& group) {
    const auto found = listening_.find(group);
    return found == listening_.end() ? std::nullopt : std::optional(found->second.secret);
}

void Acceptor::refused(std::string_view transport_name, const Status& why) {
    if (++refusals_ <= kMostRefusals)
        nccl_log().info("a connection over ", transport_name, " is refused: ", why.message());
}

void Acceptor::take(UniqueFd socket, const transport::Introduction& introduction) {
    const auto found = listening_.find(introduction.request.group);
    const auto role = transport::value_in<SocketRole>(introduction.purpose);
    if (found == listening_.end() || role.path >= kMostPaths) return;
    probe_data_socket(socket.get());
    std::list<Arrivals>& arrivals = found->second.arrivals;
    auto own = std::ranges::find_if(arrivals, [&](const Arrivals& a) { return a.is_of(role); });
    if (own == arrivals.end())
        own = arrivals.emplace(arrivals.end(), role, introduction.request.source);
    own->add(std::move(socket), role);
}

}  // namespace pccl::nccl
