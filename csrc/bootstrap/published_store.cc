// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/published_store.h"

#include <algorithm>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/rendezvous/tcp_store.h"
#include "csrc/bootstrap/secret_file.h"
#include "csrc/sys/socket/interfaces.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::bootstrap {
namespace {

/// Returns the secret of PCCL_SECRET_FILE, or else the published one.
Result<transport::Secret> secret_of_store(std::string_view published) {
    transport::Secret secret{};
    if (published.size() != secret.size())
        return Status::invalid_argument(concat("the secret of a published store has ",
                                               published.size(), " bytes instead of ",
                                               secret.size()));
    std::ranges::copy(published, secret.begin());
    PCCL_ASSIGN_OR_RETURN(const auto job, job_secret(kStoreGroup));
    return job.value_or(secret);
}

/// Returns the addresses at which this process can listen now.
Result<std::vector<sys::Address>> listenable_addresses() {
    PCCL_ASSIGN_OR_RETURN(auto interfaces, sys::list_interfaces());
    sys::examine_interfaces(interfaces);
    PCCL_ASSIGN_OR_RETURN(const auto candidates,
                          sys::candidate_interfaces(interfaces, process_config().socket_ifname));
    std::vector<sys::Address> addresses;
    Status refusal;
    for (const sys::Interface& candidate : candidates) {
        const auto trial = sys::listen_on(candidate.address);
        if (trial.is_ok())
            addresses.push_back(candidate.address);
        else
            refusal = trial.status();
    }
    if (addresses.empty()) return refusal;
    return addresses;
}

}  // namespace

Result<std::unique_ptr<PublishedStore>> PublishedStore::serve(std::string_view secret) {
    PCCL_ASSIGN_OR_RETURN(const transport::Secret proven, secret_of_store(secret));
    PCCL_ASSIGN_OR_RETURN(const auto addresses, listenable_addresses());
    PCCL_ASSIGN_OR_RETURN(auto server, StoreServer::start(addresses, {.secret = proven}));
    return std::unique_ptr<PublishedStore>(new PublishedStore(std::move(server)));
}

PublishedStore::PublishedStore(std::unique_ptr<StoreServer> server) : server_(std::move(server)) {}

PublishedStore::~PublishedStore() = default;

std::vector<std::string> PublishedStore::addresses() const {
    std::vector<std::string> texts;
    for (const sys::Address& address : server_->addresses()) texts.push_back(address.to_string());
    return texts;
}

Result<std::shared_ptr<Store>> join_published_store(std::span<const std::string> addresses,
                                                    std::string_view secret, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const transport::Secret proven, secret_of_store(secret));
    std::vector<sys::Address> parsed;
    for (const std::string& text : addresses) {
        PCCL_ASSIGN_OR_RETURN(const sys::Address address, sys::Address::parse(text));
        parsed.push_back(address);
    }
    if (parsed.empty())
        return Status::invalid_argument("a published store needs at least one address");
    PCCL_ASSIGN_OR_RETURN(auto store, TcpStore::join_at_any(std::move(parsed), deadline, proven));
    return std::shared_ptr<Store>(std::move(store));
}

}  // namespace pccl::bootstrap
