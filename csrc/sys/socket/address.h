// SPDX-License-Identifier: Apache-2.0

// Address of a socket: IPv4, IPv6 (link-local ones with their scope), or an abstract unix name.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <pccl/status.h>

namespace pccl::sys {

/// A value: copyable, comparable, printable. The default one is no address.
class PCCL_API Address {
   public:
    Address() = default;
    /// Parses "10.0.0.1:4567", "[fd00::1]:4567", "[fe80::1%eth0]:4567" or "unix:@name". At most 128
    /// characters.
    static Result<Address> parse(std::string_view text);
    /// Takes an IP address without brackets, "10.0.0.1" or "fe80::1%eth0", and a port.
    static Result<Address> from_ip(std::string_view ip, std::uint16_t port);
    /// Takes a name in the abstract namespace, where names vanish with their sockets: 1 to 100 of
    /// A-Z a-z 0-9 . _ - /
    static Result<Address> from_unix_name(std::string_view name);
    /// Converts from the kernel's form; kUnsupported for other families and unnamed unix sockets.
    static Result<Address> from_raw(const sockaddr* raw, std::size_t bytes);

    /// Returns AF_INET, AF_INET6, AF_UNIX, or AF_UNSPEC for no address.
    [[nodiscard]] int family() const { return storage_.ss_family; }
    [[nodiscard]] bool is_ip() const { return family() == AF_INET || family() == AF_INET6; }
    [[nodiscard]] bool is_loopback() const;
    [[nodiscard]] bool is_link_local() const;
    /// Returns the bytes in network order; empty unless is_ip().
    [[nodiscard]] std::span<const std::uint8_t> ip_bytes() const;
    [[nodiscard]] std::uint16_t port() const;
    /// Returns whether both have the same IP address, with any ports and scopes.
    [[nodiscard]] bool same_ip(const Address& other) const;
    [[nodiscard]] Address with_port(std::uint16_t port) const;
    /// Returns the address with another scope. A scope is valid on one host only: a link-local
    /// address of a peer needs the index of the local interface.
    [[nodiscard]] Address with_scope(unsigned interface_index) const;
    /// Returns the form that from_ip() takes; empty unless is_ip().
    [[nodiscard]] std::string ip_text() const;
    /// Returns the form that parse() takes; "none" for no address.
    [[nodiscard]] std::string to_string() const;

    [[nodiscard]] const sockaddr* raw() const {
        return reinterpret_cast<const sockaddr*>(&storage_);
    }
    [[nodiscard]] socklen_t raw_bytes() const { return bytes_; }

    friend bool operator==(const Address& a, const Address& b);

   private:
    sockaddr_storage storage_{};
    socklen_t bytes_ = 0;
};

}  // namespace pccl::sys
