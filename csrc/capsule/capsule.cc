// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/capsule.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "csrc/base/fork.h"
#include "csrc/base/text.h"
#include "csrc/capsule/extent.h"
#include "csrc/capsule/file_content.h"
#include "csrc/capsule/limits.h"
#include "csrc/capsule/links_text.h"
#include "csrc/capsule/program_bytes.h"
#include "csrc/capsule/refusal.h"

namespace pccl::capsule {
namespace {

using schedule::Schedule;

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
class Capsule::Proven {
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

Result<Capsule> Capsule::make(const Description& description, Schedule schedule) {
    return made(description, std::move(schedule), FileVersion::kWithLinks);
}

Result<Capsule> Capsule::made(const Description& description, Schedule schedule,
                              FileVersion newest) {
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
    return Capsule(content);
}

Result<Capsule> Capsule::made_of(const FileParts& parts, std::string_view whole) {
    PCCL_ASSIGN_OR_RETURN(FileContent content, content_of(parts));
    PCCL_ASSIGN_OR_RETURN(Capsule capsule,
                          made(content.description, std::move(content.schedule), parts.version));
    if (capsule.bytes() == whole) return capsule;
    const std::string key = first_difference(parts.manifest, capsule.manifest());
    return key.empty() ? refuse("it is not written in the one way that capsules have")
                       : refuse("its manifest says something else than its programs, at ", key);
}

Result<Capsule> Capsule::parse(std::string_view bytes) {
    PCCL_ASSIGN_OR_RETURN(const FileParts parts, parts_of(bytes));
    if (!parts.signature.empty()) return refuse("it is signed, which one capsule by itself is not");
    if (parts.version == FileVersion::kOfManyNumbers)
        return refuse("it is for several numbers of ranks");
    const auto known = Proven::of_process().find(parts.digest, bytes);
    return known ? Capsule(known) : made_of(parts, bytes);
}

Capsule Capsule::from_file(const sys::Digest& digest) const {
    Capsule copy = *this;
    copy.file_digest_ = digest;
    return copy;
}

schedule::SourcePtr Capsule::source(const std::optional<schedule::SizeRange>& sizes) const {
    const std::shared_ptr<const Schedule> schedule(content_, &content_->schedule);
    auto source = source_of(schedule, content_->findings.verdict, first_of(file_digest_));
    source.symmetry = content_->findings.symmetry;
    source.sizes = sizes.value_or(content_->description.sizes);
    source.protocol = content_->description.protocol;
    return std::make_shared<const schedule::ScheduleSource>(std::move(source));
}

std::vector<schedule::PartSource> Capsule::parts() const {
    return part_sources_of(content_->schedule, content_->findings.verdict, first_of(file_digest_));
}

}  // namespace pccl::capsule
