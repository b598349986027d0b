// SPDX-License-Identifier: Apache-2.0

// What ranks publish in the rendezvous store: endpoints, addresses, and the URL of the store
// itself.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "csrc/bootstrap/endpoint.h"
#include "csrc/sys/socket/address.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace pccl;  // NOLINT(google-build-using-namespace): one function
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    const auto endpoint = bootstrap::Endpoint::deserialise(bytes);
    if (endpoint.is_ok()) {
        const auto again = bootstrap::Endpoint::deserialise(endpoint->serialise());
        if (!again.is_ok() || !(*again == *endpoint)) std::abort();
        static_cast<void>(endpoint->to_string());
    }
    const auto address = sys::Address::parse(bytes);
    if (address.is_ok() && !sys::Address::parse(address->to_string()).is_ok()) std::abort();
    return 0;
}
