#include "gridless/tpu/runtime/session.h"

#include <algorithm>
#include <string>

#include "gridless/base/check.h"

namespace gridless::tpu {

Buffer* DeviceMemory::find(const Key& key) {
  const auto it = buffers_.find(key);
  return it == buffers_.end() || it->second.empty() ? nullptr : &it->second;
}

Buffer* DeviceMemory::insert(const Key& key, Buffer buffer) {
  return &(buffers_[key] = std::move(buffer));
}

Session::Session(const Client& client, DeviceMemory& memory, Executable executable,
                 std::vector<Role> roles, std::vector<HostMemory> host)
    : client_(&client),
      memory_(&memory),
      executable_(std::move(executable)),
      roles_(std::move(roles)),
      host_(std::move(host)) {}

Result<Session> Session::create(const Client& client, DeviceMemory& memory, Executable executable,
                                std::vector<Role> roles, std::vector<HostMemory> host,
                                const Progress& progress) {
  const CallSpec& spec = executable.spec();
  GRIDLESS_CHECK(roles.size() == spec.operands.size(), "{} roles for {} operands", roles.size(),
                 spec.operands.size());
  for (const Alias& alias : spec.aliases) {
    GRIDLESS_CHECK(roles[static_cast<size_t>(alias.operand)] == Role::kState,
                   "operand {} is updated in place and not state", alias.operand);
  }
  GRIDLESS_CHECK(
      static_cast<size_t>(std::ranges::count(roles, Role::kState)) == spec.aliases.size(),
      "state that no result takes over");
  Session session(client, memory, std::move(executable), std::move(roles), std::move(host));
  TRY_VOID(session.upload_all(progress));
  return session;
}

std::string Session::operand_name(size_t local, size_t operand) const {
  return fmt::format("uploading operand {} of core {}", operand, executable_.local_cores()[local]);
}

bool Session::is_state(size_t result) const {
  return std::ranges::any_of(executable_.spec().aliases, [&](const Alias& alias) {
    return static_cast<size_t>(alias.result) == result;
  });
}

DeviceMemory::Key Session::key(size_t local, size_t operand) const {
  const int core = executable_.local_cores()[local];
  return {core, host_[static_cast<size_t>(core)].operands[operand].data()};
}

Result<Upload> Session::upload(size_t local, size_t operand) const {
  const int core = executable_.local_cores()[local];
  const OperandSpec& spec = executable_.spec().operands[operand];
  const std::span<const std::byte> data = host_[static_cast<size_t>(core)].operands[operand];
  TRY(const int64_t bytes, byte_size(spec));
  GRIDLESS_CHECK(static_cast<int64_t>(data.size()) == bytes, "operand {} has {} bytes, not {}",
                 operand, data.size(), bytes);
  return client_->upload(executable_.device_of(core), spec, data, operand_name(local, operand));
}

// One operand of all cores at a time: the hosts' links to their chips then work together, and the
// plugin never has more than that to stage.
Result<void> Session::upload_all(const Progress& progress) {
  const size_t cores = executable_.local_cores().size();
  int64_t total = 0, done = 0;
  std::vector<std::pair<size_t, size_t>> missing;  // operand, local core
  for (size_t k = 0; k < roles_.size(); ++k) {
    for (size_t c = 0; c < cores; ++c) {
      if (roles_[k] == Role::kTable || memory_->find(key(c, k)) != nullptr) continue;
      missing.emplace_back(k, c);
      total += byte_size(executable_.spec().operands[k]).value_or(0);
    }
  }
  for (size_t i = 0; i < missing.size();) {
    const size_t k = missing[i].first;
    std::vector<std::pair<size_t, Upload>> batch;
    for (; i < missing.size() && missing[i].first == k; ++i) {
      TRY(Upload started, upload(missing[i].second, k));
      batch.emplace_back(missing[i].second, std::move(started));
    }
    for (auto& [c, started] : batch) {
      TRY(Buffer buffer, started.finish(operand_name(c, k)));
      memory_->insert(key(c, k), std::move(buffer));
      done += byte_size(executable_.spec().operands[k]).value_or(0);
      if (progress) progress(done, total);
    }
  }
  return {};
}

Result<void> Session::upload_tables() {
  std::vector<std::pair<std::pair<size_t, size_t>, Upload>> started;
  for (size_t c = 0; c < executable_.local_cores().size(); ++c) {
    for (size_t k = 0; k < roles_.size(); ++k) {
      if (roles_[k] != Role::kTable) continue;
      TRY(Upload table, upload(c, k));
      started.emplace_back(std::pair{c, k}, std::move(table));
    }
  }
  for (auto& [at, table] : started) {
    TRY(tables_[key(at.first, at.second)], table.finish(operand_name(at.first, at.second)));
  }
  return {};
}

Result<void> Session::start() {
  const CallSpec& spec = executable_.spec();
  const size_t cores = executable_.local_cores().size();
  TRY_VOID(upload_tables());
  std::vector<std::vector<Buffer*>> operands(cores);
  for (size_t c = 0; c < cores; ++c) {
    for (size_t k = 0; k < roles_.size(); ++k) {
      Buffer* buffer = roles_[k] == Role::kTable ? &tables_[key(c, k)] : memory_->find(key(c, k));
      if (buffer == nullptr) {
        return machine_error("the state of {} was lost with a launch that failed: load it again",
                             spec.kernel_name);
      }
      operands[c].push_back(buffer);
    }
  }
  TRY(Launch launch, executable_.launch(operands, ++launches_));
  for (size_t c = 0; c < cores; ++c) {
    for (const Alias& alias : spec.aliases) {
      memory_->insert(key(c, static_cast<size_t>(alias.operand)),
                      std::move(launch.results[c][static_cast<size_t>(alias.result)]));
    }
  }
  if (!running_.empty()) running_.back().results.clear();
  running_.push_back(std::move(launch));
  return {};
}

Result<void> Session::finish() {
  std::vector<Launch> running = std::exchange(running_, {});
  Result<void> first;
  const int earliest = launches_ - static_cast<int>(running.size()) + 1;
  for (size_t i = 0; i < running.size(); ++i) {
    Result<void> over = running[i].wait(fmt::format(
        "launch {} of {}", earliest + static_cast<int>(i), executable_.spec().kernel_name));
    if (!over && first) first = std::move(over);
  }
  if (!first) {
    // What the devices hold now is anybody's guess.
    for (size_t c = 0; c < executable_.local_cores().size(); ++c)
      for (const Alias& alias : executable_.spec().aliases)
        memory_->insert(key(c, static_cast<size_t>(alias.operand)), Buffer());
    return first;
  }
  if (running.empty()) return {};
  for (size_t c = 0; c < executable_.local_cores().size(); ++c) {
    const int core = executable_.local_cores()[c];
    for (size_t r = 0; r < executable_.spec().results.size(); ++r) {
      if (is_state(r)) continue;
      TRY_VOID(
          running.back().results[c][r].read(host_[static_cast<size_t>(core)].results[r],
                                            fmt::format("reading result {} of core {}", r, core)));
    }
  }
  return {};
}

}  // namespace gridless::tpu
