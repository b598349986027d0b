// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/verbs/device.h"

#include <endian.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "csrc/base/config.h"
#include "csrc/base/log/log.h"
#include "csrc/base/scope_exit.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/sysfs/file.h"
#include "csrc/sys/verbs/connection_manager.h"

namespace pccl::sys::verbs {
namespace {

constexpr int kMostGids = 256;  // of a port: queue pairs take indices of 8 bits

bool exists(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0;
}

/// Devices with hardware have a parent in sysfs. Emulated ones (rxe, siw) have none.
bool is_soft_device(const std::string& name, const std::string& sysfs_path) {
    if (name.starts_with("rxe") || name.starts_with("siw")) return true;
    return exists(sysfs_path) && !exists(sysfs_path + "/device");
}

std::size_t mtu_bytes_of(ibv_mtu mtu) {
    return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? std::size_t{128} << mtu : 0;
}

/// Returns the speed of a port from the codes of the InfiniBand specification (PortInfo).
double gigabits_of(std::uint8_t width, std::uint8_t speed) {
    const int lanes = width == 1 ? 1 : width == 2 ? 4 : width == 4 ? 8 : width == 8 ? 12 : 2;
    switch (speed) {
        case 1:
            return lanes * 2.5;
        case 2:
            return lanes * 5.0;
        case 4:
        case 8:
            return lanes * 10.0;
        case 16:
            return lanes * 14.0;
        case 32:
            return lanes * 25.0;
        case 64:
            return lanes * 50.0;
        case 128:
            return lanes * 100.0;
        default:
            return 0;
    }
}

const char* name_of_state(ibv_port_state state) {
    switch (state) {
        case IBV_PORT_DOWN:
            return "DOWN";
        case IBV_PORT_INIT:
            return "INIT";
        case IBV_PORT_ARMED:
            return "ARMED";
        case IBV_PORT_ACTIVE:
            return "ACTIVE";
        case IBV_PORT_ACTIVE_DEFER:
            return "ACTIVE_DEFER";
        default:
            return "unknown";
    }
}

/// Reads a port by the function that this libibverbs has for it: older ones fill a shorter
/// structure.
int read_port(const Libibverbs& library, ibv_context* context, int number, ibv_port_attr& port) {
    std::memset(&port, 0, sizeof port);
    const auto index = static_cast<std::uint8_t>(number);
    const verbs_context* const extended = verbs_get_ctx_op(context, query_port);
    if (extended != nullptr) return extended->query_port(context, index, &port, sizeof port);
    return library.query_port(context, index, reinterpret_cast<_compat_ibv_port_attr*>(&port));
}

/// Returns the type that sysfs shows for a GID, where the library does not.
GidType type_in_sysfs(const std::string& device, int port, int index) {
    const auto text = read_file(
        concat("/sys/class/infiniband/", device, "/ports/", port, "/gid_attrs/types/", index), 64);
    return text.is_ok() && text->starts_with("RoCE v2") ? GidType::kRoceV2 : GidType::kRoceV1;
}

/// Returns the name of a device in the library's list, with the device.
ibv_device* device_named(const Libibverbs& library, std::span<ibv_device* const> devices,
                         const std::string& name) {
    const auto found = std::ranges::find_if(
        devices, [&](ibv_device* device) { return name == library.get_device_name(device); });
    return found == devices.end() ? nullptr : *found;
}

/// Checks that PCCL_RDMACM_LIBRARY, where it is set, can be used.
Status check_named_manager() {
    if (process_config().rdma.rdmacm_file.empty()) return Status::ok();
    Status found = find_connection_manager().status();
    if (found.code() != StatusCode::kUnavailable) return found;
    return Status::invalid_argument(concat("PCCL_RDMACM_LIBRARY: ", found.message()));
}

}  // namespace

Result<std::shared_ptr<Device>> Device::open(const std::string& name) {
    PCCL_ASSIGN_OR_RETURN(const Libibverbs* const library, libibverbs());
    int count = 0;
    ibv_device** const devices = library->get_device_list(&count);
    if (devices == nullptr) return Status::from_errno(errno, "cannot list RDMA devices");
    const ScopeExit release([&] { library->free_device_list(devices); });
    ibv_device* const device =
        device_named(*library, {devices, static_cast<std::size_t>(count)}, name);
    if (device == nullptr)
        return Status::unavailable(concat("this machine has no RDMA device ", name));
    PCCL_ASSIGN_OR_RETURN(auto context,
                          own(library->open_device(device), library->close_device,
                              concat("cannot open the RDMA device ", name,
                                     " (may this user open /dev/infiniband/uverbs*?)")));
    PCCL_TRY(prepare_fork(*library));
    std::shared_ptr<Device> opened(new Device(*library, std::move(context)));
    opened->info_.name = name;
    opened->info_.guid = be64toh(library->get_device_guid(device));
    opened->info_.is_iwarp = device->transport_type == IBV_TRANSPORT_IWARP;
    PCCL_TRY(opened->describe(device->ibdev_path));
    return opened;
}

Status Device::describe(const std::string& sysfs_path) {
    ibv_device_attr attributes{};
    if (const int failure = library_.query_device(context_.get(), &attributes); failure != 0)
        return Status::from_errno(failure, concat("cannot query the RDMA device ", info_.name));
    info_.is_soft = is_soft_device(info_.name, sysfs_path);
    info_.max_queue_pairs = attributes.max_qp;
    info_.max_registrations = attributes.max_mr;
    info_.max_completions = attributes.max_cqe;
    info_.max_work_requests = attributes.max_qp_wr;
    info_.max_reads = attributes.max_qp_rd_atom;
    info_.max_read_posts = attributes.max_qp_init_rd_atom;
    info_.max_pieces = attributes.max_sge;
    for (int number = 1; number <= attributes.phys_port_cnt; ++number) {
        PCCL_ASSIGN_OR_RETURN(PortInfo port, query_port(number));
        info_.ports.push_back(std::move(port));
    }
    const int flags = ::fcntl(context_->async_fd, F_GETFL);
    if (flags < 0 || ::fcntl(context_->async_fd, F_SETFL, flags | O_NONBLOCK) != 0)
        return Status::from_errno(errno, "cannot change the descriptor of device events");
    return Status::ok();
}

Result<PortInfo> Device::query_port(int number) const {
    auto attributes = zeroed<ibv_port_attr>();
    if (const int failure = read_port(library_, context_.get(), number, attributes); failure != 0)
        return Status::from_errno(failure,
                                  concat("cannot query port ", number, " of ", info_.name));
    PortInfo port{.number = number,
                  .is_active = attributes.state == IBV_PORT_ACTIVE,
                  .state = name_of_state(attributes.state),
                  .is_ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET,
                  .lid = attributes.lid,
                  .mtu_bytes = mtu_bytes_of(attributes.active_mtu),
                  .gigabits = gigabits_of(attributes.active_width, attributes.active_speed),
                  .gids = {}};
    port.gids = gids_of(number, std::min(attributes.gid_tbl_len, kMostGids));
    if (!port.is_ethernet)
        for (GidEntry& entry : port.gids) entry.type = GidType::kInfiniband;
    return port;
}

std::vector<GidEntry> Device::gids_of(int port, int count) const {
    std::vector<GidEntry> gids;
    for (int index = 0; index < count; ++index) {
        GidEntry entry{.index = index};
        if (read_gid(port, index, entry) && entry.gid != RawGid{}) gids.push_back(entry);
    }
    return gids;
}

bool Device::read_gid(int port, int index, GidEntry& entry) const {
    if (library_.query_gid_ex != nullptr) {
        ibv_gid_entry found{};
        const int failure =
            library_.query_gid_ex(context_.get(), static_cast<std::uint32_t>(port),
                                  static_cast<std::uint32_t>(index), &found, 0, sizeof found);
        if (failure == 0) {
            std::memcpy(entry.gid.data(), found.gid.raw, sizeof found.gid.raw);
            entry.type = found.gid_type == IBV_GID_TYPE_ROCE_V2   ? GidType::kRoceV2
                         : found.gid_type == IBV_GID_TYPE_ROCE_V1 ? GidType::kRoceV1
                                                                  : GidType::kInfiniband;
            return true;
        }
        if (failure == ENODATA) return false;  // an empty entry
    }
    ibv_gid gid{};
    if (library_.query_gid(context_.get(), static_cast<std::uint8_t>(port), index, &gid) != 0)
        return false;
    std::memcpy(entry.gid.data(), gid.raw, sizeof gid.raw);
    entry.type = type_in_sysfs(info_.name, port, index);
    return true;
}

std::vector<AsyncEvent> Device::take_events() {
    std::vector<AsyncEvent> events;
    ibv_async_event event{};
    while (library_.get_async_event(context_.get(), &event) == 0) {
        const bool is_of_port =
            event.event_type == IBV_EVENT_PORT_ACTIVE || event.event_type == IBV_EVENT_PORT_ERR ||
            event.event_type == IBV_EVENT_LID_CHANGE || event.event_type == IBV_EVENT_GID_CHANGE;
        events.push_back({.type = event.event_type,
                          .port = is_of_port ? event.element.port_num : 0,
                          .text = library_.event_type_str(event.event_type)});
        library_.ack_async_event(&event);
    }
    return events;
}

Result<std::vector<std::string>> list_device_names() {
    PCCL_TRY(check_named_manager());
    // Most machines have no device: their processes need not open the library.
    const bool is_named = !process_config().rdma.ibverbs_file.empty();
    if (!is_named && !exists("/sys/class/infiniband")) return std::vector<std::string>();
    PCCL_ASSIGN_OR_RETURN(const Libibverbs* const library, libibverbs());
    int count = 0;
    ibv_device** const devices = library->get_device_list(&count);
    // ENOSYS: the kernel has no RDMA.
    if (devices == nullptr && errno == ENOSYS) return std::vector<std::string>();
    if (devices == nullptr) return Status::from_errno(errno, "cannot list RDMA devices");
    std::vector<std::string> names;
    names.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) names.emplace_back(library->get_device_name(devices[i]));
    library->free_device_list(devices);
    return names;
}

Result<std::vector<DeviceInfo>> list_devices() {
    PCCL_ASSIGN_OR_RETURN(const std::vector<std::string> names, list_device_names());
    std::vector<DeviceInfo> found;
    for (const std::string& name : names) {
        const auto device = Device::open(name);
        if (device.is_ok())
            found.push_back((*device)->info());
        else
            log(LogLevel::kInfo, device.status().message());
    }
    return found;
}

}  // namespace pccl::sys::verbs
