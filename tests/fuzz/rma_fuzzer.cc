// What a peer's link of one-sided access sends: whatever it is, nothing beside the registration
// changes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "csrc/transport/rma/frames.h"
#include "csrc/transport/rma/over_links.h"
#include "tests/fakes/memory_links.h"

namespace {

using namespace pccl::transport;

constexpr std::size_t kGuard = 64;
constexpr std::size_t kRegistered = 256;
constexpr MemoryIdentity kIdentity{.id = 1, .nonce = 2};

bool is_untouched(std::span<const std::byte> guard) {
    return std::ranges::all_of(guard, [](std::byte each) { return each == std::byte{0}; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::vector<std::byte> memory(kGuard + kRegistered + kGuard);
    RmaOverLinks rma;
    const auto registration =
        rma.add({.data = memory.data() + kGuard, .bytes = kRegistered}, kIdentity);
    const auto heard = std::make_shared<pccl::fakes::MemoryStream>();
    const auto bytes = std::as_bytes(std::span(data, size));
    heard->bytes.assign(bytes.begin(), bytes.end());
    const auto said = std::make_shared<pccl::fakes::MemoryStream>();
    const auto link = rma.connect({.out = std::make_unique<pccl::fakes::MemorySendLink>(said),
                                   .in = std::make_unique<pccl::fakes::MemoryRecvLink>(heard)});
    for (int i = 0; i < 3; ++i) static_cast<void>((*link)->next_notification());
    if (!is_untouched(std::span(memory).first(kGuard)) ||
        !is_untouched(std::span(memory).last(kGuard)))
        std::abort();
    return 0;
}
