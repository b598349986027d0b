// SPDX-License-Identifier: Apache-2.0

// What NIXL keeps for the plugin: of registered memory, and of transfers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <pccl/session.h>
#include "backend/backend_aux.h"

namespace pccl::nixl {

/// Registered here.
class LocalMetadata final : public nixlBackendMD {
   public:
    explicit LocalMetadata(std::shared_ptr<p2p::LocalMemory> memory)
        : nixlBackendMD(true), memory_(std::move(memory)) {}

    [[nodiscard]] const std::shared_ptr<p2p::LocalMemory>& memory() const { return memory_; }
    [[nodiscard]] std::uintptr_t begin() const {
        return reinterpret_cast<std::uintptr_t>(memory_->data());
    }

   private:
    const std::shared_ptr<p2p::LocalMemory> memory_;
};

/// Registered by an agent, this one among them; descriptors name it by its addresses there.
class RemoteMetadata final : public nixlBackendMD {
   public:
    RemoteMetadata(p2p::RemoteMemory memory, std::uintptr_t begin)
        : nixlBackendMD(false), memory_(std::move(memory)), begin_(begin) {}

    [[nodiscard]] const p2p::RemoteMemory& memory() const { return memory_; }
    [[nodiscard]] std::uintptr_t begin() const { return begin_; }

   private:
    const p2p::RemoteMemory memory_;
    const std::uintptr_t begin_;
};

/// A transfer, prepared once, posted as often as one likes: a plan for each pair of memories.
class Request final : public nixlBackendReqH {
   public:
    Request(std::string peer, std::vector<std::shared_ptr<const p2p::Plan>> prepared)
        : session(std::move(peer)), plans(std::move(prepared)) {}

    const std::string session;  // of the peer
    const std::vector<std::shared_ptr<const p2p::Plan>> plans;
    std::vector<p2p::Work> works;         // of the last post
    std::vector<std::byte> notification;  // to be sent once all of these are done; or empty
};

}  // namespace pccl::nixl
