// SPDX-License-Identifier: Apache-2.0

// Owner of a communicator of a plug-in and of the memory that is registered with it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <pccl/status.h>
#include "csrc/sys/net_plugin/plugin.h"
#include "csrc/transport/mapping.h"

namespace pccl::transport::netplugin {

using sys::net_plugin::CallSlot;
using sys::net_plugin::Plugin;

/// The plug-in, and the place of calls that exclude each other.
struct Caller {
    Plugin* plugin = nullptr;
    std::shared_ptr<CallSlot> slot;
};

/// A plug-in closes with one of these.
using Closer = Status (Plugin::*)(CallSlot& slot, void* comm) const;

class Comm {
   public:
    Comm() = default;
    Comm(Caller caller, void* comm, Closer closer)
        : caller_(std::move(caller)), comm_(comm), closer_(closer) {}
    Comm(Comm&& other) noexcept
        : caller_(std::move(other.caller_)),
          comm_(std::exchange(other.comm_, nullptr)),
          closer_(other.closer_),
          memory_(std::move(other.memory_)),
          mhandle_(std::exchange(other.mhandle_, nullptr)),
          is_registered_(std::exchange(other.is_registered_, false)) {}
    Comm& operator=(Comm&& other) noexcept {
        std::swap(caller_, other.caller_);
        std::swap(comm_, other.comm_);
        std::swap(closer_, other.closer_);
        std::swap(memory_, other.memory_);
        std::swap(mhandle_, other.mhandle_);
        std::swap(is_registered_, other.is_registered_);
        return *this;
    }
    Comm(const Comm&) = delete;
    Comm& operator=(const Comm&) = delete;
    /// Deregisters, then closes, in NCCL's order; the memory lives until then.
    ~Comm();

    [[nodiscard]] bool is_open() const { return comm_ != nullptr; }
    /// Registers all of `mapping`, once. Communicators may share it.
    Status attach(std::shared_ptr<Mapping> mapping);
    [[nodiscard]] std::span<std::byte> memory() const { return memory_->memory(); }
    [[nodiscard]] const std::shared_ptr<Mapping>& mapping() const { return memory_; }

    [[nodiscard]] Result<void*> isend(std::span<std::byte> bytes) const;
    [[nodiscard]] Result<void*> irecv(std::span<std::byte> into) const;
    /// Returns whether the oldest request is done; `bytes` is untouched where the plug-in does not
    /// return sizes.
    [[nodiscard]] Result<bool> test(void* request, int& bytes) const;
    [[nodiscard]] Result<Comm> accept(Closer closer) const;
    [[nodiscard]] const Caller& caller() const { return caller_; }

   private:
    Caller caller_;
    void* comm_ = nullptr;
    Closer closer_ = nullptr;
    std::shared_ptr<Mapping> memory_;
    void* mhandle_ = nullptr;
    bool is_registered_ = false;
};

}  // namespace pccl::transport::netplugin
