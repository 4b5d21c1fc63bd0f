// How the hosts of a mock slice, which are processes, run a program together: each writes the
// operands of its cores into a folder, waits for those of the others, and then runs all cores. (A
// TPU runs each core once; here every host does, and keeps what is its own.)
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/tpu/plugins/mock_programs.h"

namespace mock {

using Operands = std::vector<std::vector<std::byte>>;

class Exchange {
 public:
  Exchange(std::filesystem::path folder, int launch, int host)
      : folder_(std::move(folder)), launch_(launch), host_(host) {}

  void write(const std::vector<Operands>& cores) const {
    const std::filesystem::path path = file(host_), hidden = path.string() + ".part";
    {
      std::ofstream out(hidden, std::ios::binary);
      put(out, cores.size());
      for (const Operands& operands : cores) {
        put(out, operands.size());
        for (const std::vector<std::byte>& bytes : operands) {
          put(out, bytes.size());
          out.write(reinterpret_cast<const char*>(bytes.data()),
                    static_cast<std::streamsize>(bytes.size()));
        }
      }
    }
    std::filesystem::rename(hidden, path);
  }
  // Empty when the host has not come within half a minute.
  std::vector<Operands> read(int host) const {
    for (int i = 0; i < 3000 && !std::filesystem::exists(file(host)); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::ifstream in(file(host), std::ios::binary);
    std::vector<Operands> cores(get(in));
    for (Operands& operands : cores) {
      operands.resize(get(in));
      for (std::vector<std::byte>& bytes : operands) {
        bytes.resize(get(in));
        in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
      }
    }
    return cores;
  }

 private:
  std::filesystem::path file(int host) const {
    return folder_ / ("launch" + std::to_string(launch_) + ".host" + std::to_string(host));
  }
  static void put(std::ostream& out, size_t value) {
    out.write(reinterpret_cast<const char*>(&value), sizeof value);
  }
  static size_t get(std::istream& in) {
    size_t value = 0;
    in.read(reinterpret_cast<char*>(&value), sizeof value);
    return in ? value : 0;
  }

  std::filesystem::path folder_;
  int launch_, host_;
};

}  // namespace mock
