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
#include <optional>

#include "csrc/base/scope_exit.h"
#include "csrc/base/text.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/words.h"

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

/// Ones at the start of a netmask; 0 without one.
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

/// Less is better.
int address_cost(const Address& address) {
    return (address.is_link_local() ? 2 : 0) + (address.family() == AF_INET ? 0 : 1);
}

template <typename Predicate>
std::optional<Interface> first_where(std::span<const Interface> interfaces, Predicate fits) {
    const auto first = std::find_if(interfaces.begin(), interfaces.end(),
                                    [&](const Interface& i) { return i.running && fits(i); });
    if (first == interfaces.end()) return std::nullopt;
    Interface best = *first;
    for (const Interface& other : interfaces)
        if (other.running && other.name == first->name && fits(other) &&
            address_cost(other.address) < address_cost(best.address))
            best = other;
    return best;
}

std::optional<Interface> by_default(std::span<const Interface> interfaces) {
    auto chosen = first_where(interfaces, [](const Interface& i) { return !i.loopback; });
    return chosen ? chosen : first_where(interfaces, [](const Interface&) { return true; });
}

Result<std::optional<Interface>> by_subnet(std::span<const Interface> interfaces,
                                           std::string_view spec) {
    for (const std::string_view word : split(spec)) {
        PCCL_ASSIGN_OR_RETURN(const Subnet subnet, parse_subnet(word));
        auto chosen =
            first_where(interfaces, [&](const Interface& i) { return subnet.contains(i.address); });
        if (chosen) return chosen;
    }
    return std::optional<Interface>();
}

Result<std::optional<Interface>> by_name(std::span<const Interface> interfaces,
                                         std::string_view spec) {
    const std::string_view whole = spec;
    const bool excludes = spec.starts_with('^');
    spec.remove_prefix(excludes ? 1 : 0);
    const bool exact = spec.starts_with('=');
    spec.remove_prefix(exact ? 1 : 0);
    const auto words = split(spec);
    if (words.empty())
        return Status::invalid_argument(concat("\"", whole, "\" names no interface"));
    const auto matches = [exact](const Interface& i, std::string_view word) {
        return exact ? i.name == word : i.name.starts_with(word);
    };
    if (excludes) {
        return first_where(interfaces, [&](const Interface& i) {
            return std::none_of(words.begin(), words.end(),
                                [&](auto word) { return matches(i, word); });
        });
    }
    for (const std::string_view word : words)
        if (auto chosen =
                first_where(interfaces, [&](const Interface& i) { return matches(i, word); }))
            return chosen;
    return std::optional<Interface>();
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

int megabits_of(const std::string& interface) {
    constexpr std::uint32_t kMost = 100'000'000;  // beyond is a driver's "unknown"
    ifreq request{};
    if (interface.size() >= sizeof request.ifr_name) return -1;
    interface.copy(static_cast<char*>(request.ifr_name), interface.size());
    ethtool_cmd command{};
    command.cmd = ETHTOOL_GSET;
    request.ifr_data = reinterpret_cast<char*>(&command);
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket.is_open() || ::ioctl(socket.get(), SIOCETHTOOL, &request) != 0) return -1;
    const std::uint32_t megabits = ethtool_cmd_speed(&command);
    return megabits > 0 && megabits <= kMost ? static_cast<int>(megabits) : -1;
}

Result<Interface> choose_interface(std::span<const Interface> interfaces, std::string_view spec) {
    std::optional<Interface> chosen;
    if (spec.empty()) {
        chosen = by_default(interfaces);
    } else if (spec.find('/') != std::string_view::npos) {
        PCCL_ASSIGN_OR_RETURN(chosen, by_subnet(interfaces, spec));
    } else {
        PCCL_ASSIGN_OR_RETURN(chosen, by_name(interfaces, spec));
    }
    if (chosen) return *chosen;
    return Status::unavailable(concat("no running network interface fits \"", spec,
                                      "\"; there are: ", describe(interfaces)));
}

}  // namespace pccl::sys
