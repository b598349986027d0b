// A store that rank 0 serves to the others over TCP: to those who prove the job's secret, where it
// has one (PCCL_SECRET_FILE), else to whoever can reach the port (docs/security.md).
//
// Rank 0's store must outlive the others' use of theirs. Requests of one process go over one
// connection, one at a time; a child of fork() opens its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "csrc/base/fork.h"
#include "csrc/base/unique_fd.h"
#include "csrc/bootstrap/rendezvous/store.h"
#include "csrc/bootstrap/rendezvous/store_server.h"

namespace pccl::bootstrap {

struct StoreLocation {
    std::string host;  // name or IP address
    std::uint16_t port = 0;

    /// "tcp://[fd00::1]:29500"
    [[nodiscard]] std::string to_string() const;
};

class PCCL_API TcpStore final : public Store {
   public:
    /// Rank 0: serves the store on this machine and joins it. Listens at those addresses of a name
    /// that are of this machine, and nowhere else. kUnavailable when none is, or the port is taken.
    /// One that may hold anything may also be one that this process serves there already; and a
    /// port that is taken is waited for, for some seconds: its process may be about to end.
    static Result<std::shared_ptr<TcpStore>> host(const StoreLocation& location, Deadline deadline,
                                                  const transport::Secret& secret = kNoStoreSecret,
                                                  StoreContent content = StoreContent::kNone);
    /// Tries until `deadline`, since rank 0 may come later; then kTimeout, which names rank 0 and
    /// the address. kInvalidArgument where somebody else serves there, or with another secret.
    static Result<std::shared_ptr<TcpStore>> join(const StoreLocation& location, Deadline deadline,
                                                  const transport::Secret& secret = kNoStoreSecret);

    Status set(const std::string& key, const std::string& value) override;
    Result<std::string> get(const std::string& key, Deadline deadline) override;
    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override;
    Status remove(const std::string& key) override;
    Status reopen(Deadline deadline) override;
    [[nodiscard]] std::string where() const override {
        return "the store " + location_.to_string();
    }

    [[nodiscard]] std::string server() const override { return location_.host; }

    /// Where it is connected to.
    [[nodiscard]] const StoreLocation& location() const { return location_; }

   private:
    TcpStore(StoreLocation location, const transport::Secret& secret)
        : location_(std::move(location)), secret_(secret) {}

    Status connect(Deadline deadline);
    Status connect_once(std::span<const sys::Address> addresses, Deadline deadline);
    Status enter(const sys::Address& address, Deadline deadline);
    Result<std::string> call(StoreRequest request, Deadline deadline);
    /// nullopt when the deadline passed.
    Result<std::optional<StoreAnswer>> await(std::uint32_t id, Deadline deadline);
    Status receive(Deadline deadline);
    Status broken(const Status& why);

    const ForkMark made_in_;
    StoreLocation location_;
    transport::Secret secret_;
    std::shared_ptr<StoreServer> server_;  // on rank 0
    UniqueFd socket_;
    std::string in_;
    std::uint32_t last_id_ = 0;
    Status health_;  // sticks: the stream is in an unknown place after an error
};

}  // namespace pccl::bootstrap
