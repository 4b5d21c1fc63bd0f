#include "gridless/decode/tpu_host.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "gridless/base/check.h"
#include "gridless/decode/next_rows.h"
#include "gridless/models/model.h"

namespace gridless::decode {
namespace {

size_t result_called(std::string_view name, const ir::Call& call) {
  const auto it = std::ranges::find(call.results, name, &ir::CallArg::name);
  GRIDLESS_CHECK(it != call.results.end(), "{} has no result '{}'", call.name, name);
  return static_cast<size_t>(it - call.results.begin());
}

class TpuStep : public StepEngine {
 public:
  TpuStep(tpu::Session session, const ir::Call& call, const NextRows& next)
      : session_(std::move(session)),
        candidate_logits_(result_called("candidate_logits", call)),
        candidate_ids_(result_called("candidate_ids", call)),
        logits_(result_called("logits", call)),
        next_{.name = "next_rows",
              .text = next_rows_text(next),
              .table =
                  static_cast<size_t>(std::ranges::find(call.operands, "rows", &ir::CallArg::name) -
                                      call.operands.begin()),
              .results = {candidate_logits_, candidate_ids_}} {}

  Result<void> run() override {
    fetched_ = false;
    TRY_VOID(session_.start());
    TRY_VOID(session_.finish());
    TRY_VOID(session_.read(candidate_logits_));
    return session_.read(candidate_ids_);
  }
  Result<void> run_ahead() override { return session_.start(); }
  bool can_chain() const override { return true; }
  Result<void> run_chain(int64_t count, const OfLaunch& prepare, const OfLaunch& seen) override {
    TRY_VOID(session_.start_chain(
        static_cast<size_t>(count), [&](size_t n) { return prepare(static_cast<int64_t>(n)); },
        next_));
    TRY_VOID(session_.finish());
    for (size_t n = 0; n < static_cast<size_t>(count); ++n) {
      TRY_VOID(session_.read(candidate_logits_, n));
      TRY_VOID(session_.read(candidate_ids_, n));
      TRY_VOID(seen(static_cast<int64_t>(n)));
    }
    return {};
  }
  Result<void> fetch_logits() override {
    if (fetched_) return {};
    TRY_VOID(session_.read(logits_));
    fetched_ = true;
    return {};
  }

 private:
  tpu::Session session_;
  size_t candidate_logits_, candidate_ids_, logits_;
  tpu::Session::TableProgram next_;
  bool fetched_ = false;
};

// As models/model.h says: the tables are the host's, operands that are also results are state.
std::vector<tpu::Role> roles_of(const ir::Call& call) {
  std::vector<tpu::Role> roles;
  for (const ir::CallArg& operand : call.operands) {
    roles.push_back(models::is_launch_table(operand.name) ? tpu::Role::kTable
                                                          : tpu::Role::kConstant);
  }
  for (const auto& [result, operand] : call.aliases)
    roles[static_cast<size_t>(operand)] = tpu::Role::kState;
  return roles;
}

}  // namespace

Result<std::unique_ptr<TpuHost>> TpuHost::start(const TpuOptions& options,
                                                const TpuPrograms& programs) {
  TRY(std::unique_ptr<tpu::Client> client, tpu::Client::create(options.libtpu, options.limit));
  TRY_VOID(client->check_slice(programs.any().slice));
  TRY_VOID(tpu::check_build(programs.any(), client->version()));
  TRY_VOID(client->check_transfers());
  return std::unique_ptr<TpuHost>(new TpuHost(std::move(client), programs));
}

Result<std::unique_ptr<StepEngine>> TpuHost::step(int64_t rows, int64_t vocabulary,
                                                  const ir::Call& call,
                                                  std::span<const emulate::CoreMemory> host,
                                                  const Source& source,
                                                  const std::function<void(double)>& progress) {
  const tpu::ProgramFolder& folder = programs_->of(rows);
  TRY(tpu::Executable executable,
      tpu::Executable::load(*client_, folder.executable, folder.spec, folder.device_ids));
  const std::vector<tpu::Role> roles = roles_of(call);
  std::vector<tpu::HostMemory> memory;
  for (const emulate::CoreMemory& core : host) memory.push_back({core.operands, core.results});
  TRY(tpu::Session session,
      tpu::Session::create(
          *client_, memory_, std::move(executable), roles, std::move(memory),
          [&](int core, size_t k) {
            return source(core, call.operands[k], roles[k] == tpu::Role::kState);
          },
          [&](int64_t done, int64_t total) {
            if (progress) progress(static_cast<double>(done) / static_cast<double>(total));
          }));
  const NextRows next = {.cores = call.cores, .rows = rows, .shard = vocabulary / call.cores};
  return std::make_unique<TpuStep>(std::move(session), call, next);
}

}  // namespace gridless::decode
