// SPDX-License-Identifier: Apache-2.0

// Choice of the paths between two hosts: pairs of an interface here and an address there.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <pccl/export.h>
#include "csrc/sys/socket/address.h"
#include "csrc/sys/socket/interfaces.h"

namespace pccl::transport::tcp {

inline constexpr std::size_t kMostPaths = 8;

/// Pair of interface and address of which a path consists.
struct PathChoice {
    std::size_t interface = 0;  // index of the interface
    std::size_t address = 0;    // index of the peer's address
};

/// Pairs interfaces with the addresses of a peer: those of one subnet first, then the others in
/// their order. Each interface and each address is in a path, as far as their families match.
[[nodiscard]] PCCL_API std::vector<PathChoice> choose_paths(
    std::span<const sys::Interface> interfaces, std::span<const sys::Address> addresses);

/// Returns whether the address is in the subnet of the interface.
[[nodiscard]] PCCL_API bool share_subnet(const sys::Interface& interface,
                                         const sys::Address& address);

/// Returns the best address of each interface.
[[nodiscard]] PCCL_API std::vector<sys::Interface> one_of_each(
    std::span<const sys::Interface> interfaces, const std::string& spec);

/// Removes bridges and other devices without a wire where there are others.
PCCL_API void drop_internal(std::vector<sys::Interface>& interfaces);

}  // namespace pccl::transport::tcp
