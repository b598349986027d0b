// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/drivers/make_driver.h"

#include "csrc/base/text.h"
#include "csrc/cluster/drivers/dialects.h"
#include "csrc/cluster/drivers/fabric_driver.h"
#include "csrc/cluster/drivers/netconf_driver.h"
#include "csrc/netconf/ssh_stream.h"
#include "csrc/sys/socket/name_lookup.h"

namespace pccl::cluster {
namespace {

Result<std::unique_ptr<netconf::ByteStream>> open_stream(const Management& management) {
    return netconf::make_ssh_stream(sys::NameLookup(management.host, management.port),
                                    {.host = concat(management.host, ":", management.port),
                                     .user = management.user,
                                     .key_file = management.key_file,
                                     .host_key = management.host_key,
                                     .accepts_any_host_key = management.accepts_any_host_key});
}

}  // namespace

Result<std::unique_ptr<Driver>> make_driver(const SwitchDescription& of) {
    if (of.is_in_process) return make_fabric_driver();
    return make_netconf_driver(
        *find_dialect(of.dialect), [management = of.management] { return open_stream(management); },
        of.ports);
}

}  // namespace pccl::cluster
