// A rank's memory as its peers know it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "csrc/abi/memory.h"
#include "csrc/base/ids.h"
#include "csrc/base/status.h"
#include "csrc/transport/transport_flags.h"

namespace pccl::transport {

/// A plain value, comparable; it owns nothing.
class PCCL_API RegisteredMemory {
   public:
    RegisteredMemory() = default;
    explicit RegisteredMemory(const abi::MemoryDescriptor& descriptor) : descriptor_(descriptor) {}

    /// In the owner's address space.
    [[nodiscard]] std::uint64_t address() const { return descriptor_.address; }
    [[nodiscard]] std::size_t bytes() const { return descriptor_.bytes; }
    [[nodiscard]] Rank owner() const { return descriptor_.owner; }
    [[nodiscard]] transport::TransportFlags transports() const {
        return transport::TransportFlags::from_bits(descriptor_.transports);
    }
    [[nodiscard]] const abi::MemoryDescriptor& descriptor() const { return descriptor_; }

    [[nodiscard]] std::string serialise() const;
    /// From bytes of any origin. kInvalidArgument names the field or the place.
    static Result<RegisteredMemory> deserialise(std::string_view bytes);

    friend bool operator==(const RegisteredMemory& a, const RegisteredMemory& b);

   private:
    abi::MemoryDescriptor descriptor_{};
};

}  // namespace pccl::transport
