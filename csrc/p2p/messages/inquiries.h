// SPDX-License-Identifier: Apache-2.0

// Inquiries of sessions about the memory that their peers have published.
//
//    requester                                 owner
//       | -- Query: number, name -------------> |   looks into its catalog
//       | <- Reply: number, memory or why ----- |
//
// A session that needs to check a connection sends a Ping; any answer is enough.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "csrc/p2p/connection/control_message.h"
#include "csrc/p2p/messages/catalog.h"
#include "csrc/p2p/messages/deferred_sends.h"
#include "csrc/p2p/transfers/registered_memory.h"

namespace pccl::p2p {

/// One inquiry and its answer.
class Inquiry {
   public:
    Inquiry(std::shared_ptr<Connection> to, std::string name)
        : to_(std::move(to)), name_(std::move(name)) {}

    [[nodiscard]] const std::shared_ptr<Connection>& to() const { return to_; }
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] bool is_answered() const { return answered_.load(std::memory_order_acquire); }
    /// Returns the answer. Valid once it is_answered().
    [[nodiscard]] const Result<RemoteMemory>& answer() const { return answer_; }
    /// Completes the inquiry. Call it once.
    void complete(Result<RemoteMemory> answer);

   private:
    const std::shared_ptr<Connection> to_;
    const std::string name_;
    // valid once answered_
    Result<RemoteMemory> answer_ = Status::unavailable("it has not answered");
    std::atomic<bool> answered_{false};
};

/// Inquiries of one session, from and to all its peers. Thread-safe.
class Inquiries final : public ControlReceiver {
   public:
    /// Most unanswered inquiries on one connection.
    static constexpr std::size_t kMost = 256;

    explicit Inquiries(std::shared_ptr<transport::Waiter> waiter) : waiter_(std::move(waiter)) {}

    /// Returns the catalog that answers the peers' inquiries.
    [[nodiscard]] Catalog& catalog() { return catalog_; }
    /// Sends an inquiry. Call it without locks of connections. Returns kResourceExhausted where
    /// kMost inquiries wait for that peer; abandoned ones count, too.
    Result<std::shared_ptr<const Inquiry>> query(const std::shared_ptr<Connection>& to,
                                                 const std::string& name);
    /// Sends a ping, which checks that the peer answers. Errors are those of query().
    Result<std::shared_ptr<const Inquiry>> ping(const std::shared_ptr<Connection>& to);

    // ControlReceiver:

    Status receive(const std::shared_ptr<Connection>& from, ControlMessage message) override;
    void lost(const Connection& connection, const Status& why) override;
    bool advance() override { return deferred_sends_.send(); }

   private:
    using InquiryPtr = std::shared_ptr<Inquiry>;

    /// Sends the message that `message_for(number)` returns.
    template <typename MessageFor>
    Result<std::shared_ptr<const Inquiry>> open(std::shared_ptr<Inquiry> inquiry,
                                                const MessageFor& message_for);
    Status answer(const std::shared_ptr<Connection>& to, Reply answered);
    Status handle(const std::shared_ptr<Connection>& from, const Query& requested);
    Status handle(const std::shared_ptr<Connection>& from, const Ping& ping);
    Status handle(const std::shared_ptr<Connection>& from, const Reply& answered);
    template <typename Other>
    Status handle(const std::shared_ptr<Connection>&, const Other&) {
        return Status::internal("a message that is no question");
    }
    // Under mutex_:
    [[nodiscard]] std::size_t count_to(const Connection& peer) const;

    const std::shared_ptr<transport::Waiter> waiter_;
    Catalog catalog_;
    DeferredSends deferred_sends_{*waiter_};
    mutable std::mutex mutex_;                  // locked after those of connections
    std::map<std::uint64_t, InquiryPtr> open_;  // by number
    std::uint64_t next_number_ = 0;
};

}  // namespace pccl::p2p
