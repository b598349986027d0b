// The addresses of a host name, looked up on a thread of its own: the resolver of the C library may
// block for as long as name servers are silent, and cannot be interrupted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/sys/socket/address.h"

namespace pccl::sys {

using Addresses = std::vector<Address>;

/// A lookup that has begun. One that is destroyed before its end leaves its thread, which owns all
/// that it uses, to the resolver.
class PCCL_API NameLookup {
   public:
    using Resolver = std::function<Result<Addresses>(const std::string&, std::uint16_t)>;

    /// Needs no thread where `host` is an address. `resolver`: resolve(), but for tests.
    NameLookup(std::string host, std::uint16_t port, const Resolver& resolver = {});

    [[nodiscard]] const std::string& host() const { return host_; }
    /// What resolve() gives, never empty; nullopt: not yet. Does not block.
    [[nodiscard]] std::optional<Result<Addresses>> poll() const;
    /// The same; kTimeout, with the host and how long it took, once `deadline` has passed.
    [[nodiscard]] Result<Addresses> wait(Deadline deadline) const;

   private:
    struct Answer;

    std::string host_;
    TimePoint begun_;
    std::shared_ptr<Answer> answer_;
};

/// All addresses of a host name or literal, in the resolver's order; kTimeout at the deadline.
[[nodiscard]] PCCL_API Result<Addresses> resolve(const std::string& host, std::uint16_t port,
                                                 Deadline deadline);

}  // namespace pccl::sys
