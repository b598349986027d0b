// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/address_trial.h"

#include <algorithm>
#include <array>
#include <utility>

#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/transport/control/handshake.h"

namespace pccl::transport {
namespace {

/// Purpose of a query for a trial; other queries have none.
struct TrialPurpose {
    std::array<char, 8> value{'a', 'd', 'd', 'r', 'e', 's', 's', '?'};
    bool operator==(const TrialPurpose&) const = default;
};

}  // namespace

bool is_trial(const Introduction& introduction) {
    return introduction.service == Service::kQuery &&
           value_in<TrialPurpose>(introduction.purpose) == TrialPurpose();
}

AddressTrial::AddressTrial(const AddressTrialOptions& options, SocketWatcher* watcher)
    : options_(options), watcher_(watcher), begun_(options.clock->now()) {
    for (const sys::Address& address : options.addresses)
        candidates_.push_back({.address = address});
}

std::unique_ptr<AddressTrial> AddressTrial::start(const AddressTrialOptions& options,
                                                  SocketWatcher* watcher) {
    return std::unique_ptr<AddressTrial>(new AddressTrial(options, watcher));
}

void AddressTrial::start(Candidate& candidate) {
    const Introduction introduction{.request = options_.request,
                                    .service = Service::kQuery,
                                    .purpose = purpose_of(TrialPurpose())};
    auto client = HandshakeClient::start(
        {.address = candidate.address, .secret = options_.secret, .is_one_of_several = true},
        {&introduction, 1}, watcher_);
    candidate.failure = client.status();
    if (client.is_ok()) candidate.client = std::move(*client);
}

bool AddressTrial::advance(Candidate& candidate) {
    if (candidate.has_failed()) return false;
    if (candidate.client == nullptr) start(candidate);
    if (candidate.client == nullptr) return false;
    const auto accepted = candidate.client->advance();
    if (accepted.is_ok()) return *accepted;
    candidate.failure = accepted.status();
    candidate.client.reset();
    return false;
}

Result<std::optional<sys::Address>> AddressTrial::advance() {
    const Duration waited = options_.clock->now() - begun_;
    Duration start{};
    for (Candidate& candidate : candidates_) {
        if (waited < start) break;
        if (advance(candidate)) return {candidate.address};
        if (!candidate.has_failed()) start += kHeadStart;
    }
    if (may_be_found(waited)) return std::optional<sys::Address>();
    return cause();
}

/// Returns why the trial has failed. A shortage of this process is no evidence about the peer.
Status AddressTrial::cause() const {
    const auto lacks = [](const Candidate& candidate) {
        return candidate.failure.code() == StatusCode::kResourceExhausted;
    };
    const Rank peer = options_.request.destination;
    if (const auto own = std::ranges::find_if(candidates_, lacks); own != candidates_.end())
        return own->failure.with_message(
            concat("cannot look for ", peer_name(peer), ": ", own->failure.message()));
    return Status::peer_lost(
        peer, concat(peer_name(peer), " is at none of its addresses: ", describe(), kHowToChoose));
}

bool AddressTrial::may_be_found(Duration waited) const {
    // A stopped process still counts as present: its kernel accepts connections.
    const auto is_taken = [](const Candidate& candidate) {
        return candidate.client != nullptr && candidate.client->is_connected();
    };
    if (std::ranges::any_of(candidates_, is_taken)) return true;
    const auto failed = std::ranges::count_if(candidates_, &Candidate::has_failed);
    return failed == 0 || (waited < kSilence && std::cmp_less(failed, candidates_.size()));
}

void AddressTrial::await_news(Duration longest) const {
    // Each client waits by itself: in turns, and only briefly.
    constexpr Duration kTurn = std::chrono::milliseconds(1);
    const Deadline end = Deadline::after(longest);
    for (const Candidate& candidate : candidates_)
        if (candidate.client != nullptr)
            candidate.client->await_news(std::min(kTurn, end.remaining()));
}

std::string AddressTrial::describe() const {
    std::string text;
    for (const Candidate& candidate : candidates_)
        text += concat(text.empty() ? "" : "; ", candidate.address.to_string(),
                       outgoing_route(candidate.address), ": ",
                       candidate.has_failed() ? candidate.failure.message() : "no answer");
    return text;
}

Status AddressTrial::timeout_error() const {
    const Rank peer = options_.request.destination;
    return Status::timeout(
        concat(peer_name(peer), " did not answer in time: ", describe(), kHowToChoose), peer);
}

Result<sys::Address> find_address(const AddressTrialOptions& options, Deadline deadline) {
    const auto trial = AddressTrial::start(options, nullptr);
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(const auto found, trial->advance());
        if (found) return *found;
        if (deadline.passed()) return trial->timeout_error();
        trial->await_news(deadline.slice());
    }
}

}  // namespace pccl::transport
