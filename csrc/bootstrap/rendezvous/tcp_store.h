// SPDX-License-Identifier: Apache-2.0

// Store that rank 0 serves over TCP. Where the job has a secret (PCCL_SECRET_FILE), clients must
// prove it; otherwise any process that reaches the port has access (docs/reference/security.md).
//
// Rank 0's store must outlive the use by the other ranks. A process sends its requests over one
// connection, one at a time; a child of fork() opens its own connection.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <pccl/store.h>
#include "csrc/base/fork.h"
#include "csrc/base/unique_fd.h"
#include "csrc/bootstrap/rendezvous/store_server.h"
#include "csrc/sys/socket/address.h"

namespace pccl::bootstrap {

struct StoreLocation {
    std::string host;  // name or IP address
    std::uint16_t port = 0;

    /// Returns, for example, "tcp://[fd00::1]:29500".
    [[nodiscard]] std::string to_string() const;
};

class PCCL_API TcpStore final : public Store {
   public:
    /// Serves the store on this machine (rank 0) and joins it. Listens only at those addresses of
    /// the name that belong to this machine. Returns kUnavailable when none does, or the port is in
    /// use. If `content` is kAny, it shares a store that this process already serves there, and
    /// otherwise retries for some seconds while the port is in use, because its process may be
    /// about to end.
    static Result<std::shared_ptr<TcpStore>> host(const StoreLocation& location, Deadline deadline,
                                                  const transport::Secret& secret = kNoStoreSecret,
                                                  StoreContent content = StoreContent::kNone);
    /// Joins the store. Retries until `deadline`, because rank 0 may start later, and returns
    /// kTimeout with rank 0 and the address then. Returns kInvalidArgument where another service
    /// listens there, or the secret differs.
    static Result<std::shared_ptr<TcpStore>> join(const StoreLocation& location, Deadline deadline,
                                                  const transport::Secret& secret = kNoStoreSecret);
    /// Joins the store at the first of these addresses that it reaches, otherwise as join().
    static Result<std::shared_ptr<TcpStore>> join_at_any(std::vector<sys::Address> addresses,
                                                         Deadline deadline,
                                                         const transport::Secret& secret);

    Status set(const std::string& key, const std::string& value) override;
    Result<std::string> get(const std::string& key, Deadline deadline) override;
    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override;
    Status remove(const std::string& key) override;
    Status reopen(Deadline deadline) override;
    [[nodiscard]] std::string where() const override {
        return "the store " + location_.to_string();
    }

    [[nodiscard]] std::string server() const override { return location_.host; }

    /// Returns the location to which it is connected.
    [[nodiscard]] const StoreLocation& location() const { return location_; }

   private:
    TcpStore(StoreLocation location, const transport::Secret& secret)
        : location_(std::move(location)), secret_(secret) {}

    [[nodiscard]] Result<std::vector<sys::Address>> candidates(Deadline deadline) const;
    Status connect(Deadline deadline);
    Status connect_once(std::span<const sys::Address> addresses, Deadline deadline);
    Status enter(const sys::Address& address, Deadline deadline);
    Result<std::string> call(StoreRequest request, Deadline deadline);
    /// Returns nullopt when the deadline has passed.
    Result<std::optional<StoreAnswer>> await(std::uint32_t id, Deadline deadline);
    Status receive(Deadline deadline);
    Status broken(const Status& why);

    const ForkMark made_in_;
    StoreLocation location_;
    std::vector<sys::Address> addresses_;  // empty: those of location_
    transport::Secret secret_;
    std::shared_ptr<StoreServer> server_;  // on rank 0
    UniqueFd socket_;
    std::string in_;
    std::uint32_t last_id_ = 0;
    Status health_;  // sticky: the stream position is unknown after an error
};

}  // namespace pccl::bootstrap
