#include "csrc/transport/tcp/wire.h"

#include <string_view>

#include "csrc/base/text.h"

namespace pccl::transport::tcp {
namespace {

constexpr std::string_view kHost = "v1;host=";
constexpr std::string_view kAddress = ";addr=";
constexpr std::size_t kLongest = 1 * kKiB;

}  // namespace

Result<PublishedAddress> PublishedAddress::parse(const std::string& text) {
    const std::size_t split = text.find(kAddress);
    if (text.size() > kLongest || !text.starts_with(kHost) || split == std::string::npos)
        return Status::invalid_argument(
            "a peer published no TCP address that this version can read");
    PublishedAddress published{.host = text.substr(kHost.size(), split - kHost.size()),
                               .address = {}};
    PCCL_ASSIGN_OR_RETURN(
        published.address,
        sys::Address::parse(std::string_view(text).substr(split + kAddress.size())));
    if (!published.address.is_ip())
        return Status::invalid_argument(
            concat("a peer published ", published.address.to_string(), " as its TCP address"));
    return published;
}

std::string PublishedAddress::to_string() const {
    return concat(kHost, host, kAddress, address.to_string());
}

Result<SocketPurpose> SocketPurpose::decode(const Purpose& bytes) {
    const auto purpose = word_in<SocketPurpose>(bytes);
    if (purpose.data_sockets >= 1 && purpose.data_sockets <= kMostDataSockets &&
        purpose.index < purpose.sockets() && purpose.block_bytes >= kLeastBlock &&
        purpose.block_bytes <= kMostBlock) {
        return purpose;
    }
    return Status::invalid_argument("a proven peer describes a socket that cannot be");
}

Purpose SocketPurpose::encode() const { return purpose_of(*this); }

}  // namespace pccl::transport::tcp
