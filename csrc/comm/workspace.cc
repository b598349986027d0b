// SPDX-License-Identifier: Apache-2.0

// Allocates workspaces on all ranks of a group together: either all ranks do, or none.
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/rendezvous/prefix_store.h"
#include "csrc/comm/all_gather_values.h"
#include "csrc/comm/communicator.h"
#include "csrc/transport/memory_descriptor.h"

namespace pccl::comm {
namespace {

constexpr std::size_t kLongestPart = 256;  // maximum size from transport::serialise()

/// Offer of one rank for all others.
struct Offer {
    std::uint64_t bytes = 0;
    std::uint16_t part_bytes = 0;
    std::uint16_t is_able = 0;
    std::array<char, kLongestPart> part{};  // a memory descriptor
    ShortText<kLongestWorkspaceName + 1> name;
    ShortText<195> reason;  // why the rank is unable
};
static_assert(sizeof(Offer) == 592);

Offer offer_of(const std::string& name, std::size_t bytes, const Status& here) {
    Offer offer;
    offer.bytes = bytes;
    offer.name = ShortText<kLongestWorkspaceName + 1>(name);
    offer.is_able = here.is_ok() ? 1 : 0;
    offer.reason = ShortText<195>(here.message());
    return offer;
}

Offer offer_of(const std::string& name, std::size_t bytes,
               const Result<abi::MemoryDescriptor>& mine) {
    Offer offer = offer_of(name, bytes, mine.status());
    if (!mine.is_ok()) return offer;
    const std::string part = transport::serialise(*mine);
    offer.part_bytes = static_cast<std::uint16_t>(part.size());
    std::memcpy(offer.part.data(), part.data(), std::min(part.size(), kLongestPart));
    return offer;
}

std::string described(const Offer& offer) {
    return concat(offer.bytes, " bytes named \"", offer.name.text(), "\"");
}

/// Returns ok if all ranks are able, and allocate equally. Returns one error on all ranks that are
/// able.
Status agree_on_workspace(const std::vector<Offer>& offers) {
    const auto unable = ranks_where(offers, [](const Offer& offer) { return offer.is_able != 1; });
    if (!unable.empty())
        return Status::mismatch(
            unable.front(), concat(listed(unable), " cannot: ",
                                   offers[static_cast<std::size_t>(unable.front())].reason.text()));
    const Offer& reference = offers.front();
    const auto others = ranks_where(offers, [&](const Offer& offer) {
        return offer.bytes != reference.bytes || offer.name != reference.name;
    });
    if (others.empty()) return Status::ok();
    return Status::mismatch(
        others.front(),
        concat("the ranks do not allocate the same: ",
               described(offers[static_cast<std::size_t>(others.front())]), " at ", listed(others),
               ", ", described(reference), " at rank 0; give all the same name and size"));
}

Result<std::vector<abi::MemoryDescriptor>> parts_of(const std::vector<Offer>& offers) {
    std::vector<abi::MemoryDescriptor> parts;
    for (const Offer& offer : offers) {
        const std::size_t bytes = std::min<std::size_t>(offer.part_bytes, kLongestPart);
        auto part = transport::parse_memory_descriptor({offer.part.data(), bytes});
        if (!part.is_ok()) return part.status().with_context(concat("rank ", parts.size()));
        parts.push_back(*part);
    }
    return parts;
}

/// Returns the offers of all ranks, if they are equal and all ranks are able.
Result<std::vector<Offer>> agreed_offers(CommunicatorImpl& comm, const Offer& own,
                                         OptionalTimeout limit) {
    PCCL_ASSIGN_OR_RETURN(auto offers,
                          all_gather_values(comm.size(), own, [&](const Collective& collective) {
                              return comm.run(collective, limit);
                          }));
    PCCL_TRY(agree_on_workspace(offers).with_context(concat("group ", comm.name())));
    return offers;
}

}  // namespace

Result<std::shared_ptr<Store>> CommunicatorImpl::agree_on_allocation(const std::string& name,
                                                                     std::size_t bytes,
                                                                     const Status& here,
                                                                     OptionalTimeout limit) {
    const int number = ++agreed_spaces_;
    const Status able = here.is_ok() ? check_workspace_name(name) : here;
    const auto offers = agreed_offers(*this, offer_of(name, bytes, able), limit);
    PCCL_TRY(able);
    PCCL_TRY(offers.status());
    if (size() == 1) return std::shared_ptr<Store>();
    if (options_.store == nullptr)
        return Status::unavailable(concat("group ", this->name(), " has no rendezvous store"));
    return bootstrap::prefixed(options_.store, concat("space/", number));
}

Result<std::span<std::byte>> CommunicatorImpl::allocate_on_all_ranks(const std::string& name,
                                                                     std::size_t bytes,
                                                                     OptionalTimeout limit) {
    const auto mine = memory_.add_workspace(name, bytes);
    const auto offers = agreed_offers(*this, offer_of(name, bytes, mine), limit);
    PCCL_TRY(mine.status());
    const auto complete = [&]() -> Status {
        PCCL_TRY(offers.status());
        PCCL_ASSIGN_OR_RETURN(auto parts, parts_of(*offers));
        return memory_.complete_workspace(name, std::move(parts));
    };
    const Status completed = complete();
    if (completed.is_ok()) return memory_.map_remote(name, rank());
    static_cast<void>(memory_.release(name));
    return completed;
}

}  // namespace pccl::comm
