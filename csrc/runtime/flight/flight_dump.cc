// SPDX-License-Identifier: Apache-2.0
#include "csrc/runtime/flight/flight_dump.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <nlohmann/json.hpp>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"
#include "csrc/runtime/flight/flight_json.h"
#include "csrc/runtime/flight/flight_recorder.h"
#include "csrc/runtime/flight/session_recorder.h"
#include "csrc/sys/host.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::runtime {
namespace {

std::atomic<int> signalled_fd{-1};

/// Returns an empty path where no record is to be written.
std::string record_path() {
    const std::string& folder = process_config().flight_dir;
    if (folder.empty()) return {};
    return concat(folder, "/flight-", sys::host_name(), "-", ::getpid(), ".json");
}

void on_signal(int) {
    const int saved = errno;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(signalled_fd.load(), &one, sizeof one);
    errno = saved;
}

}  // namespace

std::string flight_record_json(const std::string& reason) {
    nlohmann::json record = flight_head();
    record["reason"] = reason;
    record["groups"] = nlohmann::json::array();
    record["entries"] = nlohmann::json::array();
    const auto groups = flight_recorder().groups();
    const ProgressOnGpus on_gpus = progress_of(groups);
    for (const FlightGroup& group : groups) record["groups"].push_back(json_of(group, on_gpus));
    for (const FlightEntry& entry : flight_recorder().entries())
        record["entries"].push_back(json_of(entry, on_gpus));
    record["sessions"] = json_of(session_recorder());
    return record.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

Status check_flight_folder() {
    const std::string path = record_path();
    if (path.empty()) return Status::ok();
    return sys::check_writable(path).with_context("PCCL_FLIGHT_DIR");
}

void dump_flight_record(const std::string& reason) {
    const std::string path = record_path();
    if (path.empty()) return;
    const Status written = sys::write_file(path, flight_record_json(reason) + '\n');
    if (!written.is_ok())
        return log(LogLevel::kWarning, "no flight record is kept: ", written.message());
    log(LogLevel::kInfo, "wrote the flight record to ", path);
}

std::unique_ptr<FlightSignal> FlightSignal::install() {
    struct sigaction before {};
    if (process_config().flight_dir.empty() || ::sigaction(SIGUSR1, nullptr, &before) != 0 ||
        before.sa_handler != SIG_DFL)
        return nullptr;
    UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event.is_open()) return nullptr;
    signalled_fd.store(event.get());
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    if (::sigaction(SIGUSR1, &action, nullptr) != 0) return nullptr;
    return std::unique_ptr<FlightSignal>(new FlightSignal(std::move(event)));
}

FlightSignal::~FlightSignal() {
    struct sigaction action {};
    action.sa_handler = SIG_IGN;  // a pending signal must not end the process
    ::sigaction(SIGUSR1, &action, nullptr);
    action.sa_handler = SIG_DFL;
    ::sigaction(SIGUSR1, &action, nullptr);
    signalled_fd.store(-1);
}

void FlightSignal::serve() {
    std::uint64_t signals = 0;
    if (::read(event_.get(), &signals, sizeof signals) == sizeof signals)
        dump_flight_record("SIGUSR1");
}

}  // namespace pccl::runtime
