// SPDX-License-Identifier: Apache-2.0
#include "tests/netplugin/meeting.h"

#include <unistd.h>

#include <fstream>
#include <thread>

namespace pccl::netplugin {

bool Limit::goes_on() const {
    std::this_thread::yield();
    return Clock::now() < end_;
}

bool SocketMeeting::send(const void* data, std::size_t bytes) {
    return ::write(socket_, data, bytes) == static_cast<ssize_t>(bytes);
}

bool SocketMeeting::receive(void* data, std::size_t bytes) {
    return ::read(socket_, data, bytes) == static_cast<ssize_t>(bytes);
}

bool FolderMeeting::send(const void* data, std::size_t bytes) {
    const auto path = folder_ / (own_ + std::to_string(sent_++));
    const auto draft = path.string() + ".new";
    std::ofstream(draft, std::ios::binary)
        .write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    std::filesystem::rename(draft, path);
    return true;
}

bool FolderMeeting::receive(void* data, std::size_t bytes) {
    const auto path = folder_ / (other_ + std::to_string(received_++));
    const Limit limit(timeout_s_);
    while (!std::filesystem::exists(path)) {
        if (!limit.goes_on()) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::ifstream file(path, std::ios::binary);
    file.read(static_cast<char*>(data), static_cast<std::streamsize>(bytes));
    return file.gcount() == static_cast<std::streamsize>(bytes);
}

}  // namespace pccl::netplugin
