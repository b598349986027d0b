// SPDX-License-Identifier: Apache-2.0
#include "tests/netplugin/side.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "csrc/base/text/text.h"

namespace pccl::netplugin {
namespace {

constexpr int kNoSize = -1;

std::byte pattern(unsigned seed, std::size_t at) {
    return static_cast<std::byte>((at * 131 + (at >> 8U) * 17 + seed * 101) & 0xFFU);
}

const char* log_prefix = "";

/// Prints the lines that NET_HARNESS_LOG permits: "warn", or "info" for all.
// NOLINTNEXTLINE(cert-dcl50-cpp): the ABI has a C function here
void write_log(abi::net_plugin::LogLevel level, unsigned long /*flags*/, const char* /*file*/,
               int /*line*/, const char* format, ...) {
    const char* const wanted = std::getenv("NET_HARNESS_LOG");
    const bool is_all = wanted != nullptr && std::string_view(wanted) == "info";
    const auto most = is_all ? abi::net_plugin::LogLevel::kInfo : abi::net_plugin::LogLevel::kWarn;
    if (wanted == nullptr || level > most) return;
    std::array<char, 2048> text{};
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text.data(), text.size(), format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "%s: log: %s\n", log_prefix, text.data());
}

}  // namespace

PageMemory::PageMemory(std::size_t bytes)
    : data_(static_cast<std::byte*>(
          ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
      bytes_(bytes) {
    if (static_cast<void*>(data_) == MAP_FAILED) std::abort();
}

PageMemory::~PageMemory() { ::munmap(data_, bytes_); }

void PageMemory::fill(unsigned seed, std::size_t bytes) const {
    for (std::size_t i = 0; i < bytes; ++i) data_[i] = pattern(seed, i);
}

std::size_t PageMemory::first_wrong(unsigned seed, std::size_t bytes) const {
    std::size_t i = 0;
    while (i < bytes && data_[i] == pattern(seed, i)) ++i;
    return i;
}

Side::Side(const SideOptions& options, int role, std::unique_ptr<Meeting> meeting)
    : role_(role), timeout_s_(options.timeout_s), meeting_(std::move(meeting)) {
    log_prefix = role_name();
    auto opened = sys::net_plugin::open_library(options.plugin, options.version);
    if (!opened.is_ok()) fail(opened.status().message());
    library_ = std::move(*opened);
    expect(table().init(&context_, &write_log), "init");
    int count = 0;
    expect(table().devices(&count), "devices");
    if (count < 1) fail(concat("devices returns ", count));
    for (int i = 0; i < count; ++i)
        expect(table().get_properties(i, &devices_.emplace_back()), "getProperties");
}

Side::~Side() { expect(table().finalize(context_), "finalize"); }

void Side::fail(const std::string& text) const {
    std::printf("FAIL %s: %s: %s\n", case_.c_str(), role_name(), text.c_str());
    std::fflush(stdout);
    ::_exit(1);
}

void Side::expect(Code code, const char* call) const {
    if (code != Code::kSuccess) fail(concat(call, " returns ", static_cast<int>(code)));
}

void Side::note(const std::string& text) const {
    std::printf("%s: %s\n", case_.c_str(), text.c_str());
    std::fflush(stdout);
}

void Side::send_word(const void* data, std::size_t bytes) const {
    if (!meeting_->send(data, bytes)) fail("the other process is gone");
}

void Side::receive_word(void* data, std::size_t bytes) const {
    if (!meeting_->receive(data, bytes)) fail("the other process is gone");
}

void Side::meet() const {
    char word = 'm';
    send_word(&word, 1);
    receive_word(&word, 1);
}

void* Side::listen(Handle& handle) const {
    void* listener = nullptr;
    expect(table().listen(context_, 0, handle.data(), &listener), "listen");
    if (listener == nullptr) fail("listen returns no communicator");
    send_word(handle.data(), handle.size());
    return listener;
}

void* Side::connect() const {
    Handle handle{};
    void* comm = nullptr;
    const Limit limit(timeout_s_);
    if (is_sender()) {
        receive_word(handle.data(), handle.size());
        do expect(table().connect(context_, 0, handle.data(), &comm), "connect");
        while (comm == nullptr && limit.goes_on());
        if (comm == nullptr) fail("connect returns no communicator in time");
        return comm;
    }
    void* const listener = listen(handle);
    do expect(table().accept(listener, &comm), "accept");
    while (comm == nullptr && limit.goes_on());
    if (comm == nullptr) fail("accept returns no communicator in time");
    expect(table().close_listen(listener), "closeListen");
    return comm;
}

Comms Side::connect_both() const {
    Handle own{};
    Handle other{};
    void* const listener = listen(own);
    receive_word(other.data(), other.size());
    Comms comms;
    const Limit limit(timeout_s_);
    while ((comms.send == nullptr || comms.recv == nullptr) && limit.goes_on()) {
        if (comms.send == nullptr)
            expect(table().connect(context_, 0, other.data(), &comms.send), "connect");
        if (comms.recv == nullptr) expect(table().accept(listener, &comms.recv), "accept");
    }
    if (comms.send == nullptr) fail("connect returns no communicator in time");
    if (comms.recv == nullptr) fail("accept returns no communicator in time");
    expect(table().close_listen(listener), "closeListen");
    return comms;
}

void* Side::reg(void* comm, const PageMemory& memory) const {
    void* mhandle = nullptr;
    expect(
        table().reg_mr(comm, memory.data(), memory.size(), abi::net_plugin::kPointerHost, &mhandle),
        "regMr");
    return mhandle;
}

void Side::close(void* comm) const {
    if (is_sender())
        expect(table().close_send(comm), "closeSend");
    else
        expect(table().close_recv(comm), "closeRecv");
}

void Side::close_both(const Comms& comms) const {
    expect(table().close_send(comms.send), "closeSend");
    expect(table().close_recv(comms.recv), "closeRecv");
}

void* Side::try_isend(void* comm, std::span<std::byte> bytes, int tag, void* mhandle) const {
    void* request = nullptr;
    const Code code = table().isend(comm, bytes.data(), bytes.size(), tag, mhandle, &request);
    return code == Code::kSuccess ? request : nullptr;
}

void* Side::isend(void* comm, std::span<std::byte> bytes, int tag, void* mhandle) const {
    const Limit limit(timeout_s_);
    void* request = nullptr;
    do expect(table().isend(comm, bytes.data(), bytes.size(), tag, mhandle, &request), "isend");
    while (request == nullptr && limit.goes_on());
    if (request == nullptr) fail("isend takes no request in time");
    return request;
}

void* Side::irecv(void* comm, std::span<const GroupedRecv> recvs) const {
    const Limit limit(timeout_s_);
    void* request = nullptr;
    do expect(table().irecv(comm, recvs, &request), "irecv");
    while (request == nullptr && limit.goes_on());
    if (request == nullptr) fail("irecv takes no request in time");
    return request;
}

Code Side::test(void* request, Done& done) const {
    int flag = 0;
    const Code code = table().test(request, &flag, done.sizes.data());
    done.is_done = flag != 0;
    return code;
}

Done Side::wait(void* request, std::size_t receives) const {
    const Limit limit(timeout_s_);
    Done done{.sizes = std::vector<int>(receives, kNoSize)};
    do expect(test(request, done), "test");
    while (!done.is_done && limit.goes_on());
    if (!done.is_done) fail("a request is not done in time");
    return done;
}

}  // namespace pccl::netplugin
