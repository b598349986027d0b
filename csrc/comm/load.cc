// SPDX-License-Identifier: Apache-2.0

// Capsules that a group loads and unloads at run time: either all of its ranks do, or none.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/capsule/capsule_file.h"
#include "csrc/capsule/sizes.h"
#include "csrc/comm/all_gather_values.h"
#include "csrc/comm/capsules/capsule_check.h"
#include "csrc/comm/communicator.h"
#include "csrc/comm/group/group.h"

namespace pccl::comm {
namespace {

using capsule::CapsuleFile;
using capsule::VerifiedCapsule;
using schedule::Catalogue;
using schedule::SizeRange;

enum class LoadChange : std::uint8_t { kLoad, kUnload };

/// Vote of one rank for all others. It has no padding.
struct Vote {
    sys::Digest digest{};  // of the capsule, or of its name
    SizeRange sizes{};
    LoadChange change{};
    std::uint8_t is_able = 0;
    ShortText<190> reason{};  // why the rank is unable
};
static_assert(sizeof(Vote) == 240);

Vote vote_for(LoadChange change, const Status& able) {
    return {.change = change,
            .is_able = static_cast<std::uint8_t>(able.is_ok() ? 1 : 0),
            .reason = ShortText<190>(able.message())};
}

/// Returns ok if all ranks are able, and vote as `own` does. Returns one error on all ranks that
/// are able.
Status agree(const Vote& own, const std::vector<Vote>& votes) {
    const auto unable = ranks_where(votes, [](const Vote& vote) { return vote.is_able != 1; });
    if (!unable.empty()) {
        const Vote& first = votes[static_cast<std::size_t>(unable.front())];
        return Status::mismatch(unable.front(),
                                concat(listed(unable), " cannot: ", first.reason.text()));
    }
    const Vote& reference = votes.front();
    const auto others = ranks_where(votes, [&](const Vote& vote) {
        return vote.change != reference.change || vote.digest != reference.digest ||
               vote.sizes != reference.sizes;
    });
    if (others.empty()) return Status::ok();
    const bool is_other_capsule = std::ranges::any_of(
        votes, [&](const Vote& vote) { return vote.digest != reference.digest; });
    const auto text = [&](const Vote& vote) {
        return is_other_capsule ? sys::to_hex(vote.digest).substr(0, 16)
                                : concat("sizes ", capsule::to_text(vote.sizes));
    };
    const auto& other = votes[static_cast<std::size_t>(others.front())];
    return Status::mismatch(
        others.front(),
        concat(listed(others), " and rank 0 do not ", own.change == LoadChange::kLoad ? "" : "un",
               "load the same: ", text(other), " there, ", text(reference),
               " at rank 0; give all ranks the same capsule, sizes and order of calls"));
}

Result<VerifiedCapsule> capsule_for(const CapsuleFile& file, int ranks) {
    if (file.has(ranks)) return file.for_ranks(ranks);
    return Status::invalid_argument(concat("capsule ", file.description().name, " is for ",
                                           file.ranks_text(), " ranks, this group has ", ranks));
}

}  // namespace

Result<VerifiedCapsule> CommunicatorImpl::load(const Result<CapsuleFile>& file,
                                               const std::optional<std::string>& sizes,
                                               OptionalTimeout limit) {
    std::optional<SizeRange> range;
    auto catalogue = std::make_shared<Catalogue>(*this->catalogue());
    const auto try_own = [&]() -> Result<VerifiedCapsule> {
        PCCL_TRY(file.status());
        PCCL_TRY(capsule::check_trusted(*file));
        PCCL_ASSIGN_OR_RETURN(VerifiedCapsule capsule, capsule_for(*file, size()));
        if (sizes) {
            PCCL_ASSIGN_OR_RETURN(range, capsule::parse_sizes(*sizes));
        }
        if (capsule.switches_phases()) {
            PCCL_TRY(check_phases(capsule, options_, group_->phases()));
            PCCL_TRY(add_parts(capsule, *catalogue));
            return capsule;
        }
        PCCL_TRY(check_present_links(capsule, options_, group_->phases()));
        PCCL_TRY(catalogue->add(capsule.source(range)));
        return capsule;
    };
    Result<VerifiedCapsule> own = try_own();
    Vote vote = vote_for(LoadChange::kLoad, own.status());
    if (own.is_ok()) {
        vote.digest = file->digest();
        vote.sizes = range.value_or(file->description().sizes);
    }
    const auto votes = all_gather_values(
        size(), vote, [&](const Collective& collective) { return run(collective, limit); });
    PCCL_TRY(own.status());
    PCCL_TRY(votes.status());
    PCCL_TRY(agree(vote, *votes)
                 .with_context(
                     concat("group ", name(), " loads no capsule ", file->description().name)));
    group_->selector()->choose_from(std::move(catalogue));
    return own;
}

Status CommunicatorImpl::unload(const std::string& name, OptionalTimeout limit) {
    auto catalogue = std::make_shared<Catalogue>(*this->catalogue());
    const Status own = catalogue->remove(name);
    Vote vote = vote_for(LoadChange::kUnload, own);
    vote.digest = sys::sha256(name);
    const auto votes = all_gather_values(
        size(), vote, [&](const Collective& collective) { return run(collective, limit); });
    PCCL_TRY(own);
    PCCL_TRY(votes.status());
    PCCL_TRY(
        agree(vote, *votes).with_context(concat("group ", this->name(), " keeps capsule ", name)));
    group_->selector()->choose_from(std::move(catalogue));
    return Status::ok();
}

std::shared_ptr<const Catalogue> CommunicatorImpl::catalogue() const {
    return group_->selector()->catalogue();
}

std::vector<schedule::SourcePtr> CommunicatorImpl::loaded() const { return catalogue()->loaded(); }

}  // namespace pccl::comm
