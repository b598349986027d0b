// SPDX-License-Identifier: Apache-2.0

// One-sided access over any pair of streams: the peer's link copies, on the thread that calls its
// poll() or advance().
//
//     initiator                                          target
//       | -- write: registration, blocks, bytes ----------> |  into the memory as they come
//       | <- done: outcome ------------------------------- |
//       | -- read: registration, blocks ------------------> |
//       | <- data: bytes, done: outcome ------------------- |  a registration that ends in the
//       | -- notification: bytes, reported failures ------> |  middle: zeros, and "ended"
//       | <- taken ---------------------------------------- |
//
// The target publishes no address: a request has an id, a nonce and blocks, as a run (offset,
// length, stride, count) or a list of offsets and lengths (blocks.h). Each part of a request is
// checked anew, under a lock that an ending registration waits for (registry.h). Both ends are
// initiators and targets. An end always receives incoming messages: each has at most kRmaWindow
// requests and kMostRmaNotifications notifications that are not answered, so that two full streams
// cannot block each other.
#pragma once

#include <memory>

#include "csrc/transport/rma.h"
#include "csrc/transport/rma/registry.h"

namespace pccl::transport {

class RmaBundle;
struct RmaHelpers;

class PCCL_API RmaOverLinks final : public RmaTransport {
   public:
    using RmaTransport::add;
    Result<std::unique_ptr<Registration>> add(const Memory& memory,
                                              const MemoryIdentity& identity) override {
        return registry_->add(memory, identity);
    }
    /// Returns how many requests of peers were refused so far: for unknown registrations, or out of
    /// their bounds.
    [[nodiscard]] std::uint64_t refusals() const { return registry_->refusals(); }
    /// Connects streams of any kind.
    Result<std::unique_ptr<RmaLink>> connect(RmaStreams streams) override;
    /// Connects a bundle, without lanes at first. The peer must do the same.
    [[nodiscard]] std::unique_ptr<RmaBundle> connect_bundle(RmaStreams streams,
                                                            const RmaHelpers& helpers);

   private:
    const std::shared_ptr<RmaRegistry> registry_ = RmaRegistry::create();
};

}  // namespace pccl::transport
