// Messages of a link of over_links.h that wait for their stream, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/transport/link.h"
#include "csrc/transport/rma/frames.h"
#include "csrc/transport/rma/gpu_passage.h"

namespace pccl::transport {

class PCCL_API RmaOutbox {
   public:
    /// Told of each read that is answered: its bytes have been copied, or why not.
    using ReadServed = std::function<void(RmaOutcome)>;
    /// What becomes of a write into memory of a GPU; nullopt: it is on its way there.
    using Landing = std::function<Result<std::optional<RmaOutcome>>()>;

    [[nodiscard]] std::size_t size() const { return messages_.size(); }
    [[nodiscard]] bool is_flushed() const { return messages_.empty() && flushed_; }
    /// No payload; of kData, that of the registration which its head names.
    void add(const RmaFrame& head) { messages_.push_back({.head = head}); }
    /// `payload` stays valid until it is answered.
    void add_payload(const RmaFrame& head, Bytes payload) {
        messages_.push_back({.head = head, .payload = payload});
    }
    void add_copy(const RmaFrame& head, Bytes payload);
    /// The payload is memory of a GPU.
    void add_gpu_payload(const RmaFrame& head, const Memory& memory, std::size_t at);
    /// A kDone, which waits until that is known.
    void add_landing(const RmaFrame& head, Landing landing);
    /// Whether the front message waits for engines of GPUs.
    [[nodiscard]] bool awaits_copies() const;
    /// Drops all, once engines of GPUs are done with it.
    void clear() { messages_.clear(); }
    /// Sends what the stream takes; whether that was anything.
    Result<bool> send(SendLink& stream, RmaRegistry& registry, const ReadServed& served);

   private:
    struct Message {
        RmaFrame head{};
        Bytes payload{};
        std::vector<std::byte> own{};
        std::unique_ptr<GpuSource> source{};
        Landing landing{};
    };
    /// Of the front message: whether it can leave.
    Result<bool> is_ready(RmaRegistry& registry, const ReadServed& served);
    /// Looks where the bytes of a kData at the front are.
    void open_front(RmaRegistry& registry);
    /// Of the front message, from where it is. 0 when the stream is full.
    Result<std::size_t> send_part(SendLink& stream, RmaRegistry& registry);
    Result<std::size_t> send_registered(SendLink& stream, RmaRegistry& registry, RmaRange range);
    Result<std::size_t> send_fetched(SendLink& stream, GpuSource& source, Flush flush);
    Result<std::size_t> send_fetched_registered(SendLink& stream, RmaRegistry& registry,
                                                const RmaRange& range);
    Result<std::size_t> send_zeros(SendLink& stream, std::uint64_t bytes);
    /// A kData becomes the kDone that follows it.
    void answer(RmaOutcome outcome, const ReadServed& served);
    [[nodiscard]] std::size_t front_bytes() const;

    GpuPassage passage_;  // before what goes through it
    std::deque<Message> messages_;
    std::size_t sent_ = 0;  // bytes of the front message, its head first
    RmaOutcome outcome_{};  // of a kData at the front, so far
    bool flushed_ = true;   // whether the stream holds nothing back
};

/// What a peer is told of a failed use of a registration.
[[nodiscard]] RmaOutcome outcome_of(const Status& use);

}  // namespace pccl::transport
