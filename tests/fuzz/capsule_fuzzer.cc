// SPDX-License-Identifier: Apache-2.0

// Capsules, whole and by their parts, which a digest would keep from most inputs. What is accepted
// must come back with the same bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/capsule/capsule_file.h"
#include "csrc/capsule/file_content.h"
#include "csrc/capsule/manifest.h"
#include "csrc/capsule/program_bytes.h"
#include "csrc/capsule/sizes.h"
#include "tests/fuzz/read_again.h"

namespace {

using namespace pccl::capsule;

constexpr std::string_view kMagic = "pccl-capsule";

std::string with_digest(std::string bytes) {
    const auto digest = pccl::sys::sha256(bytes);
    return bytes.append(reinterpret_cast<const char*>(digest.data()), digest.size());
}

/// Nothing but a line says what is wrong.
bool is_right(const pccl::Status& status) {
    if (status.message().find('\n') != std::string::npos) std::abort();
    return status.is_ok();
}

void parse_capsule_file(const std::string& bytes) {
    const auto file = CapsuleFile::parse(bytes);
    if (!is_right(file.status())) return;
    const auto proven = file->proven();
    if (!is_right(proven.status())) return;
    if (proven->signed_bytes() != bytes) std::abort();
    std::vector<VerifiedCapsule> capsules;
    for (const int ranks : proven->ranks()) capsules.push_back(proven->for_ranks(ranks).value());
    const auto again = CapsuleFile::of(std::move(capsules));
    if (!again.is_ok() || again->bytes() != file->bytes()) std::abort();
}

/// Files without digests, one after the other, in one for all their numbers of ranks.
void parse_several(std::string_view bytes) {
    std::string inside;
    std::vector<int> ranks;
    Stated common;
    while (!bytes.empty()) {
        const std::string file = with_digest(std::string(bytes.substr(0, bytes.find(kMagic, 1))));
        bytes.remove_prefix(file.size() - std::tuple_size_v<pccl::sys::Digest>);
        const auto parts = parts_of(file);
        if (!parts.is_ok()) return;
        const auto stated = parse_manifest(parts->manifest);
        if (!stated.is_ok()) return;
        if (ranks.empty()) common = *stated;
        ranks.push_back(stated->shape.ranks);
        inside += file;
    }
    const std::string manifest = common_manifest_text(common, ranks);
    parse_capsule_file(with_digest(
        pccl::concat(kMagic, " 3 ", manifest.size(), " ", inside.size(), "\n", manifest, inside)));
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
    expect_read_again(VerifiedCapsule::make({.name = "fuzz"}, std::move(schedule)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    parse_capsule_file(std::string(bytes));
    parse_capsule_file(with_digest(std::string(bytes)));
    parse_several(bytes);
    static_cast<void>(parse_manifest(bytes));
    static_cast<void>(parse_sizes(bytes));
    parse_parts(bytes);
    return 0;
}
