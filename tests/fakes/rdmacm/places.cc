// SPDX-License-Identifier: Apache-2.0

#include "tests/fakes/rdmacm/places.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace pccl::fake_rdmacm {

namespace {

constexpr uint32_t kFirstNetwork = 77;

// Opened devices of this process; a child of fork() opens its own.
ibv_context* context_of(ibv_device* device) {
    static auto* guard = new std::mutex;
    static auto* opened = new std::map<std::pair<pid_t, ibv_device*>, ibv_context*>;
    const std::lock_guard hold(*guard);
    ibv_context*& context = (*opened)[{::getpid(), device}];
    if (context == nullptr) context = ::ibv_open_device(device);
    return context;
}

uint32_t own_host() {
    const char* given = std::getenv("FAKE_VERBS_HOST");
    return given != nullptr ? static_cast<uint32_t>(std::atoi(given)) : 0;
}

}  // namespace

Place place_of(const in_addr& address) {
    const uint32_t ip = ntohl(address.s_addr);
    int number = 0;
    ibv_device** const devices = ::ibv_get_device_list(&number);
    Place place;
    if (ip == INADDR_LOOPBACK) {
        for (int i = 0; i < number && place.context == nullptr; ++i) {
            if (devices[i]->transport_type == IBV_TRANSPORT_IWARP)
                place = {context_of(devices[i]), 1};
        }
    } else if (ip >> 24 == 10 && ((ip >> 16) & 0xff) == kFirstNetwork + own_host()) {
        const int index = static_cast<int>((ip >> 8) & 0xff);
        const int port = static_cast<int>(ip & 0xff);
        if (index < number && devices[index]->transport_type == IBV_TRANSPORT_IB) {
            ibv_context* const context = context_of(devices[index]);
            ibv_device_attr attributes{};
            ::ibv_query_device(context, &attributes);
            if (port >= 1 && port <= attributes.phys_port_cnt) place = {context, port};
        }
    }
    ::ibv_free_device_list(devices);
    return place;
}

bool is_iwarp(const Place& place) {
    return place.context->device->transport_type == IBV_TRANSPORT_IWARP;
}

int gid_index_of(const Place& place) { return is_iwarp(place) ? 0 : 3; }

ibv_gid gid_of(const Place& place) {
    ibv_gid gid{};
    ::ibv_query_gid(place.context, static_cast<uint8_t>(place.port), gid_index_of(place), &gid);
    return gid;
}

const std::string& fabric_name() {
    static auto* name = [] {
        const char* folder = std::getenv("FAKE_VERBS_FABRIC");
        return new std::string(folder != nullptr ? folder
                                                 : "private-" + std::to_string(::getpid()));
    }();
    return *name;
}

}  // namespace pccl::fake_rdmacm
