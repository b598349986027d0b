// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/net_plugin/plugin.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "csrc/base/log/log.h"
#include "csrc/base/text/printable.h"
#include "csrc/base/text/text.h"
#include "csrc/base/threads/background_thread.h"
#include "csrc/sys/net_plugin/trial.h"

namespace pccl::sys::net_plugin {
namespace {

constexpr int kMostDevices = 256;
constexpr std::size_t kLongestName = 64;
constexpr std::size_t kLeastBytes = 4096;  // of one isend
constexpr std::size_t kLongestLine = 400;
constexpr std::chrono::milliseconds kWatchInterval(200);
// Bytes behind a handle that a plug-in must not write.
constexpr std::size_t kGuardBytes = 128;
constexpr std::byte kGuard{0xA5};

LogLevel level_of(net::LogLevel level) {
    switch (level) {
        case net::LogLevel::kWarn:
        case net::LogLevel::kAbort:
            return LogLevel::kWarning;
        case net::LogLevel::kTrace:
            return LogLevel::kTrace;
        default:
            return LogLevel::kDebug;
    }
}

// The ABI has a C function here.  NOLINTNEXTLINE(cert-dcl50-cpp)
void write_log(net::LogLevel level, unsigned long /*flags*/, const char* /*file*/, int /*line*/,
               const char* format, ...) {
    const LogLevel ours = level_of(level);
    if (!log_enabled(ours) || format == nullptr) return;
    std::array<char, kLongestLine> text{};
    std::va_list arguments;
    va_start(arguments, format);
    static_cast<void>(std::vsnprintf(text.data(), text.size(), format, arguments));
    va_end(arguments);
    log(ours, "net plug-in: ", printable(text.data(), kLongestLine));
}

std::string code_text(Code code) {
    constexpr std::array<const char*, 9> kTexts{
        "success",        "unhandled CUDA error", "system error",
        "internal error", "invalid argument",     "invalid usage",
        "remote error",   "in progress",          "timeout"};
    const auto index = static_cast<std::size_t>(code);
    return concat(index < kTexts.size() ? kTexts.at(index) : "unknown result", " (",
                  static_cast<int>(code), ")");
}

std::string line_of(const Library& library, std::string_view what) {
    return concat("net plug-in ", library.file, ": ", library.symbol, ": ", what);
}

/// Returns why a device cannot be used.
Status check_device(const DeviceProperties& device) {
    if (device.type == net::DeviceType::kUnpack)
        return Status::unsupported("its receives need a kernel (UNPACK), which is not supported");
    if (device.type != net::DeviceType::kHost)
        return Status::unsupported(
            concat("its type is ", static_cast<int>(device.type), ", which is unknown"));
    if ((device.pointer_support & net::kPointerHost) == 0)
        return Status::unsupported("it does not move host memory");
    if (device.max_recvs < 1)
        return Status::unsupported(concat("it takes ", device.max_recvs, " receives at a time"));
    if (device.max_bytes < kLeastBytes)
        return Status::unsupported(concat("it moves ", device.max_bytes, " bytes at most"));
    return Status::ok();
}

/// Takes the first device, and others of its card, at most `most`; a guid of 0 is unknown.
std::vector<DeviceProperties> take_card(std::vector<DeviceProperties>& devices, std::size_t most) {
    std::vector<DeviceProperties> ports;
    const std::uint64_t guid = devices.front().guid;
    for (auto each = devices.begin(); each != devices.end();) {
        if (!ports.empty() && (guid == 0 || each->guid != guid || ports.size() == most)) {
            ++each;
            continue;
        }
        ports.push_back(std::move(*each));
        each = devices.erase(each);
    }
    return ports;
}

/// Plug-in that is being started, by a thread that may never end.
struct Start {
    explicit Start(std::string plugin) : name(std::move(plugin)) {}

    using AtStep = std::function<void(const char*)>;
    /// Opens the library, and finds its devices.
    Status run(const AtStep& at_step);
    /// Returns the properties of a device that can be used.
    [[nodiscard]] Result<DeviceProperties> examine(int device) const;
    /// Replaces the ports of a card, which have one guid, by a device that joins them, where the
    /// plug-in makes one.
    void join_ports(const AtStep& at_step);
    [[nodiscard]] Result<DeviceProperties> join(std::span<const DeviceProperties> ports) const;
    [[nodiscard]] Status failed(std::string_view call, std::string_view how) const {
        return Status::unavailable(line_of(library, concat(call, " ", how)));
    }

    const std::string name;
    Library library;
    void* context = nullptr;
    std::vector<DeviceProperties> devices;
};

Status Start::run(const AtStep& at_step) {
    at_step("dlopen");
    PCCL_ASSIGN_OR_RETURN(library, open_library(name));
    const Table& table = *library.table;
    at_step("init");
    if (const Code code = table.init(&context, &write_log); code != Code::kSuccess)
        return failed("init", concat("fails: ", code_text(code)));
    at_step("devices");
    int count = 0;
    if (const Code code = table.devices(&count); code != Code::kSuccess)
        return failed("devices", concat("fails: ", code_text(code)));
    if (count < 1) return failed("devices", concat("returns ", count, " devices"));
    at_step("getProperties");
    for (int i = 0; i < std::min(count, kMostDevices); ++i) {
        PCCL_ASSIGN_OR_RETURN(DeviceProperties device, examine(i));
        devices.push_back(std::move(device));
    }
    join_ports(at_step);
    return Status::ok();
}

Result<DeviceProperties> Start::examine(int device) const {
    DeviceProperties found;
    const Code code = library.table->get_properties(device, &found);
    if (code != Code::kSuccess)
        return failed("getProperties", concat("of device ", device, " fails: ", code_text(code)));
    const Status usable = check_device(found);
    if (usable.is_ok()) return found;
    return failed("getProperties",
                  concat("of device ", device, " (", printable(found.name, kLongestName),
                         ") cannot be used: ", usable.message()));
}

Result<DeviceProperties> Start::join(std::span<const DeviceProperties> ports) const {
    std::vector<int> numbers;
    for (const DeviceProperties& port : ports) numbers.push_back(port.number);
    int joined = -1;
    const Code code = library.table->join(numbers, &joined);
    if (code != Code::kSuccess) return failed("makeVDevice", concat("fails: ", code_text(code)));
    return examine(joined);
}

void Start::join_ports(const AtStep& at_step) {
    const std::size_t most = library.table->most_joined();
    if (most < 2) return;
    at_step("makeVDevice");
    std::vector<DeviceProperties> result;
    while (!devices.empty()) {
        const auto ports = take_card(devices, most);
        auto joined = ports.size() == 1 ? Result<DeviceProperties>(ports.front()) : join(ports);
        if (joined.is_ok()) {
            result.push_back(std::move(*joined));
            continue;
        }
        log(LogLevel::kWarning, joined.status().message(), "; its ports are used one by one");
        result.insert(result.end(), ports.begin(), ports.end());
    }
    devices = std::move(result);
}

/// Start on a thread of its own, with a deadline.
class TimedStart : public std::enable_shared_from_this<TimedStart> {
   public:
    explicit TimedStart(const std::string& name) : start_(name) {}

    Result<std::unique_ptr<Plugin>> run(Duration limit) {
        BackgroundThread thread("pccl-net-start", [self = shared_from_this()] { self->body(); });
        std::unique_lock lock(mutex_);
        if (!over_.wait_for(lock, limit, [this] { return result_.has_value(); })) {
            thread.release();
            return Status::unavailable(concat(
                "net plug-in ", start_.name, ": ", step_.load(), " has not returned for ",
                std::chrono::duration_cast<std::chrono::milliseconds>(limit).count(), " ms"));
        }
        PCCL_TRY(*result_);
        return std::make_unique<Plugin>(std::move(start_.library), start_.context,
                                        std::move(start_.devices), limit);
    }

   private:
    void body() {
        Status result = start_.run([this](const char* step) { step_.store(step); });
        const std::lock_guard lock(mutex_);
        result_ = std::move(result);
        over_.notify_one();
    }

    Start start_;
    std::atomic<const char*> step_{"dlopen"};
    std::mutex mutex_;
    std::condition_variable over_;
    std::optional<Status> result_;  // guarded by mutex_
};

Result<std::unique_ptr<Plugin>> start_anew(const std::string& name, Duration limit) {
    const Status survived = run_trial(
        [&name](TrialStep& step) {
            Start start(name);
            static_cast<void>(start.run([&step](const char* call) { step.at(call); }));
        },
        Deadline::after(limit));
    PCCL_TRY(survived.with_context(concat("net plug-in ", name)));
    return std::make_shared<TimedStart>(name)->run(limit);
}

}  // namespace

Plugin::Plugin(Library library, void* context, std::vector<DeviceProperties> devices,
               Duration limit)
    : library_(std::move(library)),
      context_(context),
      devices_(std::move(devices)),
      name_(printable(library_.table->name(), kLongestName)),
      limit_(limit),
      watchdog_(new Poller({.name = "pccl-net-watch", .interval = kWatchInterval})) {
    watchdog_->watch({.is_over =
                          [this] {
                              for (const std::string& call :
                                   calls_.overdue(system_clock().now(), limit_))
                                  log(LogLevel::kWarning, line(concat(call, " has not returned")));
                              return false;
                          },
                      .notify = [] {}});
}

std::string Plugin::line(std::string_view what) const { return line_of(library_, what); }

Status Plugin::check(const char* call, Code code) const {
    if (code == Code::kSuccess) return Status::ok();
    return Status::unavailable(line(concat(call, " fails: ", code_text(code))));
}

Status Plugin::stuck(const CallSlot& slot) const {
    return Status::unavailable(line(concat("a call for ", slot.subject(), " has not returned")));
}

Result<void*> Plugin::listen(CallSlot& slot, int device, Handle& handle) const {
    std::array<std::byte, sizeof(Handle) + kGuardBytes> guarded;
    guarded.fill(kGuard);
    std::ranges::fill(std::span(guarded).first(sizeof(Handle)), std::byte{});
    void* comm = nullptr;
    const CallMark mark(slot, "listen");
    PCCL_TRY(check("listen", library_.table->listen(context_, device, guarded.data(), &comm)));
    const auto guard = std::span(guarded).subspan(sizeof(Handle));
    if (std::ranges::any_of(guard, [](std::byte each) { return each != kGuard; }))
        return Status::unavailable(line("listen writes more than the 128 bytes of a handle"));
    if (comm == nullptr)
        return Status::unavailable(line("listen returns no communicator and no error"));
    std::memcpy(handle.data(), guarded.data(), sizeof(Handle));
    return comm;
}

Result<void*> Plugin::connect(CallSlot& slot, int device, Handle& handle) const {
    void* comm = nullptr;
    const CallMark mark(slot, "connect");
    PCCL_TRY(check("connect", library_.table->connect(context_, device, handle.data(), &comm)));
    return comm;
}

Result<void*> Plugin::accept(CallSlot& slot, void* listen_comm) const {
    void* comm = nullptr;
    const CallMark mark(slot, "accept");
    PCCL_TRY(check("accept", library_.table->accept(listen_comm, &comm)));
    return comm;
}

Result<void*> Plugin::reg_mr(CallSlot& slot, void* comm, std::span<std::byte> memory) const {
    void* mhandle = nullptr;
    const CallMark mark(slot, "regMr");
    PCCL_TRY(check("regMr", library_.table->reg_mr(comm, memory.data(), memory.size(),
                                                   net::kPointerHost, &mhandle)));
    return mhandle;
}

Status Plugin::dereg_mr(CallSlot& slot, void* comm, void* mhandle) const {
    const CallMark mark(slot, "deregMr");
    return check("deregMr", library_.table->dereg_mr(comm, mhandle));
}

Result<void*> Plugin::isend(CallSlot& slot, void* comm, std::span<std::byte> bytes, int tag,
                            void* mhandle) const {
    void* request = nullptr;
    const CallMark mark(slot, "isend");
    PCCL_TRY(check(
        "isend", library_.table->isend(comm, bytes.data(), bytes.size(), tag, mhandle, &request)));
    return request;
}

Result<void*> Plugin::irecv(CallSlot& slot, void* comm, std::span<const GroupedRecv> recvs) const {
    void* request = nullptr;
    const CallMark mark(slot, "irecv");
    PCCL_TRY(check("irecv", library_.table->irecv(comm, recvs, &request)));
    return request;
}

Result<bool> Plugin::test(CallSlot& slot, void* request, std::span<int> sizes) const {
    int done = 0;
    const CallMark mark(slot, "test");
    PCCL_TRY(check("test", library_.table->test(request, &done, sizes.data())));
    return done != 0;
}

Status Plugin::expect(CallSlot& slot, const Traffic& traffic) {
    {
        const std::lock_guard lock(traffic_mutex_);
        if (traffic.peers <= traffic_.peers) return Status::ok();
        traffic_ = traffic;
    }
    const CallMark mark(slot, "setNetAttr");
    return check("setNetAttr", library_.table->set_attributes(context_, traffic));
}

Status Plugin::close_send(CallSlot& slot, void* comm) const {
    const CallMark mark(slot, "closeSend");
    return check("closeSend", library_.table->close_send(comm));
}

Status Plugin::close_recv(CallSlot& slot, void* comm) const {
    const CallMark mark(slot, "closeRecv");
    return check("closeRecv", library_.table->close_recv(comm));
}

Status Plugin::close_listen(CallSlot& slot, void* comm) const {
    const CallMark mark(slot, "closeListen");
    return check("closeListen", library_.table->close_listen(comm));
}

Result<Plugin*> start_plugin(const std::string& name, Duration limit) {
    struct Started {
        Result<Plugin*> result;
        ForkMark made_in{};
    };
    static std::mutex mutex;
    // It is never destroyed: threads of plug-ins may run until the process ends.
    static auto* const started = new std::map<std::string, Started>;
    const std::lock_guard lock(mutex);
    const auto found = started->find(name);
    if (found != started->end() && found->second.made_in.is_child())
        return Status::unavailable(concat(
            "net plug-in ", name, " was started before fork(): start it in the child alone"));
    if (found != started->end()) return found->second.result;
    auto plugin = start_anew(name, limit);
    const Result<Plugin*> result =
        plugin.is_ok() ? Result<Plugin*>(plugin->release()) : Result<Plugin*>(plugin.status());
    started->emplace(name, Started{.result = result});
    return result;
}

}  // namespace pccl::sys::net_plugin
