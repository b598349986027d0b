// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/socket/route.h"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

#include "csrc/base/text/text.h"
#include "csrc/base/unique_fd.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::sys {
namespace {

constexpr std::size_t kMostIpBytes = 16;

/// RTM_GETROUTE request for one address: the kernel replies with the selected route.
struct Question {
    nlmsghdr head{};
    rtmsg route{};
    rtattr destination{};
    std::array<std::uint8_t, kMostIpBytes> ip{};

    explicit Question(const Address& to) {
        const auto bytes = to.ip_bytes();
        std::ranges::copy(bytes, ip.begin());
        destination.rta_type = RTA_DST;
        destination.rta_len = static_cast<unsigned short>(RTA_LENGTH(bytes.size()));
        route.rtm_family = static_cast<unsigned char>(to.family());
        route.rtm_dst_len = static_cast<unsigned char>(bytes.size() * 8);
        head.nlmsg_type = RTM_GETROUTE;
        head.nlmsg_flags = NLM_F_REQUEST;
        head.nlmsg_len =
            static_cast<std::uint32_t>(offsetof(Question, destination)) + destination.rta_len;
    }
};

using Answer = std::array<std::byte, 4096>;

Result<std::size_t> query(const Question& question, Answer& answer) {
    const UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
    if (!socket.is_open() || ::send(socket.get(), &question, question.head.nlmsg_len, 0) < 0)
        return Status::from_errno(errno, "cannot query a route");
    const auto bytes = ::recv(socket.get(), answer.data(), answer.size(), 0);
    if (bytes < 0) return Status::from_errno(errno, "cannot query a route");
    return static_cast<std::size_t>(bytes);
}

template <typename Struct>
Struct read_at(std::span<const std::byte> bytes, std::size_t place) {
    Struct value{};
    std::memcpy(&value, bytes.data() + place, sizeof value);
    return value;
}

/// Returns RTA_OIF among the attributes of a route; 0: there is none.
unsigned device_in(std::span<const std::byte> attributes) {
    while (attributes.size() >= sizeof(rtattr)) {
        const auto head = read_at<rtattr>(attributes, 0);
        if (head.rta_len < sizeof head || head.rta_len > attributes.size()) break;
        if (head.rta_type == RTA_OIF && head.rta_len >= RTA_LENGTH(sizeof(unsigned)))
            return read_at<unsigned>(attributes, RTA_LENGTH(0));
        attributes =
            attributes.subspan(std::min<std::size_t>(RTA_ALIGN(head.rta_len), attributes.size()));
    }
    return 0;
}

}  // namespace

Result<std::string> route_device(const Address& to) {
    if (!to.is_ip()) return Status::unavailable(concat(to.to_string(), " has no route"));
    Answer answer{};
    PCCL_ASSIGN_OR_RETURN(const std::size_t bytes, query(Question(to), answer));
    const auto reply = std::span<const std::byte>(answer).first(bytes);
    if (bytes < NLMSG_LENGTH(sizeof(nlmsgerr))) return Status::internal("rtnetlink: short answer");
    if (read_at<nlmsghdr>(reply, 0).nlmsg_type == NLMSG_ERROR)
        return Status::unavailable(
            concat("no route to ", to.ip_text(), ": ",
                   std::strerror(-read_at<nlmsgerr>(reply, NLMSG_LENGTH(0)).error)));
    std::array<char, IF_NAMESIZE> name{};
    const unsigned device = device_in(reply.subspan(NLMSG_LENGTH(sizeof(rtmsg))));
    if (::if_indextoname(device, name.data()) == nullptr)
        return Status::unavailable(concat("no route to ", to.ip_text(), " leaves by an interface"));
    return std::string(name.data());
}

Result<Address> route_source(const Address& to) {
    constexpr std::uint16_t kAnyPort = 9;
    if (!to.is_ip()) return Status::unavailable(concat(to.to_string(), " has no route"));
    const UniqueFd socket(::socket(to.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket.is_open()) return Status::from_errno(errno, "cannot query a route");
    const Address aim = to.with_port(kAnyPort);
    if (::connect(socket.get(), aim.raw(), aim.raw_bytes()) != 0)
        return Status::unavailable(
            concat("no route to ", to.ip_text(), ": ", std::strerror(errno)));
    PCCL_ASSIGN_OR_RETURN(const Address source, local_address(socket.get()));
    return source.with_port(0);
}

std::vector<Address> sources_toward(const std::string& host) {
    constexpr std::uint16_t kAnyPort = 9;
    std::vector<Address> sources;
    const auto resolved = resolve(host, kAnyPort);
    if (!resolved.is_ok()) return sources;
    for (const Address& each : *resolved)
        if (const auto source = route_source(each); source.is_ok() && !source->is_loopback())
            sources.push_back(*source);
    return sources;
}

}  // namespace pccl::sys
