// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include <pccl/store.h>
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/rendezvous/file_store.h"
#include "csrc/bootstrap/rendezvous/tcp_store.h"
#include "csrc/bootstrap/secret_file.h"

namespace pccl::bootstrap {
namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kFile = "file://";
constexpr std::size_t kLongestUrl = 4096;

Status malformed(const std::string& url, std::string_view why) {
    return Status::invalid_argument(concat("rendezvous \"", url.substr(0, 200), "\": ", why));
}

Result<StoreLocation> parse_location(const std::string& url) {
    constexpr std::string_view kExample = "write tcp://10.0.0.1:29500 or tcp://[fd00::1]:29500";
    const std::string_view rest = std::string_view(url).substr(kTcp.size());
    const std::size_t colon = rest.rfind(':');
    if (colon == std::string_view::npos) return malformed(url, concat("no port; ", kExample));
    std::string_view host = rest.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']'))
        host = host.substr(1, host.size() - 2);
    else if (host.find(':') != std::string_view::npos)
        return malformed(url, concat("an IPv6 address needs brackets; ", kExample));
    if (host.empty()) return malformed(url, concat("no host; ", kExample));

    const std::string_view port = rest.substr(colon + 1);
    std::uint16_t number = 0;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (error != std::errc{} || end != port.data() + port.size() || number == 0)
        return malformed(url, concat("the port is a number from 1 to 65535; ", kExample));
    return StoreLocation{std::string(host), number};
}

Result<std::shared_ptr<Store>> open_tcp(const std::string& url, Rank rank, Deadline deadline,
                                        StoreContent content) {
    PCCL_ASSIGN_OR_RETURN(const StoreLocation location, parse_location(url));
    PCCL_ASSIGN_OR_RETURN(const auto job, job_secret(kStoreGroup));
    const transport::Secret secret = job.value_or(kNoStoreSecret);
    PCCL_ASSIGN_OR_RETURN(auto store, rank == 0
                                          ? TcpStore::host(location, deadline, secret, content)
                                          : TcpStore::join(location, deadline, secret));
    return std::shared_ptr<Store>(std::move(store));
}

Result<std::shared_ptr<Store>> open_file(const std::string& url, Rank rank, Deadline deadline,
                                         StoreContent content) {
    const std::string path = url.substr(kFile.size());
    if (!path.starts_with('/'))
        return malformed(url, "write an absolute path, file:///path/to/a/new/file");
    PCCL_ASSIGN_OR_RETURN(auto store, FileStore::open(path, rank, deadline, content));
    return std::shared_ptr<Store>(std::move(store));
}

}  // namespace
}  // namespace pccl::bootstrap

namespace pccl {

Result<std::shared_ptr<Store>> open_store(const std::string& url, Rank rank, int size,
                                          Deadline deadline, StoreContent content) {
    if (rank < 0 || rank >= size)
        return Status::invalid_argument(concat("rank ", rank, " is not one of ", size));
    if (url.size() > bootstrap::kLongestUrl) return bootstrap::malformed(url, "it is too long");
    if (url.starts_with(bootstrap::kTcp)) return bootstrap::open_tcp(url, rank, deadline, content);
    if (url.starts_with(bootstrap::kFile))
        return bootstrap::open_file(url, rank, deadline, content);
    return bootstrap::malformed(url, "write tcp://host:port or file:///path");
}

}  // namespace pccl
