// SPDX-License-Identifier: Apache-2.0

// Handles of the plug-in for NCCL, from any bytes: they are refused, or read as what they say.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "csrc/base/ids.h"
#include "plugins/nccl/handle.h"
#include "plugins/nccl/network_device.h"
#include "tests/fuzz/require.h"

namespace {

using pccl::nccl::Handle;
using pccl::nccl::HandleBytes;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    HandleBytes bytes{};
    std::copy_n(reinterpret_cast<const std::byte*>(data), std::min(size, bytes.size()),
                bytes.begin());
    const auto handle = Handle::decode(bytes);
    if (!handle.is_ok()) return 0;
    const auto again = Handle::decode(handle->encode());
    require(again.is_ok());
    require(again->addresses == handle->addresses && again->rank == handle->rank);
    require(again->id == handle->id && again->needs_secret == handle->needs_secret);
    pccl::nccl::NetworkDevice device;
    for (const char* own : {"10.0.0.1", "fd00::1", "127.0.0.1"})
        device.interfaces.push_back({.name = own,
                                     .address = pccl::sys::Address::from_ip(own, 0).value(),
                                     .prefix_bits = 24});
    for (const auto& path : pccl::nccl::choose_paths(device, handle->addresses))
        require(path.interface < device.interfaces.size() &&
                path.address < handle->addresses.size());
    return 0;
}
