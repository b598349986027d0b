// SPDX-License-Identifier: Apache-2.0
#include "csrc/runtime/transports.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/log/log.h"
#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/secret_file.h"
#include "csrc/runtime/rdma.h"
#include "csrc/transport/control/socket_control_plane.h"
#include "csrc/transport/netplugin/net_transport.h"
#include "csrc/transport/shm/shm_transport.h"
#include "csrc/transport/tcp/tcp_transport.h"
#ifdef PCCL_WITH_VERBS
#include "csrc/transport/verbs/verbs_transport.h"
#endif

namespace pccl::runtime {
namespace {

using transport::TransportKind;

constexpr std::size_t kLongestShown = 64;
constexpr std::size_t kMostShown = 8;
using MadeTransport = Result<std::unique_ptr<transport::Transport>>;

/// Parameters for the construction of a transport.
struct TransportParts {
    const std::shared_ptr<transport::Waiter>& waiter;
    const transport::SocketControlPlane& control;
    int tcp_sockets = 0;
    bool is_chosen = false;  // the transports are the user's choice
    bool has_named_interfaces = false;
};

MadeTransport make_shm(const TransportParts& parts) {
    PCCL_ASSIGN_OR_RETURN(const auto here, parts.control.within_host());
    PCCL_TRY(transport::shm::check_shared_memory(*parts.waiter));
    return MadeTransport(std::make_unique<transport::shm::ShmTransport>(*parts.waiter, here));
}

std::string net_plugin_name() {
    const std::string& name = process_config().net_plugin;
    return name.empty() ? sys::net_plugin::kUsualName : name;
}

MadeTransport make_netplugin(const TransportParts& parts) {
    const Config& config = process_config();
    PCCL_ASSIGN_OR_RETURN(const auto here, parts.control.between_hosts());
    auto made =
        transport::netplugin::NetTransport::create(parts.waiter, here,
                                                   {.plugin = net_plugin_name(),
                                                    .stream = transport::tcp::TcpOptions().stream,
                                                    .peer_timeout = config.peer_timeout});
    if (made.is_ok()) return MadeTransport(std::move(*made));
    const bool is_missing = made.status().code() == StatusCode::kInvalidArgument;
    if (is_missing && !config.net_plugin.empty())
        return made.status().with_context("PCCL_NET_PLUGIN");
    // PCCL_TRANSPORTS requests it by name.
    if (parts.is_chosen) return Status::invalid_argument(made.status().message());
    return made.status();
}

MadeTransport make_tcp(const TransportParts& parts) {
    PCCL_ASSIGN_OR_RETURN(const auto here, parts.control.between_hosts());
    const Config& config = process_config();
    const int sockets = parts.tcp_sockets != 0 ? parts.tcp_sockets : config.tcp_sockets;
    PCCL_ASSIGN_OR_RETURN(auto made, transport::tcp::TcpTransport::create(
                                         *parts.waiter, here,
                                         {.data_sockets = sockets,
                                          .has_named_interfaces = parts.has_named_interfaces,
                                          .peer_timeout = config.peer_timeout}));
    return MadeTransport(std::move(made));
}

#ifdef PCCL_WITH_VERBS
MadeTransport make_verbs(const TransportParts& parts) {
    PCCL_ASSIGN_OR_RETURN(const auto here, parts.control.between_hosts());
    const Config& config = process_config();
    PCCL_ASSIGN_OR_RETURN(const auto way, transport::verbs::parse_connect_way(config.rdma.connect));
    PCCL_ASSIGN_OR_RETURN(auto gpu_ways, transport::verbs::parse_gpu_ways(config.rdma.gpu));
    PCCL_ASSIGN_OR_RETURN(auto made, transport::verbs::VerbsTransport::create(
                                         *parts.waiter, here,
                                         {.hca = config.rdma.hca,
                                          .soft = parts.is_chosen,
                                          .gid_index = config.rdma.gid_index,
                                          .queue_pairs = config.rdma.queue_pairs,
                                          .way = way,
                                          .gpu_ways = std::move(gpu_ways),
                                          .stream = transport::tcp::TcpOptions().stream,
                                          .peer_timeout = config.peer_timeout}));
    return MadeTransport(std::move(made));
}
#endif

/// Distance of a transport's peers, by which the control plane must listen for them.
enum class PeerDistance { kHost, kNetwork };

struct TransportEntry {
    TransportKind kind;
    PeerDistance reach;
    MadeTransport (*make)(const TransportParts& parts);
};
constexpr std::array kTransports{
    // fastest first
    TransportEntry{TransportKind::kShm, PeerDistance::kHost, &make_shm},
    TransportEntry{TransportKind::kNetPlugin, PeerDistance::kNetwork, &make_netplugin},
#ifdef PCCL_WITH_VERBS
    TransportEntry{TransportKind::kVerbs, PeerDistance::kNetwork, &make_verbs},
#endif
    TransportEntry{TransportKind::kTcp, PeerDistance::kNetwork, &make_tcp},
};

/// Returns whether a transport is used: a net plug-in is used where a setting requests it.
bool is_used(TransportKind kind, const NetworkOptions& options) {
    const bool is_chosen = options.allowed != transport::TransportFlags::all();
    return options.allowed.has(kind) &&
           (kind != TransportKind::kNetPlugin || is_chosen || !process_config().net_plugin.empty());
}

transport::TransportFlags all_kinds() {
    transport::TransportFlags flags;
    for (const TransportEntry& entry : kTransports) flags = flags | entry.kind;
    return flags;
}

bool is_any_of(transport::TransportFlags allowed, PeerDistance reach) {
    return std::ranges::any_of(kTransports, [&](const TransportEntry& entry) {
        return entry.reach == reach && allowed.has(entry.kind);
    });
}

/// Checks that the configured interfaces exist. Without this check, a missing one would show only
/// once a peer is on another host. An interface from `listen` is checked earlier.
Status check_named_interfaces(const NetworkOptions& options,
                              const transport::SocketControlPlane& control) {
    std::string names = options.interface.empty() ? "" : "PCCL_SOCKET_IFNAME";
    if (!options.management.empty())
        names += names.empty() ? "PCCL_MANAGEMENT_IFNAME" : " or PCCL_MANAGEMENT_IFNAME";
    if (names.empty() || !is_any_of(options.allowed, PeerDistance::kNetwork)) return Status::ok();
    return control.between_hosts().status().with_context(names);
}

/// Checks that a build without RDMA is not expected to open a library for it.
Status check_library_setting([[maybe_unused]] const NetworkOptions& options) {
#ifndef PCCL_WITH_VERBS
    const Config::Rdma& rdma = process_config().rdma;
    const bool names_ibverbs = !rdma.ibverbs_file.empty();
    if ((names_ibverbs || !rdma.rdmacm_file.empty()) &&
        is_any_of(options.allowed, PeerDistance::kNetwork))
        return Status::invalid_argument(
            concat(names_ibverbs ? "PCCL_IBVERBS_LIBRARY" : "PCCL_RDMACM_LIBRARY", ": ", kNoRdma));
#endif
    return Status::ok();
}

/// Returns the log level for a missing transport. Hosts without a network are common. A host
/// without shared memory, or without the devices of PCCL_IB_HCA, is slower than necessary, so that
/// is logged once as a warning.
LogLevel level_of_absence(const TransportEntry& entry) {
    static std::atomic<bool> is_logged{false};
    const Config& config = process_config();
    const bool is_wanted = (entry.kind == TransportKind::kVerbs && !config.rdma.hca.empty()) ||
                           (entry.kind == TransportKind::kNetPlugin && !config.net_plugin.empty());
    const bool is_loud =
        (entry.reach == PeerDistance::kHost || is_wanted) && !is_logged.exchange(true);
    return is_loud ? LogLevel::kWarning : LogLevel::kInfo;
}

Result<std::unique_ptr<transport::SocketControlPlane>> make_control(const NetworkOptions& options) {
    PCCL_TRY(check_settings());
    PCCL_TRY(check_library_setting(options));
    PCCL_ASSIGN_OR_RETURN(const auto job, bootstrap::job_secret(transport::kOnlookers));
    PCCL_ASSIGN_OR_RETURN(auto control,
                          transport::SocketControlPlane::create(
                              {.within_host = is_any_of(options.allowed, PeerDistance::kHost),
                               .between_hosts = is_any_of(options.allowed, PeerDistance::kNetwork),
                               .interface = options.interface,
                               .management = options.management,
                               .stream = transport::tcp::TcpOptions().stream,
                               .job = job}));
    PCCL_TRY(check_named_interfaces(options, *control));
    return control;
}

}  // namespace

Result<transport::TransportFlags> transports_named(std::string_view names) {
    if (names.empty()) return transport::TransportFlags::all();
    auto flags = transport::TransportFlags::parse(names);
    if (flags.is_ok() && (*flags & all_kinds()) == *flags) return flags;
    return Status::invalid_argument(concat(
        "\"", names.substr(0, kLongestShown),
        "\" names a transport that does not exist here; there are ", all_kinds().to_string()));
}

void prepare_network(transport::TransportFlags allowed) {
    if (!is_used(TransportKind::kNetPlugin, {.allowed = allowed})) return;
    static_cast<void>(
        sys::net_plugin::start_plugin(net_plugin_name(), process_config().peer_timeout));
}

Result<TransportNetwork> make_network(const NetworkOptions& options,
                                      const std::shared_ptr<transport::Waiter>& waiter) {
    PCCL_ASSIGN_OR_RETURN(auto control, make_control(options));
    TransportNetwork network;
    std::string reasons;
    for (const TransportEntry& entry : kTransports) {
        if (!is_used(entry.kind, options)) continue;
        auto made = entry.make({.waiter = waiter,
                                .control = *control,
                                .tcp_sockets = options.tcp_sockets,
                                .is_chosen = options.allowed != transport::TransportFlags::all(),
                                .has_named_interfaces = !options.interface.empty()});
        const std::string_view name = to_string(entry.kind);
        // A setting that is wrong would otherwise go unnoticed.
        if (made.status().code() == StatusCode::kInvalidArgument) return made.status();
        if (made.is_ok()) {
            log(LogLevel::kDebug, "transport ", name, " at ",
                some_of((*made)->addresses(), kMostShown,
                        [](const std::string& address) { return address; }));
            network.transports.push_back(std::move(*made));
            continue;
        }
        reasons += concat("; ", name, ": ", made.status().message());
        log(level_of_absence(entry), "no transport ", name, ": ", made.status().message());
    }
    network.control = std::move(control);
    if (!network.transports.empty()) return network;
    return Status::unavailable(
        concat("no transport is left of \"", options.allowed.to_string(), "\"", reasons));
}

}  // namespace pccl::runtime
