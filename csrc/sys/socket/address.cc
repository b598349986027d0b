// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/socket/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "csrc/base/text/text.h"

namespace pccl::sys {
namespace {

constexpr std::size_t kLongestText = 128;
constexpr std::size_t kLongestUnixName = 100;
constexpr std::string_view kUnixPrefix = "unix:@";

Status malformed(std::string_view text) {
    const std::string shown(text.substr(0, kLongestText));
    return Status::invalid_argument(concat(
        "\"", shown, "\" is no address such as 10.0.0.1:4567, [fd00::1]:4567 or unix:@name"));
}

template <typename Number>
bool parse_number(std::string_view text, Number& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

bool parse_scope(std::string_view text, unsigned& index) {
    if (parse_number(text, index)) return index != 0;
    index = ::if_nametoindex(std::string(text).c_str());
    return index != 0;
}

std::string scope_text(unsigned index) {
    std::array<char, IF_NAMESIZE> name{};
    return ::if_indextoname(index, name.data()) != nullptr ? name.data() : concat(index);
}

bool is_name_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-/").find(c) != std::string_view::npos;
}

template <typename Raw>
const Raw& as(const sockaddr_storage& storage) {
    return reinterpret_cast<const Raw&>(storage);
}
template <typename Raw>
Raw& as(sockaddr_storage& storage) {
    return reinterpret_cast<Raw&>(storage);
}

}  // namespace

Result<Address> Address::parse(std::string_view text) {
    if (text.size() > kLongestText) return malformed(text);
    if (text.starts_with(kUnixPrefix)) return from_unix_name(text.substr(kUnixPrefix.size()));
    const std::size_t colon = text.rfind(':');
    std::uint16_t port = 0;
    if (colon == std::string_view::npos || !parse_number(text.substr(colon + 1), port))
        return malformed(text);
    std::string_view ip = text.substr(0, colon);
    const bool bracketed = ip.size() > 2 && ip.front() == '[' && ip.back() == ']';
    if (bracketed) ip = ip.substr(1, ip.size() - 2);
    auto address = from_ip(ip, port);
    if (!address.is_ok() || (address->family() == AF_INET6) != bracketed) return malformed(text);
    return address;
}

Result<Address> Address::from_ip(std::string_view ip, std::uint16_t port) {
    if (ip.size() > kLongestText) return malformed(ip);
    Address address;
    const std::size_t percent = ip.find('%');
    const std::string host(ip.substr(0, percent));
    auto& v4 = as<sockaddr_in>(address.storage_);
    auto& v6 = as<sockaddr_in6>(address.storage_);
    if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1 && host.size() == ip.size()) {
        v4.sin_family = AF_INET;
        address.bytes_ = sizeof v4;
        return address.with_port(port);
    }
    address = {};
    if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) != 1) return malformed(ip);
    v6.sin6_family = AF_INET6;
    address.bytes_ = sizeof v6;
    if (percent != std::string_view::npos && !parse_scope(ip.substr(percent + 1), v6.sin6_scope_id))
        return Status::invalid_argument(concat("this host has no interface for \"", ip, "\""));
    return address.with_port(port);
}

Result<Address> Address::from_unix_name(std::string_view name) {
    if (name.empty() || name.size() > kLongestUnixName ||
        !std::all_of(name.begin(), name.end(), is_name_character)) {
        return Status::invalid_argument("a unix socket's name is 1 to 100 of A-Z a-z 0-9 . _ - /");
    }
    Address address;
    auto& raw = as<sockaddr_un>(address.storage_);
    raw.sun_family = AF_UNIX;
    std::memcpy(raw.sun_path + 1, name.data(), name.size());  // sun_path[0] = 0 marks it abstract
    address.bytes_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return address;
}

Result<Address> Address::from_raw(const sockaddr* raw, std::size_t bytes) {
    Address address;
    const bool known = raw != nullptr && bytes <= sizeof address.storage_ &&
                       ((raw->sa_family == AF_INET && bytes >= sizeof(sockaddr_in)) ||
                        (raw->sa_family == AF_INET6 && bytes >= sizeof(sockaddr_in6)) ||
                        (raw->sa_family == AF_UNIX && bytes > offsetof(sockaddr_un, sun_path) + 1));
    if (!known) return Status::unsupported("a socket address of an unknown family");
    std::memcpy(&address.storage_, raw, bytes);
    address.bytes_ = static_cast<socklen_t>(bytes);
    return address;
}

std::span<const std::uint8_t> Address::ip_bytes() const {
    if (family() == AF_INET) {
        const auto& ip = as<sockaddr_in>(storage_).sin_addr;
        return {reinterpret_cast<const std::uint8_t*>(&ip), sizeof ip};
    }
    if (family() == AF_INET6) return as<sockaddr_in6>(storage_).sin6_addr.s6_addr;
    return {};
}

bool Address::is_loopback() const {
    if (family() == AF_INET) return ip_bytes()[0] == 127;
    return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&as<sockaddr_in6>(storage_).sin6_addr);
}

bool Address::is_link_local() const {
    const auto ip = ip_bytes();
    if (family() == AF_INET) return ip[0] == 169 && ip[1] == 254;
    return family() == AF_INET6 && ip[0] == 0xFE && (ip[1] & 0xC0) == 0x80;
}

std::uint16_t Address::port() const {
    if (family() == AF_INET) return ntohs(as<sockaddr_in>(storage_).sin_port);
    return family() == AF_INET6 ? ntohs(as<sockaddr_in6>(storage_).sin6_port) : std::uint16_t{0};
}

bool Address::same_ip(const Address& other) const {
    return is_ip() && std::ranges::equal(ip_bytes(), other.ip_bytes());
}

Address Address::with_port(std::uint16_t port) const {
    Address copy = *this;
    if (family() == AF_INET) as<sockaddr_in>(copy.storage_).sin_port = htons(port);
    if (family() == AF_INET6) as<sockaddr_in6>(copy.storage_).sin6_port = htons(port);
    return copy;
}

Address Address::with_scope(unsigned interface_index) const {
    Address copy = *this;
    if (family() == AF_INET6) as<sockaddr_in6>(copy.storage_).sin6_scope_id = interface_index;
    return copy;
}

std::string Address::to_string() const {
    if (family() == AF_UNIX) {
        const auto& raw = as<sockaddr_un>(storage_);
        return concat(kUnixPrefix, std::string_view(raw.sun_path + 1,
                                                    bytes_ - offsetof(sockaddr_un, sun_path) - 1));
    }
    if (family() == AF_INET) return concat(ip_text(), ":", port());
    return is_ip() ? concat("[", ip_text(), "]:", port()) : "none";
}

std::string Address::ip_text() const {
    if (!is_ip()) return {};
    std::array<char, INET6_ADDRSTRLEN> text{};
    ::inet_ntop(family(), ip_bytes().data(), text.data(), text.size());
    const unsigned scope = family() == AF_INET6 ? as<sockaddr_in6>(storage_).sin6_scope_id : 0;
    return scope == 0 ? text.data() : concat(text.data(), "%", scope_text(scope));
}

bool operator==(const Address& a, const Address& b) {
    return a.bytes_ == b.bytes_ && std::memcmp(&a.storage_, &b.storage_, a.bytes_) == 0;
}

}  // namespace pccl::sys
