#include "gridless/tpu/runtime/session.h"

#include <algorithm>
#include <string>

#include "gridless/base/check.h"
#include "gridless/tpu/stablehlo.h"

namespace gridless::tpu {

Buffer* DeviceMemory::find(const Key& key) {
  const auto it = buffers_.find(key);
  return it == buffers_.end() || it->second.empty() ? nullptr : &it->second;
}

Buffer* DeviceMemory::insert(const Key& key, Buffer buffer) {
  return &(buffers_[key] = std::move(buffer));
}

Session::Session(Client& client, DeviceMemory& memory, Executable executable,
                 std::vector<Role> roles, std::vector<HostMemory> host)
    : client_(&client),
      memory_(&memory),
      executable_(std::move(executable)),
      roles_(std::move(roles)),
      host_(std::move(host)) {}

Result<Session> Session::create(Client& client, DeviceMemory& memory, Executable executable,
                                std::vector<Role> roles, std::vector<HostMemory> host,
                                const Source& source, const Progress& progress) {
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
  TRY_VOID(session.upload_all(source, progress));
  return session;
}

Step Session::upload_step(size_t local, size_t operand) const {
  return {Stage::kUpload,
          fmt::format("uploading operand {} of core {}", operand, local_core(local))};
}

DeviceMemory::Key Session::key(size_t local, size_t operand) const {
  return {local_core(local), operand};
}

Result<Upload> Session::upload(size_t local, size_t operand, std::span<const std::byte> data) {
  const OperandSpec& spec = executable_.spec().operands[operand];
  TRY(const int64_t bytes, byte_size(spec));
  GRIDLESS_CHECK(static_cast<int64_t>(data.size()) == bytes, "operand {} has {} bytes, not {}",
                 operand, data.size(), bytes);
  return client_->upload(executable_.device_of(local_core(local)), spec, data,
                         upload_step(local, operand));
}

Result<void> Session::upload_all(const Source& source, const Progress& progress) {
  int64_t total = 0, done = 0;
  std::vector<std::pair<size_t, size_t>> missing;  // operand, local core
  for (size_t k = 0; k < roles_.size(); ++k) {
    for (size_t c = 0; c < local_cores(); ++c) {
      if (roles_[k] == Role::kTable || memory_->find(key(c, k)) != nullptr) continue;
      missing.emplace_back(k, c);
      total += byte_size(executable_.spec().operands[k]).value_or(0);
    }
  }
  for (const auto& [k, c] : missing) {
    TRY(const std::span<const std::byte> data, source(local_core(c), k));
    TRY(Upload started, upload(c, k, data));
    TRY(Buffer buffer, started.finish(upload_step(c, k)));
    memory_->insert(key(c, k), std::move(buffer));
    done += static_cast<int64_t>(data.size());
    if (progress) progress(done, total);
  }
  return {};
}

Result<void> Session::upload_tables() {
  std::vector<std::pair<std::pair<size_t, size_t>, Upload>> started;
  for (size_t c = 0; c < local_cores(); ++c) {
    for (size_t k = 0; k < roles_.size(); ++k) {
      if (roles_[k] != Role::kTable) continue;
      TRY(Upload table, upload(c, k, host_[static_cast<size_t>(local_core(c))].operands[k]));
      started.emplace_back(std::pair{c, k}, std::move(table));
    }
  }
  for (auto& [at, table] : started) {
    TRY(tables_[key(at.first, at.second)], table.finish(upload_step(at.first, at.second)));
  }
  return {};
}

Result<void> Session::start() {
  TRY_VOID(wait_until(kMostInFlight - 1));
  results_.clear();
  TRY_VOID(upload_tables());
  return enqueue(false);
}

Result<void> Session::start_chain(size_t count, const std::function<Result<void>(size_t)>& prepare,
                                  const TableProgram& next) {
  Result<void> started = enqueue_chain(count, prepare, next);
  if (started) return started;
  // What failed here is the error to tell, whatever those before it come to.
  if (Result<void> over = wait_until(0); over) lose_state();
  return started;
}

Result<void> Session::enqueue_chain(size_t count,
                                    const std::function<Result<void>(size_t)>& prepare,
                                    const TableProgram& next) {
  for (size_t n = 0; n < count; ++n) {
    TRY_VOID(wait_until(kMostInFlight - 2));
    if (n == 0) results_.clear();
    TRY_VOID(prepare(n));
    TRY_VOID(upload_tables());
    if (n > 0) TRY_VOID(make_table(next));
    TRY_VOID(enqueue(n > 0));
  }
  return {};
}

Result<void> Session::make_table(const TableProgram& next) {
  TRY(Executable * program, compiled(next));
  const auto last = std::ranges::find_if(running_.rbegin(), running_.rend(), [](const Running& r) {
    return !r.launch.results.empty();
  });
  Results& found = last == running_.rend() ? results_.back() : last->launch.results;
  std::vector<std::vector<Buffer*>> operands(local_cores());
  for (size_t c = 0; c < local_cores(); ++c) {
    const size_t mine = local_of(*program, c);
    operands[c] = {&tables_[key(mine, next.table)]};
    for (const size_t result : next.results) operands[c].push_back(&found[mine][result]);
  }
  TRY(Launch launch, program->launch(operands, ++launches_));
  for (size_t c = 0; c < local_cores(); ++c)
    tables_[key(local_of(*program, c), next.table)] = std::move(launch.results[c][0]);
  launch.results.clear();
  running_.push_back(
      {std::move(launch), {Stage::kRun, fmt::format("launch {} of {}", launches_, next.name)}});
  return {};
}

Result<void> Session::enqueue(bool keep) {
  const CallSpec& spec = executable_.spec();
  std::vector<std::vector<Buffer*>> operands(local_cores());
  for (size_t c = 0; c < local_cores(); ++c) {
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
  for (size_t c = 0; c < local_cores(); ++c) {
    for (const Alias& alias : spec.aliases) {
      memory_->insert(key(c, static_cast<size_t>(alias.operand)),
                      std::move(launch.results[c][static_cast<size_t>(alias.result)]));
    }
  }
  if (!keep && !running_.empty()) running_.back().launch.results.clear();
  running_.push_back({std::move(launch),
                      {Stage::kRun, fmt::format("launch {} of {}", launches_, spec.kernel_name)}});
  return {};
}

Result<void> Session::wait_until(size_t in_flight) {
  Result<void> first;
  while (running_.size() > in_flight || (!first && !running_.empty())) {
    Running& oldest = running_.front();
    Result<void> over = oldest.launch.wait(oldest.step);
    if (!over && first) first = std::move(over);
    if (!oldest.launch.results.empty()) results_.push_back(std::move(oldest.launch.results));
    running_.erase(running_.begin());
  }
  if (!first) lose_state();
  return first;
}

// What the devices hold now is anybody's guess.
void Session::lose_state() {
  results_.clear();
  for (size_t c = 0; c < local_cores(); ++c)
    for (const Alias& alias : executable_.spec().aliases)
      memory_->insert(key(c, static_cast<size_t>(alias.operand)), Buffer());
}

Result<void> Session::finish() { return wait_until(0); }

Result<void> Session::read(size_t result) { return read(result, results_.size() - 1); }

Result<void> Session::read(size_t result, size_t n) {
  GRIDLESS_CHECK(n < results_.size() && running_.empty(), "no launch has been finished");
  if (local_cores() < host_.size()) return read_from_all(result, results_[n]);
  for (size_t c = 0; c < local_cores(); ++c) {
    const int core = local_core(c);
    TRY_VOID(results_[n][c][result].read(
        host_[static_cast<size_t>(core)].results[result],
        {Stage::kRun, fmt::format("reading result {} of core {}", result, core)}));
  }
  return {};
}

// The program is compiled by the plugin itself: it is plain StableHLO, and needs no kernel.
Result<Executable*> Session::gather_for(size_t result) {
  if (const auto it = gathers_.find(result); it != gathers_.end()) return &it->second;
  const CallSpec& whole = executable_.spec();
  const OperandSpec& shard = whole.results[result];
  OperandSpec all = shard;
  all.shape[0] *= whole.cores;
  TRY(Executable gather,
      Executable::compile(*client_, gather_text(shard, whole.cores),
                          {.kernel_name = "gather", .operands = {shard}, .results = {all}},
                          executable_.device_ids()));
  return &gathers_.emplace(result, std::move(gather)).first->second;
}

// As the gathering one, and it sees tables and results of this program alone.
Result<Executable*> Session::compiled(const TableProgram& next) {
  if (const auto it = table_programs_.find(next.name); it != table_programs_.end())
    return &it->second;
  const CallSpec& whole = executable_.spec();
  CallSpec spec = {.kernel_name = next.name,
                   .operands = {whole.operands[next.table]},
                   .results = {whole.operands[next.table]}};
  for (const size_t result : next.results) spec.operands.push_back(whole.results[result]);
  TRY(Executable program,
      Executable::compile(*client_, next.text, std::move(spec), executable_.device_ids()));
  return &table_programs_.emplace(next.name, std::move(program)).first->second;
}

size_t Session::local_of(const Executable& other, size_t n) const {
  const auto at = std::ranges::find(executable_.local_cores(), other.local_cores()[n]);
  return static_cast<size_t>(at - executable_.local_cores().begin());
}

Result<void> Session::read_from_all(size_t result, Results& of) {
  TRY(Executable * gather, gather_for(result));
  const Step step = {Stage::kRun, fmt::format("gathering result {} from all hosts", result)};
  std::vector<std::vector<Buffer*>> operands(local_cores());
  // The two programs may list this host's devices in different orders.
  for (size_t c = 0; c < local_cores(); ++c) operands[c] = {&of[local_of(*gather, c)][result]};
  TRY(Launch launch, gather->launch(operands, ++launches_));
  TRY_VOID(launch.wait(step));
  std::vector<std::byte> all;
  for (const HostMemory& core : host_) all.resize(all.size() + core.results[result].size());
  TRY_VOID(launch.results[0][0].read(all, step));
  auto from = all.begin();
  for (const HostMemory& core : host_) {
    std::copy_n(from, core.results[result].size(), core.results[result].begin());
    from += static_cast<std::ptrdiff_t>(core.results[result].size());
  }
  return {};
}

}  // namespace gridless::tpu
