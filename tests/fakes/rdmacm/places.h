// SPDX-License-Identifier: Apache-2.0

// Which device and port of the fake libibverbs has an IPv4 address: 10.(77 + host).DEVICE.PORT, as
// its GIDs show; 127.0.0.1 is that of port 1 of the first iWARP device, whose GIDs show none.
#pragma once

#include <infiniband/verbs.h>
#include <netinet/in.h>

#include <cstdint>
#include <string>

namespace pccl::fake_rdmacm {

struct Place {
    ibv_context* context = nullptr;  // stays open
    int port = 0;
};

/// The place of an address of this host; without a context where no device has it.
Place place_of(const in_addr& address);

/// The GID of a place that its peers address: RoCE v2 of IPv4, or the only one of iWARP.
int gid_index_of(const Place& place);
ibv_gid gid_of(const Place& place);
bool is_iwarp(const Place& place);

/// The name of the fabric, which abstract names of sockets contain.
const std::string& fabric_name();

}  // namespace pccl::fake_rdmacm
