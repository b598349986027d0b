// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/server_handshake.h"

#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/transport/control/inquiry.h"

namespace pccl::transport {

using namespace handshake;  // NOLINT(google-build-using-namespace): the vocabulary of this file

ServerHandshake::ServerHandshake(UniqueFd fd, const OtherSecrets& secrets, TimePoint begun)
    : secrets_(secrets), fd_(std::move(fd)), begun_(begun) {}

Result<bool> ServerHandshake::advance(HandshakeHost& host) {
    if (!received_hello_) {
        PCCL_ASSIGN_OR_RETURN(received_hello_, hello_.receive_from(fd_.get()));
        if (!received_hello_) return false;
        PCCL_TRY(answer(host));
    }
    PCCL_ASSIGN_OR_RETURN(const bool whole, client_proof_.receive_from(fd_.get()));
    if (!whole) return false;
    PCCL_TRY(judge(host));
    return true;
}

void ServerHandshake::put_off() const {
    if (is_silent())
        static_cast<void>(send_whole(fd_.get(), kBusy));
    else
        static_cast<void>(send_whole(fd_.get(), ServerVerdict::kPutOff));
}

Introduction ServerHandshake::introduction() const {
    const WireRequest& wire = client_proof_.message().request;
    return {.request = {.group = hello_.message().group,
                        .source = wire.source,
                        .destination = wire.destination,
                        .channel = wire.channel,
                        .group_size = wire.group_size,
                        .generation = wire.generation},
            .service = static_cast<Service>(wire.service),
            .transport = wire.transport,
            .purpose = wire.purpose};
}

Status ServerHandshake::answer(HandshakeHost& host) {
    const ClientHello& hello = hello_.message();
    if (hello.magic != kMagic) return Status::invalid_argument("it does not use PCCL's protocol");
    if (hello.version != kVersion)
        return Status::invalid_argument(
            concat("it uses version ", hello.version, " of the protocol, not ", kVersion));
    const auto known = is_of_onlooker() ? secrets_.onlookers : host.secret_of(hello.group);
    is_known_ = known.has_value();
    secret_ = known.value_or(secrets_.of_nobody);
    transcript_.hello = hello;
    PCCL_TRY(sys::fill_random(transcript_.server_nonce));
    return send_whole(fd_.get(), ServerProof{kMagic, transcript_.server_nonce,
                                             prove(secret_, kServerLabel, transcript_)});
}

Status ServerHandshake::judge(HandshakeHost& host) {
    transcript_.request = client_proof_.message().request;
    const bool proven = sys::equal_in_constant_time(client_proof_.message().proof,
                                                    prove(secret_, kClientLabel, transcript_));
    const bool is_served = is_known_ && (is_of_onlooker() || host.serves(introduction().request));
    const bool is_service = transcript_.request.service < kServices &&
                            is_of_onlooker() == (introduction().service == Service::kStatus);
    if (proven && is_served && is_service) return send_whole(fd_.get(), ServerVerdict::kAccepted);
    static_cast<void>(send_whole(fd_.get(), ServerVerdict::kRefused));
    if (proven && is_served)
        return Status::invalid_argument(concat("it requests service ",
                                               int{transcript_.request.service},
                                               ", which does not exist here, or not for it"));
    return Status::invalid_argument(
        is_known_ && !proven ? "it does not prove the secret of the group"
                             : "it requests a group that this process is not in, or has left");
}

bool ServerHandshake::is_of_onlooker() const { return hello_.message().group == kOnlookers; }

}  // namespace pccl::transport
