#include "csrc/runtime/flight/flight_dump.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/log.h"
#include "csrc/base/text.h"
#include "csrc/runtime/flight/flight_recorder.h"
#include "csrc/runtime/flight/flight_text.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::runtime {
namespace {

using nlohmann::json;

std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

/// Null for a point that has not been passed.
json time_of(TimePoint point) {
    if (point == TimePoint{}) return nullptr;
    return point.time_since_epoch().count();
}

const char* state_of(const FlightEntry& entry) {
    if (entry.finished == TimePoint{}) return entry.started == TimePoint{} ? "queued" : "started";
    return entry.outcome == StatusCode::kOk ? "completed" : "failed";
}

/// Of a call on a GPU: nothing came of it, and it has no number among those of its group.
bool is_refused(const FlightEntry& entry) {
    return entry.outcome == StatusCode::kInvalidArgument ||
           entry.outcome == StatusCode::kUnsupported;
}

/// Of what was launched on a GPU: collectives run one after the other there.
const char* state_of(const FlightEntry& entry, const FlightProgress& progress) {
    if (is_refused(entry)) return "refused";
    const bool is_launched = entry.finished == TimePoint{} && entry.started != TimePoint{};
    if (!is_launched) return state_of(entry);
    if (progress.captured.contains(entry.ticket)) return "captured";
    const FlightTicket reached = progress.reached;
    if (entry.kind != FlightKind::kCollective || reached == 0) return "launched";
    if (entry.ticket == reached) return "started";
    return entry.ticket < reached ? "completed" : "queued";
}

/// What is known of the groups on GPUs, by group.
using ProgressOnGpus = std::map<std::uint32_t, FlightProgress>;

ProgressOnGpus progress_of(std::span<const FlightGroup> groups) {
    ProgressOnGpus known;
    for (const FlightGroup& group : groups) {
        if (!group.is_on_gpus) continue;
        const auto witness = group.witness.lock();
        known[group.id] = witness == nullptr ? FlightProgress{} : witness->progress();
    }
    return known;
}

json text_of(const FlightWait& wait) {
    return {{"ticket", wait.ticket},
            {"operation", wait.operation},
            {"peer", wait.peer},
            {"seconds", std::chrono::duration<double>(wait.waited).count()}};
}

json text_of(const FlightGroup& group, const ProgressOnGpus& on_gpus) {
    json text{{"id", group.id},
              {"name", group.name},
              {"rank", group.rank},
              {"size", group.size},
              {"global_ranks", group.global_ranks},
              {"device", group.is_on_gpus ? "cuda" : "cpu"}};
    if (!group.is_on_gpus) return text;
    text["waits"] = json::array();
    for (const FlightWait& wait : on_gpus.at(group.id).waits)
        text["waits"].push_back(text_of(wait));
    return text;
}

json text_of(const FlightEntry& entry, const ProgressOnGpus& on_gpus) {
    const auto launched = on_gpus.find(entry.group);
    const bool is_on_gpu = launched != on_gpus.end();
    json text{{"ticket", entry.ticket},
              {"group", entry.group},
              {"state", is_on_gpu ? state_of(entry, launched->second) : state_of(entry)},
              {"operation", is_on_gpu ? describe_launch(entry) : describe(entry)},
              {"issued_ns", time_of(entry.issued)},
              {"started_ns", time_of(entry.started)},
              {"finished_ns", time_of(entry.finished)}};
    if (entry.kind != FlightKind::kCollective)
        text["peer"] = entry.message.peer;
    else if (!is_on_gpu || !is_refused(entry))
        text["sequence"] = entry.collective.sequence;
    if (entry.outcome != StatusCode::kOk) text["error"] = to_string(entry.outcome);
    if (entry.blamed != kNoRank) text["blamed"] = entry.blamed;
    return text;
}

std::atomic<int> signalled_fd{-1};

void on_signal(int) {
    const int saved = errno;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(signalled_fd.load(), &one, sizeof one);
    errno = saved;
}

}  // namespace

std::string flight_record_json(const std::string& reason) {
    json record{{"version", 1},
                {"host", host_name()},
                {"pid", ::getpid()},
                {"wall_ms", wall_clock_ms()},
                {"steady_ns", system_clock().now().time_since_epoch().count()},
                {"reason", reason},
                {"groups", json::array()},
                {"entries", json::array()}};
    const auto groups = flight_recorder().groups();
    const ProgressOnGpus on_gpus = progress_of(groups);
    for (const FlightGroup& group : groups) record["groups"].push_back(text_of(group, on_gpus));
    for (const FlightEntry& entry : flight_recorder().entries())
        record["entries"].push_back(text_of(entry, on_gpus));
    return record.dump(-1, ' ', true, json::error_handler_t::replace);
}

void dump_flight_record(const std::string& reason) {
    const std::string& folder = process_config().flight_dir;
    if (folder.empty()) return;
    const std::string path = concat(folder, "/flight-", host_name(), "-", ::getpid(), ".json");
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
    action.sa_handler = SIG_IGN;  // one on its way must not end the process
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
