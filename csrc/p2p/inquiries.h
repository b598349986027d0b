// What sessions ask each other about the memory that they have published.
//
//     asks                                    is asked
//       | -- asked: number, name -------------> |   looks into its catalog
//       | <- answered: number, memory or why -- |
//
// Who doubts that a connection is still there asks for nothing (Ping): any answer will do.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "csrc/p2p/catalog.h"
#include "csrc/p2p/control_receiver.h"
#include "csrc/p2p/deferred_sends.h"
#include "csrc/p2p/memory.h"

namespace pccl::p2p {

/// A question that was asked.
class Inquiry {
   public:
    Inquiry(std::shared_ptr<Connection> to, std::string name)
        : to_(std::move(to)), name_(std::move(name)) {}

    [[nodiscard]] const std::shared_ptr<Connection>& to() const { return to_; }
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] bool is_answered() const { return answered_.load(std::memory_order_acquire); }
    /// Of one that is answered.
    [[nodiscard]] const Result<RemoteMemory>& answer() const { return answer_; }
    /// Once.
    void end(Result<RemoteMemory> answer);

   private:
    const std::shared_ptr<Connection> to_;
    const std::string name_;
    Result<RemoteMemory> answer_ = Status::unavailable("it has not answered");  // once answered_
    std::atomic<bool> answered_{false};
};

/// Of one session, to and from all its peers. Safe from every thread.
class Inquiries final : public ControlReceiver {
   public:
    /// Of one connection, without an answer.
    static constexpr std::size_t kMost = 256;

    explicit Inquiries(std::shared_ptr<transport::Waiter> waiter) : waiter_(std::move(waiter)) {}

    /// Of which peers ask.
    [[nodiscard]] Catalog& catalog() { return catalog_; }
    /// Without locks of connections; kResourceExhausted where kMost wait for that peer, also those
    /// that nobody waits for any more.
    Result<std::shared_ptr<const Inquiry>> ask(const std::shared_ptr<Connection>& to,
                                               const std::string& name);
    /// The same of a question for nothing: whether the peer answers.
    Result<std::shared_ptr<const Inquiry>> ping(const std::shared_ptr<Connection>& to);

    // As ControlReceiver has them:

    Status receive(const std::shared_ptr<Connection>& from, ControlMessage message) override;
    void lost(const Connection& connection, const Status& why) override;
    bool advance() override { return deferred_sends_.send(); }

   private:
    using InquiryPtr = std::shared_ptr<Inquiry>;

    /// `message_for(number)` makes the message.
    template <typename MessageFor>
    Result<std::shared_ptr<const Inquiry>> open(std::shared_ptr<Inquiry> inquiry,
                                                const MessageFor& message_for);
    Status answer(const std::shared_ptr<Connection>& to, Answered answered);
    Status handle(const std::shared_ptr<Connection>& from, const Asked& asked);
    Status handle(const std::shared_ptr<Connection>& from, const Ping& ping);
    Status handle(const std::shared_ptr<Connection>& from, const Answered& answered);
    template <typename Other>
    Status handle(const std::shared_ptr<Connection>&, const Other&) {
        return Status::internal("a message that is no question");
    }
    // Under mutex_:
    [[nodiscard]] std::size_t count_to(const Connection& peer) const;

    const std::shared_ptr<transport::Waiter> waiter_;
    Catalog catalog_;
    DeferredSends deferred_sends_{*waiter_};
    mutable std::mutex mutex_;                  // after those of connections
    std::map<std::uint64_t, InquiryPtr> open_;  // by number
    std::uint64_t next_number_ = 0;
};

}  // namespace pccl::p2p
