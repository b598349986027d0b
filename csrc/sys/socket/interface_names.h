// SPDX-License-Identifier: Apache-2.0

// Names of the interfaces of this host by which connections go.
#pragma once

#include <map>
#include <string>

#include <pccl/export.h>

namespace pccl::sys {

/// Keeps the names that it has found: an address that moves to another interface keeps its first.
class PCCL_API InterfaceNames {
   public:
    /// Returns the interface that has the local address of a socket, "eth0"; empty if none has.
    std::string name_of(int socket);

   private:
    std::map<std::string, std::string> names_;  // by the IP address
};

}  // namespace pccl::sys
