// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/netplugin/net_transport.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <iterator>
#include <optional>
#include <utility>

#include "csrc/base/fork.h"
#include "csrc/base/log/log.h"
#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/transport/control/close_reason.h"
#include "csrc/transport/netplugin/recv_link.h"
#include "csrc/transport/netplugin/send_link.h"

namespace pccl::transport::netplugin {
namespace {

constexpr Duration kArrivalTimeout = std::chrono::seconds(10);
constexpr const char* kPlugin = "plugin:";

std::string name_of(Rank rank, int socket) {
    const auto address = sys::peer_address(socket);
    return concat(peer_name(rank), " at ",
                  address.is_ok() ? address->to_string() : "an address that is gone");
}

Status send_message(int socket, const Result<LinkOffer>& offer) {
    const std::string message = message_of(offer);
    // A fresh socket takes some KiB at once.
    return sys::send_all(socket, std::as_bytes(std::span(message)),
                         Deadline::after(std::chrono::seconds(1)));
}

/// Makes a channel of the communicators of each; `more` are further arguments.
template <typename Channel, typename... More>
std::vector<std::unique_ptr<Channel>> channels_of(Setup& setup, const More&... more) {
    std::vector<std::unique_ptr<Channel>> channels;
    std::vector<Comm> comms = setup.take();
    for (auto first = comms.begin(); first != comms.end();) {
        const auto end = first + static_cast<std::ptrdiff_t>(setup.lanes());
        channels.push_back(std::make_unique<Channel>(
            std::vector<Comm>(std::move_iterator(first), std::move_iterator(end)), more...));
        first = end;
    }
    return channels;
}

std::string names_of(const std::vector<const sys::net_plugin::DeviceProperties*>& devices) {
    return some_of(devices, kMostLanes, [](const auto* device) { return device->name; });
}

}  // namespace

Result<std::unique_ptr<NetTransport>> NetTransport::create(std::shared_ptr<Waiter> waiter,
                                                           NetworkSide here,
                                                           const NetOptions& options) {
    PCCL_ASSIGN_OR_RETURN(Plugin* const plugin,
                          sys::net_plugin::start_plugin(options.plugin, options.peer_timeout));
    std::unique_ptr<NetTransport> made(
        new NetTransport(std::move(waiter), std::move(here), options, *plugin));
    for (const auto& device : plugin->devices())
        log(LogLevel::kInfo, plugin->line(concat("device ", device.name, " port ", device.port,
                                                 ": ", device.megabits, " Mbit/s")));
    return made;
}

NetTransport::NetTransport(std::shared_ptr<Waiter> waiter, NetworkSide here,
                           const NetOptions& options, Plugin& plugin)
    : waiter_(std::move(waiter)),
      here_(std::move(here)),
      options_(options),
      plugin_(plugin),
      progress_(new Progress, LeaveToParent()) {}

NetTransport::~NetTransport() = default;

std::string NetTransport::plugin_address() const { return concat(kPlugin, plugin_.name()); }

std::vector<std::string> NetTransport::addresses() const {
    std::vector<std::string> addresses = here_.addresses();
    addresses.push_back(plugin_address());
    return addresses;
}

Result<PeerRoutes> NetTransport::routes_to(const PeerAddress& peer) const {
    PCCL_TRY(peer.first_of(TransportKind::kNetPlugin).status());
    std::vector<std::string> doors = peer.links.at(TransportKind::kNetPlugin);
    std::erase_if(doors, [](const std::string& text) { return text.starts_with(kPlugin); });
    return here_.routes_to(peer.control, doors);
}

Status NetTransport::reaches(const PeerAddress& peer) const {
    PCCL_TRY(routes_to(peer).status());
    for (const std::string& text : peer.links.at(TransportKind::kNetPlugin))
        if (text.starts_with(kPlugin) && text != plugin_address())
            return Status::unavailable(concat("the net plug-in here is ", plugin_.name(),
                                              ", the peer's is ",
                                              text.substr(std::string_view(kPlugin).size()),
                                              "; set PCCL_NET_PLUGIN to the same one everywhere"));
    return Status::ok();
}

NetTransport::Devices NetTransport::devices_for(const LinkRequest& request,
                                                std::size_t most) const {
    const auto channel = static_cast<std::size_t>(request.channel);
    const auto source = static_cast<std::size_t>(request.source);
    const std::vector<Device>& all = plugin_.devices();
    Devices chosen;
    for (std::size_t i = 0; i < std::min({all.size(), most, kMostLanes}); ++i)
        chosen.push_back(&all[(channel + source + 1 + i) % all.size()]);
    return chosen;
}

NetTransport::Devices NetTransport::devices_for(const LinkRequest& request,
                                                const std::vector<LaneOffer>& lanes) const {
    Devices chosen = devices_for(request, lanes.size());
    if (chosen.size() < lanes.size()) chosen.resize(lanes.size(), chosen.front());
    for (std::size_t i = 0; i < lanes.size(); ++i) {
        const int rail = lanes[i].rail;
        if (rail < 0 || chosen[i]->rail == rail) continue;
        const auto same = std::ranges::find(plugin_.devices(), rail, &Device::rail);
        if (same != plugin_.devices().end()) chosen[i] = &*same;
    }
    return chosen;
}

CommSizes NetTransport::sizes_for(const LinkRequest& request, const Devices& devices) const {
    constexpr std::size_t kBudget = 32 * kMiB;  // of one channel, of all peers
    constexpr std::size_t kLeast = 512 * kKiB;  // schedules rely on 257 KiB under way
    constexpr std::size_t kMessages = 4;
    const auto peers = static_cast<std::size_t>(std::max(request.group_size - 1, 1));
    const std::size_t ring = std::clamp<std::size_t>(std::bit_floor(kBudget / peers), kLeast, kMiB);
    const auto* const least =
        *std::ranges::min_element(devices, {}, [](const Device* each) { return each->max_bytes; });
    const std::size_t most = least->max_bytes - sizeof(MessageHeader);
    return {.message_bytes = std::min(ring / kMessages, most), .memory_bytes = ring};
}

SetupPlace NetTransport::place_for(const LinkRequest& request, Rank peer, Devices devices) const {
    return {.caller = {.plugin = &plugin_,
                       .slot = plugin_.slot(concat("a link with ", peer_name(peer)))},
            .devices = std::move(devices),
            .peers = std::max(request.group_size - 1, 1)};
}

Result<LinkParts> NetTransport::make_parts(const CloseContext& close_context, Caller caller,
                                           UniqueFd socket) const {
    std::string name = name_of(close_context.leaver, socket.get());
    sys::give_up_after(socket.get(), options_.peer_timeout);
    WatchedSocket watched(std::move(socket), *waiter_);
    PCCL_TRY(watched.watch());
    return LinkParts{.peer = close_context.leaver,
                     .peer_name = std::move(name),
                     .caller = std::move(caller),
                     .waiter = waiter_,
                     .watch = PeerWatch(close_context, std::move(watched))};
}

/// Connection attempt: proves the secret, takes the receiver's handles, and connects to them.
class NetTransport::NetPendingConnect final : public PendingConnect {
   public:
    NetPendingConnect(const NetTransport& transport, const LinkRequest& request,
                      std::unique_ptr<RoutedHandshake> handshake)
        : transport_(transport),
          request_(request),
          handshake_(std::move(handshake)),
          closing_(close_context()) {}
    ~NetPendingConnect() override {
        if (setup_ != nullptr) setup_->abandon();
    }
    NetPendingConnect(const NetPendingConnect&) = delete;
    NetPendingConnect& operator=(const NetPendingConnect&) = delete;

    Result<std::unique_ptr<SendLink>> advance() override {
        if (!socket_) {
            PCCL_ASSIGN_OR_RETURN(const bool accepted, handshake_->advance());
            if (!accepted) return std::unique_ptr<SendLink>();
            socket_.emplace(std::move(handshake_->take_sockets().front()), *transport_.waiter_);
            PCCL_TRY(socket_->watch());
        }
        if (setup_ == nullptr) {
            auto offer = reader_.advance(socket_->fd());
            if (!offer.is_ok()) return offer.status().with_peer(request_.destination);
            if (!*offer) return std::unique_ptr<SendLink>();
            start(**offer);
        }
        const auto is_done = setup_->is_done();
        if (!is_done.is_ok()) return fail(is_done.status());
        if (*is_done) return finish();
        PCCL_TRY(closing_.receive(socket_->fd()));
        return std::unique_ptr<SendLink>();
    }
    [[nodiscard]] Status timeout_error() const override {
        if (!socket_) return handshake_->timeout_error();
        const std::string_view missing =
            setup_ == nullptr ? "the peer's net plug-in to listen" : "the net plug-in to connect";
        return Status::timeout(
            concat("timed out waiting for ", missing, " (", transport_.plugin_.file(), ")"),
            request_.destination);
    }

   private:
    [[nodiscard]] CloseContext close_context() const {
        return {
            .self = request_.source, .leaver = request_.destination, .ranks = request_.group_size};
    }
    /// Returns why there is no link: the close reason of a receiver that has left, or `fault`.
    Status fail(const Status& fault) {
        PCCL_TRY(closing_.receive(socket_->fd()));
        send_close_reason(socket_->fd(), fault);
        return fault.with_peer(request_.destination);
    }
    void start(const LinkOffer& offer) {
        const Devices devices = transport_.devices_for(request_, offer.lanes);
        names_ = names_of(devices);
        const CommSizes sizes = transport_.sizes_for(request_, devices);
        longest_ = std::min<std::size_t>(sizes.message_bytes, offer.message_bytes);
        setup_ = std::shared_ptr<ConnectSetup>(
            new ConnectSetup(
                transport_.place_for(request_, request_.destination, devices),
                [waiter = transport_.waiter_] { waiter->wake(); }, offer, sizes.memory_bytes),
            LeaveToParent());
        transport_.progress_->add(setup_);
    }
    Result<std::unique_ptr<SendLink>> finish() {
        UniqueFd socket = socket_->release();
        socket_.reset();
        PCCL_ASSIGN_OR_RETURN(
            LinkParts parts,
            transport_.make_parts(close_context(), setup_->caller(), std::move(socket)));
        log(LogLevel::kInfo, "link to ", parts.peer_name, " over net plug-in ",
            transport_.plugin_.name(), ", device ", names_);
        std::shared_ptr<SendCore> core(
            new SendCore(
                std::move(parts),
                channels_of<SendChannel>(*setup_, longest_, transport_.plugin_.max_requests())),
            LeaveToParent());
        return std::unique_ptr<SendLink>(std::make_unique<NetSendLink>(
            std::move(core), transport_.progress_, transport_.options_.peer_timeout));
    }

    const NetTransport& transport_;
    const LinkRequest request_;
    const std::unique_ptr<RoutedHandshake> handshake_;
    std::optional<WatchedSocket> socket_;  // set once the peer has accepted
    LinkOfferReader reader_;
    CloseReasonReceiver closing_;  // once the offer has come
    std::string names_;            // of the devices, once the offer has come
    std::size_t longest_ = 0;
    std::shared_ptr<ConnectSetup> setup_;  // set once the receiver has made its offer
};

Result<std::unique_ptr<PendingConnect>> NetTransport::connect(const PeerAddress& peer,
                                                              const LinkRequest& request,
                                                              const Secret& secret) {
    PCCL_ASSIGN_OR_RETURN(PeerRoutes routes, routes_to(peer));
    const LinkPurpose own{
        .lanes = static_cast<std::uint8_t>(std::min(plugin_.devices().size(), kMostLanes))};
    PCCL_ASSIGN_OR_RETURN(
        auto handshake,
        RoutedHandshake::start({.host = peer.control.host,
                                .routes = std::move(routes),
                                .request = request,
                                .secret = secret,
                                .stream = options_.stream,
                                .introductions = {{.request = request,
                                                   .service = Service::kLink,
                                                   .transport = static_cast<std::uint8_t>(kind()),
                                                   .purpose = purpose_of(own)}}},
                               here_.proven, *waiter_));
    return std::unique_ptr<PendingConnect>(
        std::make_unique<NetPendingConnect>(*this, request, std::move(handshake)));
}

void NetTransport::accept(Arrival arrival, LinkReceiver& receiver) {
    Expected expected{.from = std::move(arrival),
                      .deadline = Deadline::after(kArrivalTimeout),
                      .bell = std::make_shared<UniqueFd>(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))};
    if (const Status begun = begin(expected, receiver); !begun.is_ok())
        refuse(expected, begun, receiver);
    else
        expected_.push_back(std::move(expected));
}

Status NetTransport::begin(Expected& expected, LinkReceiver& receiver) const {
    PCCL_TRY(expected.from.shortage);
    if (!expected.bell->is_open()) return Status::from_errno(errno, "cannot create an eventfd");
    PCCL_TRY(receiver.watch(expected.from.socket.get()));
    PCCL_TRY(receiver.watch(expected.bell->get()));
    const LinkRequest& request = expected.request();
    const auto ring = [bell = expected.bell] {
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto written = ::write(bell->get(), &one, sizeof one);
    };
    expected.closing.emplace(CloseContext{
        .self = request.destination, .leaver = request.source, .ranks = request.group_size});
    const auto purpose = value_in<LinkPurpose>(expected.from.introduction.purpose);
    const Devices devices = devices_for(request, std::max<std::size_t>(purpose.lanes, 1));
    CommSizes sizes = sizes_for(request, devices);
    sizes.memory_bytes = RecvChannel::bytes_for(sizes.message_bytes);
    expected.setup = std::shared_ptr<AcceptSetup>(
        new AcceptSetup(place_for(request, request.source, devices), ring, sizes), LeaveToParent());
    progress_->add(expected.setup);
    return Status::ok();
}

void NetTransport::advance(LinkReceiver& receiver) {
    std::erase_if(expected_, [&](Expected& expected) { return advance_one(expected, receiver); });
}

bool NetTransport::advance_one(Expected& expected, LinkReceiver& receiver) const {
    const auto received = receive_link(expected, receiver);
    if (!received.is_ok()) {
        refuse(expected, received.status(), receiver);
        return true;
    }
    return *received;
}

Result<bool> NetTransport::receive_link(Expected& expected, LinkReceiver& receiver) const {
    PCCL_ASSIGN_OR_RETURN(const bool is_done, expected.setup->is_done());
    if (const auto offer = expected.setup->offer(); offer && !expected.has_offered) {
        PCCL_TRY(send_message(expected.from.socket.get(), *offer));
        expected.has_offered = true;
    }
    if (is_done) {
        PCCL_TRY(hand_over(expected, receiver));
        return true;
    }
    PCCL_TRY(expected.closing->receive(expected.from.socket.get()));
    if (expected.deadline.passed())
        return Status::timeout(plugin_.line(concat(
            "accept found no connection of ", peer_name(expected.request().source), " in time")));
    return false;
}

void NetTransport::unwatch(const Expected& expected, LinkReceiver& receiver) const {
    if (expected.setup == nullptr) return;
    progress_->remove(*expected.setup);
    receiver.unwatch(expected.from.socket.get());
    receiver.unwatch(expected.bell->get());
}

void NetTransport::refuse(Expected& expected, const Status& why, LinkReceiver& receiver) const {
    unwatch(expected, receiver);
    if (expected.from.socket.is_open() && !expected.has_offered)
        static_cast<void>(send_message(expected.from.socket.get(), why));
    else if (expected.from.socket.is_open())
        send_close_reason(expected.from.socket.get(), why);
    if (why.code() == StatusCode::kResourceExhausted)
        receiver.fell_short(expected.request(), kind(), why);
    else
        receiver.refused(to_string(kind()), why);
}

Status NetTransport::hand_over(Expected& expected, LinkReceiver& receiver) const {
    unwatch(expected, receiver);
    const LinkRequest& request = expected.request();
    const CloseContext close_context{
        .self = request.destination, .leaver = request.source, .ranks = request.group_size};
    PCCL_ASSIGN_OR_RETURN(LinkParts parts, make_parts(close_context, expected.setup->caller(),
                                                      std::move(expected.from.socket)));
    std::shared_ptr<RecvCore> core(
        new RecvCore(std::move(parts),
                     channels_of<RecvChannel>(*expected.setup, expected.setup->message_bytes())),
        LeaveToParent());
    receiver.accepted(request, std::make_unique<NetRecvLink>(std::move(core), progress_));
    return Status::ok();
}

}  // namespace pccl::transport::netplugin
