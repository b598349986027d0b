#include "csrc/transport/transport.h"

#include "csrc/base/text.h"
#include "csrc/transport/region.h"

namespace pccl::transport {

void Acceptor::accepted_region(const LinkRequest&, std::unique_ptr<Region>) {
    refused(to_string(TransportKind::kShm), Status::unsupported("regions are not taken here"));
}

std::string Acceptor::describe(const LinkRequest&) { return {}; }

void Acceptor::noticed(const LinkRequest&, const Status&) {}

void Acceptor::fell_short(const LinkRequest&, TransportKind kind, const Status& why) {
    refused(to_string(kind), why);
}

Status Transport::tell(const std::string&, const LinkRequest&, const Secret&, const Status&,
                       Deadline) {
    return Status::unsupported(concat("transport ", to_string(kind()), " takes no notices"));
}

Result<std::string> Transport::inquire(const std::string&, const LinkRequest&, const Secret&,
                                       Deadline) {
    return Status::unsupported(concat("transport ", to_string(kind()), " takes no inquiries"));
}

Status Transport::knock(const std::string&, Deadline) { return Status::ok(); }

Result<std::unique_ptr<Region>> Transport::share(const RegionRequest&, const Secret&, Deadline) {
    return Status::unsupported(concat("transport ", to_string(kind()), " shares no memory"));
}

}  // namespace pccl::transport
