// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/plugin.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/secret_file.h"
#include "csrc/sys/crypto/sha256.h"
#include "plugins/nccl/nccl_log.h"

namespace pccl::nccl {
namespace {

std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string described(const NetworkDevice& device) {
    std::string text;
    for (const sys::Interface& interface : device.interfaces)
        text += concat(text.empty() ? "" : ", ", interface.name, " ", interface.address.ip_text());
    return text;
}

}  // namespace

Plugin& Plugin::of_process() {
    // It is never destroyed: NCCL's threads may call it while the process exits.
    static auto& plugin = *new Plugin;
    return plugin;
}

Status Plugin::init() {
    const std::scoped_lock lock(mutex_);
    if (!device_) {
        const Config& config = process_config();
        PCCL_TRY(check_settings(config));
        PCCL_TRY(bootstrap::job_secret({}).status());
        PCCL_ASSIGN_OR_RETURN(auto interfaces, sys::list_interfaces());
        PCCL_ASSIGN_OR_RETURN(
            device_, make_network_device(std::move(interfaces), config.nccl_plugin.ifname));
        self_ = {.rank = config.nccl_plugin.rank, .host = host_name()};
        nccl_log().info("using ", described(*device_), ", one device of all",
                        config.secret_file.empty() ? "" : "; connections prove the job's secret");
    }
    ++users_;
    return Status::ok();
}

void Plugin::finalize() {
    const std::scoped_lock lock(mutex_);
    if (users_ > 0 && --users_ == 0) attempts_.clear();
}

Result<std::unique_ptr<ListenComm>> Plugin::listen(void* handle) {
    const std::scoped_lock lock(mutex_);
    std::shared_ptr<Acceptor> acceptor = acceptor_.lock();
    if (acceptor == nullptr) {
        PCCL_ASSIGN_OR_RETURN(acceptor, Acceptor::create(*device_, self_));
        acceptor_ = acceptor;
    }
    PCCL_ASSIGN_OR_RETURN(const Handle made, acceptor->listen());
    const HandleBytes bytes = made.encode();
    std::memcpy(handle, bytes.data(), bytes.size());
    return std::make_unique<ListenComm>(std::move(acceptor), made.id);
}

Result<Connector*> Plugin::attempt_of(void* handle) {
    const std::scoped_lock lock(mutex_);
    if (const std::uint64_t number = attempt_in(handle); number != 0) {
        const auto found = attempts_.find(number);
        if (found != attempts_.end()) return found->second.get();
        return Status::invalid_argument(
            "the handle belongs to a connection attempt that has ended");
    }
    const std::span<const std::byte, sizeof(HandleBytes)> bytes(static_cast<std::byte*>(handle),
                                                                sizeof(HandleBytes));
    PCCL_ASSIGN_OR_RETURN(const Handle decoded, Handle::decode(bytes));
    PCCL_ASSIGN_OR_RETURN(auto connector, Connector::start(decoded, *device_, self_));
    std::array<std::uint8_t, sizeof(std::uint64_t)> random{};
    PCCL_TRY(sys::fill_random(random));
    const auto number = std::bit_cast<std::uint64_t>(random) | 1;
    set_attempt(handle, number);
    return (attempts_[number] = std::move(connector)).get();
}

void Plugin::end_attempt(void* handle) {
    const std::scoped_lock lock(mutex_);
    attempts_.erase(attempt_in(handle));
}

Result<std::unique_ptr<SendComm>> Plugin::connect(void* handle) {
    PCCL_ASSIGN_OR_RETURN(Connector* const connector, attempt_of(handle));
    auto connected = connector->advance();
    if (!connected.is_ok() || *connected != nullptr) end_attempt(handle);
    return connected;
}

}  // namespace pccl::nccl
