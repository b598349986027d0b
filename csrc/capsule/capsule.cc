// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/capsule.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/fork.h"
#include "csrc/base/text/text.h"
#include "csrc/capsule/extent.h"
#include "csrc/capsule/file_content.h"
#include "csrc/capsule/limits.h"
#include "csrc/capsule/program_bytes.h"
#include "csrc/schedule/schedule.h"

namespace pccl::capsule {
namespace {

using schedule::Schedule;

/// Receivers of each rank, ascending.
using Receivers = std::vector<std::vector<Rank>>;

Receivers receivers_in(const Schedule& schedule) {
    Receivers all;
    for (const schedule::Program& program : schedule.programs)
        all.push_back(schedule::receivers_of(program));
    return all;
}

/// Returns whether every rank sends to rank 0's receivers, shifted by `seen_from`.
template <typename SeenFrom>
bool follow_from_first(const Receivers& all, const SeenFrom& seen_from) {
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
        if (all[rank].size() != all.front().size()) return false;
        for (const Rank receiver : all.front())
            if (!std::ranges::binary_search(all[rank],
                                            seen_from(static_cast<Rank>(rank), receiver)))
                return false;
    }
    return true;
}

void add(std::string& text, const std::string& word) {
    text += concat(text.empty() ? "" : " ", word);
}

std::string distances(const std::vector<Rank>& receivers, int ranks) {
    std::string text;
    for (const Rank each : receivers)
        add(text, each <= ranks / 2 ? concat("+", each) : concat("-", ranks - each));
    return text;
}

std::string bits(const std::vector<Rank>& receivers) {
    std::string text;
    for (const Rank each : receivers) add(text, concat("^", each));
    return text;
}

std::string pairs(const Receivers& all) {
    std::string text;
    for (std::size_t rank = 0; rank < all.size(); ++rank)
        for (const Rank each : all[rank]) add(text, concat(rank, "->", each));
    return text;
}

/// Returns the links. "+1 -2": every rank sends to the next rank and to the rank two before it,
/// cyclically. "^1 ^4": to the ranks whose numbers differ in these bits. "0->1 2->0": individual
/// links. "5000 links": more than the list may have. Empty if every rank sends to every other, if
/// none sends, and for schedules that switch phases, because each phase has its own links.
std::string links_text(const Schedule& schedule) {
    if (!schedule.phases.empty()) return {};
    const Receivers all = receivers_in(schedule);
    const auto ranks = static_cast<Rank>(all.size());
    std::size_t links = 0;
    for (const std::vector<Rank>& receivers : all) links += receivers.size();
    if (links == all.size() * (all.size() - 1)) return {};
    const std::vector<Rank>& first = all.front();
    if (first.size() <= kMostListedLinks) {
        if (follow_from_first(all, [&](Rank rank, Rank far) { return (rank + far) % ranks; }))
            return distances(first, ranks);
        if (std::has_single_bit(all.size()) &&
            follow_from_first(all, [](Rank rank, Rank far) { return rank ^ far; }))
            return bits(first);
    }
    return links <= kMostListedLinks ? pairs(all) : concat(links, " links");
}

// Longer lists of sums are not useful.
constexpr int kMostRanksWithSums = 16;
constexpr std::size_t kMostSums = 256;

Result<Findings> prove(const Schedule& schedule) {
    Findings findings;
    PCCL_TRY(check_extent(schedule));
    PCCL_ASSIGN_OR_RETURN(findings.verdict, schedule::verify(schedule));
    findings.symmetry = symmetry_of(schedule);
    if (schedule.shape.ranks > kMostRanksWithSums) return findings;
    PCCL_ASSIGN_OR_RETURN(findings.sums, sums_of(schedule));
    if (findings.sums.size() > kMostSums) findings.sums.clear();
    return findings;
}

std::uint64_t first_of(const sys::Digest& digest) {
    std::uint64_t first = 0;
    for (std::size_t i = 0; i < sizeof first; ++i) first = first << 8U | digest.at(i);
    return first;
}

}  // namespace

/// Cache of the capsules that this process has verified and still uses.
class VerifiedCapsule::Proven {
   public:
    static Proven& of_process() {
        static auto* const proven = [] {
            auto* const made = new Proven;  // never destroyed
            hold_while_forking(made->mutex_);
            return made;
        }();
        return *proven;
    }

    /// Returns null if these bytes, whose digest is correct, are not in the cache.
    std::shared_ptr<const Content> find(const sys::Digest& digest, std::string_view bytes) {
        const std::lock_guard lock(mutex_);
        const auto found = contents_.find(digest);
        auto content = found == contents_.end() ? nullptr : found->second.lock();
        return content && content->bytes == bytes ? content : nullptr;
    }

    void keep(const std::shared_ptr<const Content>& content) {
        const std::lock_guard lock(mutex_);
        std::erase_if(contents_, [](const auto& each) { return each.second.expired(); });
        auto& kept = contents_[content->digest];
        if (kept.expired()) kept = content;
    }

   private:
    std::mutex mutex_;
    std::map<sys::Digest, std::weak_ptr<const Content>> contents_;
};

Result<VerifiedCapsule> VerifiedCapsule::make(const CapsuleDescription& description,
                                              Schedule schedule) {
    return made(description, std::move(schedule), FileVersion::kWithLinks);
}

Result<VerifiedCapsule> VerifiedCapsule::made(const CapsuleDescription& description,
                                              Schedule schedule, FileVersion newest) {
    PCCL_TRY(check(description));
    schedule.name = description.name;
    PCCL_ASSIGN_OR_RETURN(Findings findings, prove(schedule));
    if (newest >= FileVersion::kWithLinks) findings.links = links_text(schedule);
    const auto version = findings.links.empty() ? FileVersion::kFirst : FileVersion::kWithLinks;
    std::string manifest = manifest_text(description, schedule, findings);
    const std::string programs = program_bytes(schedule, findings.symmetry);
    std::string bytes =
        concat(head_of(version, manifest.size(), programs.size()), manifest, programs);
    const sys::Digest digest = sys::sha256(bytes);
    bytes += view_of(digest);
    if (bytes.size() > kMostBytes || manifest.size() > kMostManifestBytes)
        return refuse("capsule ", description.name, " would have ", bytes.size(),
                      " bytes; at most ", kMostBytes, " are read");
    const auto content = std::make_shared<const Content>(Content{.description = description,
                                                                 .schedule = std::move(schedule),
                                                                 .findings = std::move(findings),
                                                                 .manifest = std::move(manifest),
                                                                 .bytes = std::move(bytes),
                                                                 .digest = digest});
    Proven::of_process().keep(content);
    return VerifiedCapsule(content);
}

Result<VerifiedCapsule> VerifiedCapsule::made_of(const FileParts& parts, std::string_view whole) {
    PCCL_ASSIGN_OR_RETURN(FileContent content, content_of(parts));
    PCCL_ASSIGN_OR_RETURN(VerifiedCapsule capsule,
                          made(content.description, std::move(content.schedule), parts.version));
    if (capsule.bytes() == whole) return capsule;
    const std::string key = first_difference(parts.manifest, capsule.manifest());
    return key.empty() ? refuse("it is not in the canonical form of capsules")
                       : refuse("its manifest differs from its programs, at ", key);
}

Result<VerifiedCapsule> VerifiedCapsule::parse(std::string_view bytes) {
    PCCL_ASSIGN_OR_RETURN(const FileParts parts, parts_of(bytes));
    if (!parts.signature.empty()) return refuse("it is signed, which one capsule by itself is not");
    if (parts.version == FileVersion::kOfManyNumbers)
        return refuse("it is for several numbers of ranks");
    const auto known = Proven::of_process().find(parts.digest, bytes);
    return known ? VerifiedCapsule(known) : made_of(parts, bytes);
}

VerifiedCapsule VerifiedCapsule::from_file(const sys::Digest& digest) const {
    VerifiedCapsule copy = *this;
    copy.file_digest_ = digest;
    return copy;
}

schedule::SourcePtr VerifiedCapsule::source(const std::optional<schedule::SizeRange>& sizes) const {
    const std::shared_ptr<const Schedule> schedule(content_, &content_->schedule);
    auto source = source_of(schedule, content_->findings.verdict, first_of(file_digest_));
    source.symmetry = content_->findings.symmetry;
    source.sizes = sizes.value_or(content_->description.sizes);
    source.protocol = content_->description.protocol;
    return std::make_shared<const schedule::ScheduleSource>(std::move(source));
}

std::vector<schedule::PartSource> VerifiedCapsule::parts() const {
    return part_sources_of(content_->schedule, content_->findings.verdict, first_of(file_digest_));
}

}  // namespace pccl::capsule
