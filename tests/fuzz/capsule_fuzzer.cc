// Capsules, whole and by their parts, which a digest would keep from most inputs. What is accepted
// must come back with the same bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "csrc/base/text.h"
#include "csrc/capsule/capsule.h"
#include "csrc/capsule/program_bytes.h"
#include "csrc/capsule/sizes.h"
#include "tests/fuzz/read_again.h"

namespace {

using namespace pccl::capsule;

std::string with_digest(std::string bytes) {
    const auto digest = pccl::sys::sha256(bytes);
    return bytes.append(reinterpret_cast<const char*>(digest.data()), digest.size());
}

void parse(std::string_view bytes) {
    const auto capsule = Capsule::parse(bytes);
    if (!capsule.is_ok() && capsule.status().message().find('\n') != std::string::npos)
        std::abort();
    if (capsule.is_ok() && capsule->bytes() != bytes) std::abort();
}

/// Programs of a shape that the first bytes choose.
void parse_parts(std::string_view bytes) {
    if (bytes.size() < 3) return;
    const pccl::schedule::Shape shape{
        .kind = static_cast<pccl::schedule::CollectiveKind>(bytes[0] & 7),
        .ranks = 1 + (bytes[1] & 7),
        .root = 0,
        .chunks = 1 + (bytes[2] & 7),
        .slots = 2};
    auto programs = parse_programs(bytes.substr(3), shape);
    if (!programs.is_ok()) return;
    pccl::schedule::Schedule schedule{
        .name = "fuzz", .shape = shape, .programs = *std::move(programs)};
    expect_read_again(Capsule::make({.name = "fuzz"}, std::move(schedule)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    parse(bytes);
    parse(with_digest(std::string(bytes)));
    static_cast<void>(parse_manifest(bytes));
    static_cast<void>(parse_sizes(bytes));
    parse_parts(bytes);
    return 0;
}
