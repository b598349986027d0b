// SPDX-License-Identifier: Apache-2.0

// Memory of one message, registered with its communicator.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>

#include "tests/netplugin/side.h"

namespace pccl::netplugin {

inline constexpr int kTag = 0x77;

class Buffer {
   public:
    Buffer(const Side& side, void* comm, std::size_t bytes)
        : side_(side),
          comm_(comm),
          memory_(std::make_unique<PageMemory>(std::max<std::size_t>(bytes, 1))),
          mhandle_(side.reg(comm, *memory_)) {}
    ~Buffer() {
        if (memory_ != nullptr) side_.dereg(comm_, mhandle_);
    }
    Buffer(Buffer&&) = default;
    Buffer& operator=(Buffer&&) = delete;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    [[nodiscard]] const PageMemory& memory() const { return *memory_; }
    [[nodiscard]] void* isend(std::size_t bytes) const {
        return side_.isend(comm_, {memory_->data(), bytes}, kTag, mhandle_);
    }
    [[nodiscard]] void* irecv(std::size_t bytes) const {
        const std::array recv{
            GroupedRecv{.data = memory_->data(), .bytes = bytes, .tag = kTag, .mhandle = mhandle_}};
        return side_.irecv(comm_, recv);
    }

   private:
    const Side& side_;
    void* comm_;
    std::unique_ptr<PageMemory> memory_;
    void* mhandle_;
};

}  // namespace pccl::netplugin
