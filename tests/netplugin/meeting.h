// SPDX-License-Identifier: Apache-2.0

// The way from one of the two processes to the other, apart from the plug-in.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>

namespace pccl::netplugin {

/// Time at which a repeated call is a failure.
class Limit {
   public:
    explicit Limit(double seconds)
        : end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(seconds))) {}
    /// Lets others run; returns false once the time is over.
    [[nodiscard]] bool goes_on() const;

   private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point end_;
};

/// Messages arrive in their order. Both functions return false where the other process is gone.
class Meeting {
   public:
    virtual ~Meeting() = default;
    [[nodiscard]] virtual bool send(const void* data, std::size_t bytes) = 0;
    [[nodiscard]] virtual bool receive(void* data, std::size_t bytes) = 0;
};

/// Over a socket between two children of one process.
class SocketMeeting final : public Meeting {
   public:
    explicit SocketMeeting(int socket) : socket_(socket) {}
    bool send(const void* data, std::size_t bytes) override;
    bool receive(void* data, std::size_t bytes) override;

   private:
    int socket_;
};

/// Over files of a folder: the processes may be in two network namespaces. The messages of process
/// "a" are the files a0, a1 and so on.
class FolderMeeting final : public Meeting {
   public:
    FolderMeeting(std::filesystem::path folder, const std::string& own, const std::string& other,
                  double timeout_s)
        : folder_(std::move(folder)), own_(own), other_(other), timeout_s_(timeout_s) {}
    bool send(const void* data, std::size_t bytes) override;
    bool receive(void* data, std::size_t bytes) override;

   private:
    const std::filesystem::path folder_;
    const std::string own_;
    const std::string other_;
    const double timeout_s_;
    int sent_ = 0;
    int received_ = 0;
};

}  // namespace pccl::netplugin
