// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/acceptor.h"

#include <algorithm>
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

void send_identity(Path& path, const Identity& identity) {
    const auto sent = sys::send_some(path.socket.get(), std::as_bytes(std::span(&identity, 1)));
    if (!sent.is_ok())
        path.lose(sent.status());
    else if (*sent != sizeof identity)
        path.lose(Status::unavailable("a new connection takes no bytes"));
}

}  // namespace

void Arrivals::add(Path path, std::size_t number) {
    Arrival& arrival = arrivals_[number];
    if (!arrival.path.is_alive() && !arrival.is_lost()) arrival.path = std::move(path);
}

Status Arrivals::read_begin(std::size_t number) {
    Arrival& arrival = arrivals_[number];
    const auto whole = std::as_writable_bytes(std::span(&arrival.begin, 1));
    while (!arrival.has_begun()) {
        const auto got =
            sys::receive_some(arrival.path.socket.get(), whole.subspan(arrival.received));
        if (!got.is_ok()) arrival.path.lose(got.status());
        if (!got.is_ok() || *got == 0) return Status::ok();
        arrival.received += *got;
    }
    if (!arrival.begin.is_valid(number) || (paths_ != 0 && paths_ != arrival.begin.paths))
        return Status::mismatch(peer_.rank, "a sender begins with bytes that are no beginning");
    if (paths_ == 0) deadline_ = Deadline::after(grace_);
    paths_ = arrival.begin.paths;
    return Status::ok();
}

Result<bool> Arrivals::advance() {
    for (std::size_t i = 0; i < arrivals_.size(); ++i)
        if (arrivals_[i].path.is_alive()) PCCL_TRY(read_begin(i));
    if (deadline_.passed()) lose_late();
    if (has_lost_all()) return no_path(take_paths());
    for (std::size_t i = 0; i < arrivals_.size(); ++i)
        if (awaits(i)) return false;
    return paths_ != 0;
}

bool Arrivals::counts(std::size_t number) const {
    const Arrival& arrival = arrivals_[number];
    if (paths_ == 0) return arrival.path.is_alive() || arrival.is_lost();
    return ((paths_ >> number) & 1U) != 0;
}

bool Arrivals::awaits(std::size_t number) const {
    return counts(number) && !arrivals_[number].has_begun() && !arrivals_[number].is_lost();
}

void Arrivals::lose_late() {
    for (std::size_t i = 0; i < arrivals_.size(); ++i)
        if (awaits(i))
            arrivals_[i].path.lose(Status::timeout("no byte of the sender has come over it"));
}

bool Arrivals::has_lost_all() const {
    bool any_lost = false;
    for (std::size_t i = 0; i < arrivals_.size(); ++i) {
        if (counts(i) && !arrivals_[i].is_lost()) return false;
        any_lost = any_lost || arrivals_[i].is_lost();
    }
    return any_lost;
}

std::vector<Path> Arrivals::take_paths() {
    std::vector<Path> paths;
    for (std::size_t i = 0; i < arrivals_.size(); ++i)
        if (counts(i)) paths.push_back(std::move(arrivals_[i].path));
    return paths;
}

Status Arrivals::no_path(const std::vector<Path>& lost) const {
    return Status::peer_lost(peer_.rank, concat("no path of a connection from ", peer_.name(),
                                                " is left (", faults_of(lost), ")"));
}

Result<Paths> Arrivals::finish(const Identity& identity) {
    std::vector<Path> paths = take_paths();
    for (Path& path : paths) {
        if (path.is_alive()) send_identity(path, identity);
        if (!path.is_alive()) log_left_out(path, peer_);
    }
    if (std::ranges::none_of(paths, &Path::is_alive)) return no_path(paths);
    return Paths(peer_, std::move(paths));
}

Result<std::shared_ptr<Acceptor>> Acceptor::create(const NetworkDevice& device, Self self) {
    std::shared_ptr<Acceptor> acceptor(new Acceptor(device, std::move(self)));
    Status fault;
    for (const sys::Interface& interface : device.interfaces) {
        auto server = transport::HandshakeServer::listen(
            interface.address.with_port(0), {.stream = kDataStream, .timeout = kHandshakeTimeout});
        if (!server.is_ok()) {
            fault = server.status().with_context(interface.name);
            nccl_log().warn("connections are not accepted at ", fault.message());
            continue;
        }
        acceptor->servers_.push_back(std::move(*server));
        acceptor->interfaces_.push_back(interface.name);
    }
    if (acceptor->servers_.empty()) return fault;
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
        auto paths = is_whole.is_ok() ? each->finish(identity()) : is_whole.status();
        each = arrivals.erase(each);
        if (paths.is_ok()) return std::make_unique<RecvComm>(std::move(*paths));
        refused("tcp", paths.status());
    }
    return std::unique_ptr<RecvComm>();
}

Identity Acceptor::identity() const {
    Identity identity{.rank = self_.rank, .host = HostName::of(self_.host)};
    for (std::size_t i = 0; i < interfaces_.size() && i < kMostPaths; ++i)
        identity.interfaces[i] = InterfaceName::of(interfaces_[i]);
    return identity;
}

Path Acceptor::path_of(UniqueFd socket, const SocketRole& role) const {
    Path path{.socket = std::move(socket), .ends = {.far_interface = role.interface.get()}};
    const auto near = sys::local_address(path.socket.get());
    const auto far = sys::peer_address(path.socket.get());
    if (near.is_ok()) path.ends.near = *near;
    if (far.is_ok()) path.ends.far = *far;
    for (const sys::Interface& own : device_.interfaces)
        if (own.address.same_ip(path.ends.near)) path.ends.near_interface = own.name;
    return path;
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
    own->add(path_of(std::move(socket), role), role.path);
}

}  // namespace pccl::nccl
