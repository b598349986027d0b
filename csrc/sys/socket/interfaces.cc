// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/socket/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <compare>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "csrc/base/scope_exit.h"
#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"
#include "csrc/base/unique_fd.h"
#include "csrc/sys/socket/route.h"

namespace pccl::sys {
namespace {

struct Subnet {
    Address base;
    std::size_t prefix_bits = 0;

    [[nodiscard]] bool contains(const Address& address) const {
        const auto wanted = base.ip_bytes();
        const auto actual = address.ip_bytes();
        if (wanted.size() != actual.size()) return false;
        const std::size_t whole = prefix_bits / 8;
        if (!std::equal(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(whole),
                        actual.begin()))
            return false;
        const unsigned rest = prefix_bits % 8;
        return rest == 0 || ((wanted[whole] ^ actual[whole]) >> (8 - rest)) == 0;
    }
};

/// Returns the leading ones of a netmask; 0 without one.
Result<int> prefix_of(const sockaddr* netmask, std::size_t bytes) {
    if (netmask == nullptr) return 0;
    PCCL_ASSIGN_OR_RETURN(const Address mask, Address::from_raw(netmask, bytes));
    int bits = 0;
    for (const std::uint8_t byte : mask.ip_bytes()) bits += std::popcount(byte);
    return bits;
}

std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> words;
    while (!text.empty()) {
        if (const std::string_view word = next_item(text); !word.empty()) words.push_back(word);
    }
    return words;
}

Result<Subnet> parse_subnet(std::string_view text) {
    const std::size_t slash = text.find('/');
    const std::string_view bits = text.substr(slash + 1);
    Subnet subnet;
    const auto [end, error] =
        std::from_chars(bits.data(), bits.data() + bits.size(), subnet.prefix_bits);
    auto base = Address::from_ip(text.substr(0, slash), 0);
    if (!base.is_ok() || bits.empty() || error != std::errc() || end != bits.data() + bits.size() ||
        subnet.prefix_bits > base->ip_bytes().size() * 8) {
        return Status::invalid_argument(
            concat("\"", text, "\" is no subnet such as 10.0.0.0/8 or fd00::/8"));
    }
    subnet.base = *base;
    return subnet;
}

/// Rank of an address among those that a spec selects: less is better.
struct AddressStanding {
    std::size_t word = 0;  // index of the spec's word that it matches
    bool loopback = false;
    bool link_local = false;
    bool internal = false;
    bool without_default_route = false;
    bool ipv6 = false;
    std::size_t place = 0;  // among the addresses of its family at its interface

    auto operator<=>(const AddressStanding&) const = default;
};

/// Function that returns the index of the first word that an interface matches; nullopt for none.
using Fits = std::function<std::optional<std::size_t>(const Interface&)>;

std::size_t place_of(std::span<const Interface> interfaces, std::size_t index) {
    const Interface& own = interfaces[index];
    return static_cast<std::size_t>(
        std::ranges::count_if(interfaces.first(index), [&own](const Interface& i) {
            return i.name == own.name && i.address.family() == own.address.family() &&
                   i.address.is_link_local() == own.address.is_link_local();
        }));
}

/// Drops IPv6 link-local addresses where there are others, and loopbacks where another interface
/// matches the same word.
void drop_needless(std::vector<std::pair<AddressStanding, Interface>>& found) {
    std::erase_if(found, [wide = std::vector(found)](const auto& each) {
        return each.first.loopback && std::ranges::any_of(wide, [&each](const auto& other) {
                   return !other.first.loopback && other.first.word == each.first.word;
               });
    });
    const auto is_scoped = [](const auto& each) {
        const Address& address = each.second.address;
        return address.family() == AF_INET6 && address.is_link_local();
    };
    const auto is_plain = [&](const auto& each) {
        return !is_scoped(each) && !each.second.loopback;
    };
    if (std::ranges::any_of(found, is_plain)) std::erase_if(found, is_scoped);
}

std::vector<Interface> in_order(std::span<const Interface> interfaces, const Fits& fits) {
    std::vector<std::pair<AddressStanding, Interface>> found;
    for (std::size_t index = 0; index < interfaces.size(); ++index) {
        const Interface& each = interfaces[index];
        const auto word = each.running ? fits(each) : std::nullopt;
        if (!word) continue;
        found.emplace_back(AddressStanding{.word = *word,
                                           .loopback = each.loopback,
                                           .link_local = each.address.is_link_local(),
                                           .internal = each.internal && !each.has_default_route,
                                           .without_default_route = !each.has_default_route,
                                           .ipv6 = each.address.family() == AF_INET6,
                                           .place = place_of(interfaces, index)},
                           each);
    }
    drop_needless(found);
    std::ranges::stable_sort(found, {}, &std::pair<AddressStanding, Interface>::first);
    found.resize(std::min(found.size(), kMostCandidates));
    std::vector<Interface> ordered;
    ordered.reserve(found.size());
    for (auto& [standing, interface] : found) ordered.push_back(std::move(interface));
    return ordered;
}

std::vector<Interface> by_default(std::span<const Interface> interfaces) {
    const auto of = [&](bool loopback) {
        return in_order(interfaces, [loopback](const Interface& i) {
            return i.loopback == loopback ? std::optional<std::size_t>(0) : std::nullopt;
        });
    };
    auto found = of(false);
    return found.empty() ? of(true) : found;
}

Result<std::vector<Interface>> by_subnet(std::span<const Interface> interfaces,
                                         std::string_view spec) {
    std::vector<Subnet> subnets;
    for (const std::string_view word : split(spec)) {
        PCCL_ASSIGN_OR_RETURN(subnets.emplace_back(), parse_subnet(word));
    }
    return in_order(interfaces, [&](const Interface& i) -> std::optional<std::size_t> {
        const auto found = std::ranges::find_if(
            subnets, [&i](const Subnet& subnet) { return subnet.contains(i.address); });
        if (found == subnets.end()) return std::nullopt;
        return static_cast<std::size_t>(found - subnets.begin());
    });
}

Result<std::vector<Interface>> by_name(std::span<const Interface> interfaces,
                                       std::string_view spec) {
    const std::string_view whole = spec;
    const bool excludes = spec.starts_with('^');
    spec.remove_prefix(excludes ? 1 : 0);
    const bool exact = spec.starts_with('=');
    spec.remove_prefix(exact ? 1 : 0);
    const auto words = split(spec);
    if (words.empty())
        return Status::invalid_argument(concat("\"", whole, "\" names no interface"));
    return in_order(interfaces, [&](const Interface& i) -> std::optional<std::size_t> {
        const auto found = std::ranges::find_if(words, [&](std::string_view word) {
            return exact ? i.name == word : i.name.starts_with(word);
        });
        if (excludes) return found == words.end() ? std::optional<std::size_t>(0) : std::nullopt;
        if (found == words.end()) return std::nullopt;
        return static_cast<std::size_t>(found - words.begin());
    });
}

std::string describe(std::span<const Interface> interfaces) {
    std::string text;
    for (const Interface& i : interfaces)
        text += concat(text.empty() ? "" : ", ", i.name, " ", i.address.to_string(),
                       i.running ? "" : " (down)");
    return text;
}

}  // namespace

Result<std::vector<Interface>> list_interfaces() {
    ifaddrs* found = nullptr;
    if (::getifaddrs(&found) != 0)
        return Status::from_errno(errno, "cannot list network interfaces");
    const ScopeExit release([found] { ::freeifaddrs(found); });
    std::vector<Interface> interfaces;
    for (const ifaddrs* entry = found; entry != nullptr; entry = entry->ifa_next) {
        if (entry->ifa_addr == nullptr) continue;
        const int family = entry->ifa_addr->sa_family;
        const std::size_t bytes = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
        if (family != AF_INET && family != AF_INET6) continue;
        PCCL_ASSIGN_OR_RETURN(const Address address, Address::from_raw(entry->ifa_addr, bytes));
        PCCL_ASSIGN_OR_RETURN(const int prefix_bits, prefix_of(entry->ifa_netmask, bytes));
        constexpr unsigned kUsable = IFF_UP | IFF_RUNNING;
        interfaces.push_back({.name = entry->ifa_name,
                              .index = ::if_nametoindex(entry->ifa_name),
                              .address = address,
                              .prefix_bits = prefix_bits,
                              .enabled = (entry->ifa_flags & IFF_UP) != 0,
                              .running = (entry->ifa_flags & kUsable) == kUsable,
                              .loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0});
    }
    return interfaces;
}

std::string subnet_of(const Interface& interface) {
    const auto own = interface.address.ip_bytes();
    std::array<std::uint8_t, sizeof(in6_addr)> base{};
    for (std::size_t i = 0; i < own.size(); ++i) {
        const int bits = std::clamp(interface.prefix_bits - static_cast<int>(8 * i), 0, 8);
        base[i] = static_cast<std::uint8_t>(own[i] & (0xFF00U >> static_cast<unsigned>(bits)));
    }
    std::array<char, INET6_ADDRSTRLEN> text{};
    ::inet_ntop(interface.address.family(), base.data(), text.data(), text.size());
    return concat(text.data(), "/", interface.prefix_bits);
}

namespace {

/// Queries the driver of an interface; false where it does not answer.
bool query_driver(const std::string& interface, void* command) {
    ifreq request{};
    if (interface.size() >= sizeof request.ifr_name) return false;
    interface.copy(static_cast<char*>(request.ifr_name), interface.size());
    request.ifr_data = static_cast<char*>(command);
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return socket.is_open() && ::ioctl(socket.get(), SIOCETHTOOL, &request) == 0;
}

/// Returns "bridge", "veth", "mlx5_core"; empty where the kernel reports none.
std::string driver_of(const std::string& interface) {
    ethtool_drvinfo facts{};
    facts.cmd = ETHTOOL_GDRVINFO;
    if (!query_driver(interface, &facts)) return {};
    const auto* const name = static_cast<const char*>(facts.driver);
    return {name, ::strnlen(name, sizeof facts.driver)};
}

}  // namespace

int megabits_of(const std::string& interface) {
    constexpr std::uint32_t kMost = 100'000'000;  // larger values are a driver's "unknown"
    ethtool_cmd command{};
    command.cmd = ETHTOOL_GSET;
    if (!query_driver(interface, &command)) return -1;
    const std::uint32_t megabits = ethtool_cmd_speed(&command);
    return megabits > 0 && megabits <= kMost ? static_cast<int>(megabits) : -1;
}

void examine_interfaces(std::span<Interface> interfaces) {
    constexpr std::array<std::string_view, 4> kInternal{"bridge", "dummy", "openvswitch", "tun"};
    // These addresses are reserved for documentation: nothing is sent, and no host has them.
    constexpr std::array<const char*, 2> kUnknownHosts{"198.51.100.1", "2001:db8::1"};
    std::vector<Address> sources;
    for (const char* host : kUnknownHosts)
        if (const auto source = route_source(Address::from_ip(host, 0).value()); source.is_ok())
            sources.push_back(*source);
    for (Interface& each : interfaces) {
        if (each.loopback || !each.running) continue;
        each.internal = std::ranges::find(kInternal, driver_of(each.name)) != kInternal.end();
        each.has_default_route = std::ranges::any_of(
            sources, [&each](const Address& source) { return source.same_ip(each.address); });
    }
}

Result<std::vector<Interface>> candidate_interfaces(std::span<const Interface> interfaces,
                                                    std::string_view spec) {
    std::vector<Interface> found;
    if (spec.empty()) {
        found = by_default(interfaces);
    } else if (spec.find('/') != std::string_view::npos) {
        PCCL_ASSIGN_OR_RETURN(found, by_subnet(interfaces, spec));
    } else {
        PCCL_ASSIGN_OR_RETURN(found, by_name(interfaces, spec));
    }
    if (!found.empty()) return found;
    return Status::unavailable(concat("no running network interface fits \"", spec,
                                      "\"; there are: ", describe(interfaces)));
}

Result<Interface> choose_interface(std::span<const Interface> interfaces, std::string_view spec) {
    PCCL_ASSIGN_OR_RETURN(const auto found, candidate_interfaces(interfaces, spec));
    return found.front();
}

}  // namespace pccl::sys
