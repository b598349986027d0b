// One-sided access over any pair of streams: the peer's link copies, on the thread that drives it
// on with poll() or advance().
//
//     initiator                                          target
//       | -- write: registration, blocks, bytes ----------> |  into the memory as they come
//       | <- done: outcome ------------------------------- |
//       | -- read: registration, blocks ------------------> |
//       | <- data: bytes, done: outcome ------------------- |  a registration that ends in the
//       | -- notification: bytes, known failures ---------> |  middle: zeros, and "ended"
//       | <- taken ---------------------------------------- |
//
// The target names no address: a request has an id, a nonce and blocks, a run of them (offset,
// length, stride, count) or a list of offsets and lengths (blocks.h), and each part of it is
// checked anew, under a lock that an ending registration waits for (registry.h). Both ends are
// initiators and targets. What comes in is always taken in: each end has at most kWindow requests
// and kMostRmaNotifications notifications that are not answered, so that no pair of full streams
// can hold each other up.
#pragma once

#include <memory>

#include "csrc/transport/rma.h"
#include "csrc/transport/rma/registry.h"

namespace pccl::transport {

class PCCL_API RmaOverLinks final : public RmaTransport {
   public:
    using RmaTransport::add;
    Result<std::unique_ptr<Registration>> add(const Memory& memory,
                                              const MemoryIdentity& identity) override {
        return registry_->add(memory, identity);
    }
    /// Requests of peers that were refused so far: for registrations that there are not, or beyond
    /// them.
    [[nodiscard]] std::uint64_t refusals() const { return registry_->refusals(); }
    /// Streams of any kind.
    Result<std::unique_ptr<RmaLink>> connect(RmaStreams streams) override;

   private:
    const std::shared_ptr<RmaRegistry> registry_ = RmaRegistry::create();
};

}  // namespace pccl::transport
