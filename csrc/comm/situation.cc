#include "csrc/comm/situation.h"

#include <algorithm>

#include "csrc/base/bytes.h"

namespace pccl::comm {
namespace {

constexpr std::size_t kLongestText = 1 * kKiB;
constexpr std::size_t kMostAwaited = 64;

}  // namespace

std::string Situation::serialise() const {
    ByteWriter out;
    out.u32(static_cast<std::uint32_t>(broken.code()));
    out.i64(broken.peer());
    out.text(std::string_view(broken.message()).substr(0, kLongestText));
    out.u64(sequence);
    out.text(std::string_view(operation).substr(0, kLongestText));
    const std::size_t count = std::min(awaited.size(), kMostAwaited);
    out.u32(static_cast<std::uint32_t>(count));
    for (std::size_t i = 0; i < count; ++i) out.i64(awaited[i]);
    return out.take();
}

Result<Situation> Situation::parse(std::string_view bytes) {
    ByteReader in(bytes);
    Situation situation;
    std::uint32_t code = 0;
    std::int64_t peer = 0;
    std::string text;
    PCCL_TRY(in.u32(code));
    PCCL_TRY(in.i64(peer));
    PCCL_TRY(in.text(text, kLongestText));
    PCCL_TRY(in.u64(situation.sequence));
    PCCL_TRY(in.text(situation.operation, kLongestText));
    std::uint32_t count = 0;
    PCCL_TRY(in.u32(count));
    if (code > static_cast<std::uint32_t>(StatusCode::kInternal) || count > kMostAwaited)
        return Status::invalid_argument("a rank describes a situation that cannot be");
    for (std::uint32_t i = 0; i < count; ++i) {
        std::int64_t rank = 0;
        PCCL_TRY(in.i64(rank));
        situation.awaited.push_back(static_cast<Rank>(rank));
    }
    PCCL_TRY(in.finish());
    situation.broken = Status(static_cast<StatusCode>(code), text, static_cast<Rank>(peer));
    return situation;
}

}  // namespace pccl::comm
