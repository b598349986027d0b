// SPDX-License-Identifier: Apache-2.0

// Lookup of a host name's addresses on a thread of its own: the resolver of the C library may block
// while name servers do not answer, and cannot be interrupted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/sys/socket/address.h"

namespace pccl::sys {

using Addresses = std::vector<Address>;

/// A running lookup. If it is destroyed before its end, its thread, which owns all its data,
/// continues until the resolver returns.
class PCCL_API NameLookup {
   public:
    using Resolver = std::function<Result<Addresses>(const std::string&, std::uint16_t)>;

    /// Starts the lookup; needs no thread where `host` is an address. `resolver` is resolve(),
    /// except in tests.
    NameLookup(std::string host, std::uint16_t port, const Resolver& resolver = {});

    [[nodiscard]] const std::string& host() const { return host_; }
    /// Returns the result of resolve(), never empty; nullopt: not yet. Does not block.
    [[nodiscard]] std::optional<Result<Addresses>> poll() const;
    /// Waits for the result. kTimeout, with the host and the elapsed time, once `deadline` has
    /// passed.
    [[nodiscard]] Result<Addresses> wait(Deadline deadline) const;

   private:
    struct Answer;

    std::string host_;
    TimePoint begun_;
    std::shared_ptr<Answer> answer_;
};

/// Returns all addresses of a host name or literal, in the resolver's order; kTimeout at the
/// deadline.
[[nodiscard]] PCCL_API Result<Addresses> resolve(const std::string& host, std::uint16_t port,
                                                 Deadline deadline);

}  // namespace pccl::sys
