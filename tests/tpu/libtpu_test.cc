// Everything that the real compiler for TPU v7 is asked: it must take what we send and we must
// understand what it answers. Skipped, with the reason, where libtpu is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "gridless/decode/next_rows.h"
#include "gridless/ir/jax_program.h"
#include "gridless/ir/read_program.h"
#include "gridless/ir/text.h"
#include "gridless/lang/kernel.h"
#include "gridless/models/llama/step.h"
#include "gridless/models/registry.h"
#include "gridless/tpu/body_signature.h"
#include "gridless/tpu/compile_kernel.h"
#include "gridless/tpu/pjrt_layouts.h"
#include "gridless/tpu/stablehlo.h"
#include "kernels/gallery.h"
#include "tests/tpu/copy_body.h"
#include "tests/tpu/corpus_call.h"

namespace gridless::tpu {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string read(const std::string& path) {
  std::ifstream file(std::string(GRIDLESS_TEST_DATA) + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class LibtpuTest : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "libtpu is not built for the sanitizers";
#endif
    const auto libtpu = find_libtpu("");
    if (!libtpu) GTEST_SKIP() << libtpu.error().message;
    compiler_.emplace(CompilerOptions{.libtpu = *libtpu});
  }

  // Compiles and expects success.
  Compiled compile(CallSpec spec, std::string body, std::string file = "body.mlir") {
    const auto slice = chips::smallest_slice(spec.cores);
    const auto call = compile_call(*compiler_, std::move(spec), std::move(body), file, *slice);
    if (!call) {
      ADD_FAILURE() << file << ": " << call.error().message;
    } else if (!call->result.compiled) {
      ADD_FAILURE() << file << ": " << to_string(call->result.diagnostics);
    } else {
      return *call->result.compiled;
    }
    return {};
  }

  // Compiles and expects one diagnostic.
  Diagnostic refuse(CallSpec spec, std::string body) {
    const auto slice = chips::smallest_slice(spec.cores);
    const auto call =
        compile_call(*compiler_, std::move(spec), std::move(body), "body.mlir", *slice);
    if (!call || call->result.diagnostics.size() != 1) {
      ADD_FAILURE() << (call ? "accepted" : call.error().message);
      return {};
    }
    return call->result.diagnostics[0];
  }

  std::optional<Compiler> compiler_;
};

TEST_F(LibtpuTest, TakesEveryKernelOfTheCorpusFromText) {
  for (const auto& entry : nlohmann::json::parse(read("/corpus/index.json"))) {
    const std::string folder = "/corpus/" + entry["name"].get<std::string>();
    const auto spec = parse_call_json(read(folder + "/call.json"));
    ASSERT_TRUE(spec) << folder;
    const Compiled compiled = compile(*spec, read(folder + "/module.mlir"), folder);
    EXPECT_GT(compiled.executable.size(), 1000u) << folder;
    EXPECT_GT(compiled.code_bytes, 0) << folder;
    EXPECT_EQ(compiled.memory.temporary, 0) << folder << ": an operand is copied";
  }
  EXPECT_EQ(compiler_->workers_started(), 1);
}

// What `compile` sends for kernels built here: the IR's own text, down-levelled to version 13.
TEST_F(LibtpuTest, TakesEveryKernelOfTheCorpusAsOurPrinterWritesIt) {
  for (const auto& entry : nlohmann::json::parse(read("/corpus/index.json"))) {
    const std::string folder = "/corpus/" + entry["name"].get<std::string>();
    const auto spec = parse_call_json(read(folder + "/call.json"));
    const auto module = ir::parse(read(folder + "/module.mlir"), folder);
    ASSERT_TRUE(module) << to_string(module.error());
    compile(*spec, ir::print(*module, {.version = 13, .locations = true}), folder);
  }
}

// What `compile` sends for a body in bytecode.
TEST_F(LibtpuTest, TakesEveryKernelOfTheCorpusFromBytecode) {
  for (const auto& entry : nlohmann::json::parse(read("/corpus/index.json"))) {
    const std::string name = entry["name"];
    auto program =
        ir::read_program(std::string(GRIDLESS_TEST_DATA "/corpus/") + name + "/module.mlirbc");
    ASSERT_TRUE(program) << to_string(program.error());
    const auto slice = chips::smallest_slice(program->call.cores);
    const auto call = compile_kernel(*compiler_, std::move(*program), *slice);
    ASSERT_TRUE(call) << name << ": " << call.error().message;
    EXPECT_TRUE(call->result.compiled) << name << to_string(call->result.diagnostics);
  }
}

// Left to itself libtpu lays some of these out in another order; the runtime asks for buffers as
// the program says.
TEST_F(LibtpuTest, SaysThatOperandsAreRowMajorAndHow) {
  const auto& config = models::find_model("smollm2")->facts;
  models::LlamaConfig m = models::llama_config(config);
  m.layers = 1;
  const auto sharding = models::shard_llama(m, 8);
  const models::StepShape shape = {.slots = 2, .pages = 8, .slot_pages = 4};
  auto program = models::llama_step(m, *sharding, shape, models::llama_stream(m, *sharding, shape));
  ASSERT_TRUE(program) << to_string(program.error());
  const auto call = compile_kernel(*compiler_, std::move(*program), {.shape = {2, 2, 1}});
  ASSERT_TRUE(call) << call.error().message;
  ASSERT_TRUE(call->result.compiled) << to_string(call->result.diagnostics);
  for (const OperandSpec& operand : call->spec.operands) {
    const auto layout = DeviceLayout::parse(operand.device_layout);
    ASSERT_TRUE(layout) << layout.error().message;
    std::vector<int64_t> row_major(operand.shape.size());
    for (size_t i = 0; i < row_major.size(); ++i)
      row_major[i] = static_cast<int64_t>(row_major.size() - 1 - i);
    EXPECT_EQ(layout->minor_to_major(), row_major) << operand.device_layout;
  }
}

// What a runtime on several hosts compiles on the spot.
TEST_F(LibtpuTest, TakesTheProgramThatGathersFromAllCores) {
  const chips::Slice slice = {.shape = {2, 2, 4}};
  for (const OperandSpec& shard :
       {OperandSpec{{1, 128}, "f32"}, {{8, 128}, "i32"}, {{32, 1, 128}, "f32"}}) {
    const auto result = compiler_->compile(CompileJob{
        .name = "gather", .stablehlo = gather_text(shard, 32), .slice = slice, .cores = 32});
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_TRUE(result->compiled) << to_string(result->diagnostics);
    const MemoryStats& memory = result->compiled->memory;
    EXPECT_GE(memory.results, 32 * byte_size(shard).value()) << "every core has all shards";
  }
}

// What a runtime that chains launches compiles on the spot.
TEST_F(LibtpuTest, TakesTheProgramThatMakesTheNextRows) {
  for (const auto& [cores, shape] : {std::pair{1, std::array{1, 1, 1}}, {32, {2, 2, 4}}}) {
    for (const int64_t rows : {1, 8}) {
      const auto result = compiler_->compile(CompileJob{
          .name = "next_rows",
          .stablehlo = decode::next_rows_text({.cores = cores, .rows = rows, .shard = 1000}),
          .slice = {.shape = shape},
          .cores = cores});
      ASSERT_TRUE(result) << result.error().message;
      ASSERT_TRUE(result->compiled) << to_string(result->diagnostics);
      for (const std::string& layout : result->compiled->operand_layouts)
        EXPECT_THAT(layout, StartsWith("{1,0")) << "as the step's own tables and results";
    }
  }
}

TEST_F(LibtpuTest, TakesEveryKernelOfTheGallery) {
  for (const kernels::Lesson& lesson : kernels::lessons()) {
    kernels::Built program = lesson.build(*lesson.with());
    ASSERT_TRUE(program) << to_string(program.error());
    const auto slice = chips::smallest_slice(program->call.cores);
    const auto call = compile_kernel(*compiler_, std::move(*program), *slice);
    ASSERT_TRUE(call) << lesson.name << ": " << call.error().message;
    EXPECT_TRUE(call->result.compiled) << lesson.name << to_string(call->result.diagnostics);
  }
}

// One decode step of each known model: the whole network in one kernel.
TEST_F(LibtpuTest, TakesTheLlamaStep) {
  const std::pair<const char*, int> cases[] = {{"smollm2", 1},  {"smollm2", 8},  {"smollm2", 32},
                                               {"llama_8b", 1}, {"llama_8b", 8}, {"llama_8b", 32}};
  for (const auto& [name, cores] : cases) {
    const models::LlamaConfig config = models::llama_config(models::find_model(name)->facts);
    const auto sharding = models::shard_llama(config, cores);
    ASSERT_TRUE(sharding) << sharding.error().message;
    const models::StepShape shape;
    auto program = models::llama_step(config, *sharding, shape,
                                      models::llama_stream(config, *sharding, shape));
    ASSERT_TRUE(program) << to_string(program.error());
    const auto call =
        compile_kernel(*compiler_, std::move(*program), *chips::smallest_slice(cores));
    ASSERT_TRUE(call) << name << ": " << call.error().message;
    ASSERT_TRUE(call->result.compiled) << name << to_string(call->result.diagnostics);
    // The KV cache (134 MB and more) is not copied; the logits of a core (64 KB) are.
    EXPECT_LT(call->result.compiled->memory.temporary, 1 << 20) << name << " on " << cores;
  }
}

// Blocks of rows begin at tiles, or are single rows: where the sums of a tile of rows do not fit
// the registers too (8 heads on one core).
TEST_F(LibtpuTest, TakesAnyNumberOfRows) {
  const std::pair<const char*, int> cases[] = {{"llama_8b", 1}, {"smollm2", 1}, {"llama_8b", 8}};
  for (const auto& [name, cores] : cases) {
    models::LlamaConfig config = models::llama_config(models::find_model(name)->facts);
    config.layers = 1;
    const auto sharding = models::shard_llama(config, cores);
    ASSERT_TRUE(sharding) << sharding.error().message;
    for (const int64_t rows : {2, 8, 16}) {
      const models::StepShape shape = {.rows = rows, .slots = 2, .pages = 32, .slot_pages = 16};
      auto program = models::llama_step(config, *sharding, shape,
                                        models::llama_stream(config, *sharding, shape));
      ASSERT_TRUE(program) << to_string(program.error());
      const auto call =
          compile_kernel(*compiler_, std::move(*program), *chips::smallest_slice(cores));
      ASSERT_TRUE(call) << name << ": " << call.error().message;
      EXPECT_TRUE(call->result.compiled)
          << name << ", " << rows << " rows" << to_string(call->result.diagnostics);
    }
  }
}

TEST_F(LibtpuTest, TakesTheProgramsThatJaxPrints) {
  int programs = 0;
  for (const auto& entry : nlohmann::json::parse(read("/corpus/index.json"))) {
    const std::string name = entry["name"];
    const std::string text = read("/corpus/" + name + "/jax.stablehlo.mlir");
    if (text.empty()) continue;
    ++programs;
    ASSERT_EQ(ir::program_cores(text).value(), entry["devices"]) << name;
    const auto call =
        compile_program(*compiler_, text, name, *chips::smallest_slice(*ir::program_cores(text)));
    ASSERT_TRUE(call) << call.error().message;
    EXPECT_TRUE(call->result.compiled) << to_string(call->result.diagnostics);
  }
  EXPECT_EQ(programs, 12);
}

// Bodies written by a generator that is neither JAX nor this program.
TEST_F(LibtpuTest, TakesHandWrittenBodiesAtVersion13) {
  const auto kernel = [&](const char* name, size_t results) {
    const std::string body = read(std::string("/tpu/") + name + ".mlir");
    CallSpec spec{.kernel_name = name};
    const std::vector<BodyArgument> arguments = body_arguments(body);
    ASSERT_GT(arguments.size(), results) << name;
    for (size_t i = 0; i < arguments.size(); ++i) {
      auto& list = i + results < arguments.size() ? spec.operands : spec.results;
      list.push_back({arguments[i].shape, arguments[i].dtype});
    }
    if (std::string_view(name) == "ring") {
      spec.cores = 32;
      spec.has_communication = true;
      spec.collective_id = 0;
    }
    compile(spec, body, name);
  };
  for (const char* name : {"add_one", "dma_matmul", "loops", "ring"}) kernel(name, 1);
}

TEST_F(LibtpuTest, SameInputSameBytes) {
  const std::string folder = "/corpus/b5_all_reduce_8dev";
  const auto spec = parse_call_json(read(folder + "/call.json"));
  const Compiled first = compile(*spec, read(folder + "/module.mlir"));
  const CompilerOptions options = compiler_->options();
  compiler_.emplace(options);  // another process
  const Compiled second = compile(*spec, read(folder + "/module.mlir"));
  EXPECT_TRUE(first.executable == second.executable);
}

// The numbering of devices is checked by the worker for every slice it is given.
TEST_F(LibtpuTest, KnowsEverySliceAndNumbersDevicesAsWeDo) {
  const CallSpec spec = copy_spec({{{8, 128}, "f32"}});
  const auto text = copy_body(spec);
  for (const char* name : {"tpu7x:1x1x1", "tpu7x:1x2x1", "tpu7x:2x2x1", "tpu7x:2x2x2",
                           "tpu7x:2x2x4", "tpu7x:2x4x4", "tpu7x:4x4x4", "tpu7x:4x4x8"}) {
    const auto slice = chips::parse_slice(name);
    const auto call = compile_call(*compiler_, spec, text, "copy.mlir", *slice);
    ASSERT_TRUE(call) << name << ": " << call.error().message;
    EXPECT_TRUE(call->result.compiled) << name << to_string(call->result.diagnostics);
  }
}

TEST_F(LibtpuTest, ASliceThatDoesNotExistIsExplained) {
  const auto call = compile_call(*compiler_, copy_spec({{{8, 128}, "f32"}}),
                                 copy_body(copy_spec({{{8, 128}, "f32"}})), "copy.mlir",
                                 *chips::parse_slice("tpu7x:3x1x1"));
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_THAT(to_string(call->result.diagnostics), HasSubstr("chips_per_host_bounds"));
}

TEST_F(LibtpuTest, OneCoreOfASliceAndAllCoresOfIt) {
  for (const int cores : {1, 2, 3, 8, 32}) {
    CallSpec spec = copy_spec({{{8, 128}, "f32"}}, cores);
    const Compiled compiled = compile(spec, copy_body(spec));
    EXPECT_EQ(compiled.memory.arguments, 4096) << cores;  // per core
  }
}

// libtpu would store narrow arrays transposed and copy them for the kernel, and a separate core
// axis would make it copy vectors; see stablehlo.h.
TEST_F(LibtpuTest, NoOperandIsCopiedWhateverItsShape) {
  for (const int cores : {1, 2}) {
    for (const OperandSpec& operand :
         {OperandSpec{{100000}, "f32"}, OperandSpec{{100, 50}, "bf16"},
          OperandSpec{{20000}, "bf16"}, OperandSpec{{3, 100, 50}, "f32"},
          OperandSpec{{1, 50}, "bf16"}, OperandSpec{{4, 1, 256}, "i32"}}) {
      const CallSpec spec = copy_spec({operand}, cores);
      EXPECT_EQ(compile(spec, copy_body(spec)).memory.temporary, 0)
          << fmt::format("{} {} on {} cores", fmt::join(operand.shape, "x"), operand.dtype, cores);
    }
  }
}

TEST_F(LibtpuTest, AliasedOperandsAreUpdatedInPlace) {
  for (const int cores : {1, 8}) {
    CallSpec spec = copy_spec({{{64, 128}, "f32"}, {{16, 128}, "i32"}}, cores);
    spec.aliases = {{.result = 1, .operand = 1}, {.result = 0, .operand = 0}};
    const Compiled compiled = compile(spec, copy_body(spec));
    EXPECT_EQ(compiled.memory.aliased, (64 + 16) * 128 * 4) << cores;
    EXPECT_EQ(compiled.memory.temporary, 0) << cores;
  }
}

TEST_F(LibtpuTest, TakesEveryWeightFormat) {
  for (const char* dtype :
       {"f32", "bf16", "f8E4M3FN", "f8E5M2", "f4E2M1FN", "i8", "i4", "i32", "i16"}) {
    const CallSpec spec = copy_spec({{{256, 512}, dtype}});
    const auto bits = byte_size(spec.operands[0]).value() * 8 / (256 * 512);
    EXPECT_EQ(compile(spec, copy_body(spec), dtype).memory.arguments, 256 * 512 * bits / 8)
        << dtype;
  }
}

TEST_F(LibtpuTest, TwoProcessesMayCompileAtOnce) {
  const CallSpec spec = copy_spec({{{8, 128}, "f32"}});
  compile(spec, copy_body(spec));  // this fixture's worker now holds libtpu
  Compiler second(compiler_->options());
  const auto call =
      compile_call(second, spec, copy_body(spec), "body.mlir", *chips::smallest_slice(1));
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_TRUE(call->result.compiled) << to_string(call->result.diagnostics);
}

TEST_F(LibtpuTest, TakesHundredsOfOperands) {
  const CallSpec spec = copy_spec(std::vector<OperandSpec>(150, {{8, 128}, "f32"}));
  EXPECT_EQ(compile(spec, copy_body(spec)).memory.arguments, 150 * 4096);
}

TEST_F(LibtpuTest, SixtyMegabytesOfVmemNeedALimitThatSaysSo) {
  CallSpec spec = copy_spec({{{15360, 1024}, "f32"}});  // 60 MiB
  const std::string body = copy_body(spec, /*through_vmem=*/true);
  const Diagnostic refused = refuse(spec, body);
  EXPECT_EQ(refused.kind, "capacity");
  EXPECT_THAT(refused.hint, HasSubstr("vmem_limit_bytes"));
  spec.vmem_limit_bytes = int64_t{61} << 20;
  compile(spec, body);
}

TEST_F(LibtpuTest, WhatItRefusesIsShownAtItsLine) {
  const CallSpec spec = copy_spec({{{8, 128}, "f32"}});
  std::string body = copy_body(spec);
  const std::string good = "tpu.sem_alloc\"";
  body.replace(body.find(good), good.size(), "tpu.sem_allocq\"");
  const Diagnostic unknown = refuse(spec, body);
  EXPECT_THAT(unknown.message, HasSubstr("tpu.sem_allocq"));
  EXPECT_EQ(unknown.where.file, "body.mlir");
  EXPECT_EQ(unknown.where.line, 5);

  body = copy_body(spec);
  const std::string first =
      "%s0 = \"stable_mosaic.tpu.sem_alloc\"() : () -> (memref<!tpu.dma_semaphore, "
      "#tpu.memory_space<semaphore_mem>>)";
  body.replace(body.find(first), first.size(),
               "%s0 = \"stable_mosaic.tpu.nothing\"() : () -> (memref<!tpu.dma_semaphore, "
               "#tpu.memory_space<semaphore_mem>>) loc(\"kernels/ring.cc\":42:7)");
  EXPECT_EQ(refuse(spec, body).where, SourceLoc("kernels/ring.cc", 42, 7));

  EXPECT_THAT(refuse(spec, "\"builtin.module\"( ").message, HasSubstr("expected"));
}

TEST_F(LibtpuTest, AnUnknownFlagIsNamed) {
  const CallSpec spec = copy_spec({{{8, 128}, "f32"}});
  const auto call = compile_call(*compiler_, spec, copy_body(spec), "copy.mlir", {});
  ASSERT_TRUE(call && call->result.compiled);
  const auto result = compiler_->compile(
      CompileJob{.name = "copy", .stablehlo = call->stablehlo, .flags = {{"xla_bogus", "1"}}});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(to_string(result->diagnostics), HasSubstr("xla_bogus"));
}

// A barrier semaphore without a collective id makes libtpu abort instead of refusing.
TEST_F(LibtpuTest, SurvivesAProgramThatAbortsTheCompiler) {
  const std::string folder = "/corpus/p31_exchange_2dev";
  auto spec = parse_call_json(read(folder + "/call.json"));
  const std::string body = read(folder + "/module.mlir");
  spec->collective_id.reset();
  const Diagnostic crash = refuse(*spec, body);
  EXPECT_EQ(crash.kind, "compiler_crash");
  EXPECT_THAT(crash.message, HasSubstr("SIGABRT"));
  EXPECT_THAT(crash.str(), HasSubstr("barrier sync flag"));
  spec->collective_id = 0;
  compile(*spec, body);
  EXPECT_EQ(compiler_->workers_started(), 2);
}

// 434 instruction bundles is what libtpu 0.0.50.1 reported for this kernel when JAX compiled it.
TEST_F(LibtpuTest, ReadsTheScheduleOfTheKernel) {
  CompilerOptions options = compiler_->options();
  options.schedule = true;
  compiler_.emplace(options);
  const std::string folder = "/corpus/b3_kda_recurrent_step";
  const auto spec = parse_call_json(read(folder + "/call.json"));
  for (int run = 0; run < 2; ++run) {  // the second finds no leftovers of the first
    const Compiled compiled = compile(*spec, read(folder + "/module.mlir"), folder);
    ASSERT_TRUE(compiled.schedule);
    EXPECT_GT(compiled.schedule->cycles, compiled.schedule->bundles);
    EXPECT_NEAR(compiled.schedule->bundles, 434, 44);  // another version may differ a little
    const bundles::Dump& dump = compiled.schedule->dump;
    EXPECT_EQ(dump.vmem.bytes, 2 * 128 * 128 * 4 + 2048);  // scratch and one window
    EXPECT_THAT(dump.schedule, HasSubstr("dma."));
    EXPECT_THAT(dump.code, HasSubstr("dma."));
    EXPECT_THAT(dump.critical_path, HasSubstr("Length to end"));
  }
}

// Core 4 of 2x2x1 is on the third chip of the snake, at (1, 1), which is libtpu's chip 3; a remote
// signal's address has the chip from bit 17 on. A constant, so that it stands in the code.
TEST_F(LibtpuTest, CoresOfTheProgramRunOnTheDevicesOfTheSnake) {
  CompilerOptions options = compiler_->options();
  options.schedule = true;
  compiler_.emplace(options);
  lang::Kernel k("signal", 8);
  const lang::Ref x = k.input("x", ir::Elem::kF32, {8, 128});
  const lang::Ref y = k.output("y", ir::Elem::kF32, {8, 128});
  k.scope([&] {
    k.copy(x, y, k.dma_sem()).wait();
    k.barrier_all();
    const lang::Sem ready = k.sem();
    k.signal(ready, 1, 4);
    k.if_(k.core() == 4, [&] { k.wait(ready, 8); });
  });
  auto program = k.finish();
  ASSERT_TRUE(program) << to_string(program.error());
  const auto call = compile_kernel(*compiler_, std::move(*program), *chips::smallest_slice(8));
  ASSERT_TRUE(call && call->result.compiled && call->result.compiled->schedule);
  const std::string& listing = call->result.compiled->schedule->dump.schedule;
  EXPECT_THAT(listing, HasSubstr(std::to_string(3 << 17)));
  EXPECT_THAT(listing, testing::Not(HasSubstr(std::to_string(2 << 17))));
}

// libtpu's simulation takes the matrix kernel and aborts on the other one.
TEST_F(LibtpuTest, AnEstimateIsGivenWhereLibtpuSurvivesIt) {
  CompilerOptions options = compiler_->options();
  options.schedule = options.estimate = true;
  const auto estimate = [&](const std::string& name, bool& warned) {
    compiler_.emplace(options);
    const kernels::Lesson& lesson = **kernels::find_lesson(name);
    auto program = lesson.build(*lesson.with());
    const auto call = compile_kernel(*compiler_, std::move(*program), {});
    EXPECT_TRUE(call && call->result.compiled && call->result.compiled->schedule);
    warned = !call->result.diagnostics.empty();
    EXPECT_FALSE(has_errors(call->result.diagnostics));
    return call->result.compiled->schedule->dump.estimated_cycles;
  };
  bool warned = false;
  // Above the static schedule, whose 1212 cycles have no copies in them.
  EXPECT_GT(estimate("05_matmul", warned).value_or(0), 1212);
  EXPECT_FALSE(warned);
  EXPECT_FALSE(estimate("07_double_buffer", warned));
  EXPECT_TRUE(warned);
}

TEST_F(LibtpuTest, OutputFilesAreCompleteAndFreeOfTimes) {
  CallSpec spec = copy_spec({{{8, 128}, "f32"}}, 2);
  spec.aliases = {{.result = 0, .operand = 0}};
  const auto call = compile_call(*compiler_, spec, copy_body(spec), "copy.mlir", {});
  ASSERT_TRUE(call && call->result.compiled);
  const auto files = output_files(*call, "1.2.3");
  ASSERT_EQ(files.size(), 5u);
  EXPECT_EQ(files.at("executable.bin"), call->result.compiled->executable);
  const auto manifest = nlohmann::json::parse(files.at("manifest.json"));
  EXPECT_EQ(manifest["slice"], "tpu7x:1x1x1");
  EXPECT_EQ(manifest["cores"], 2);
  EXPECT_EQ(manifest["operands"][0]["space"], "hbm");
  EXPECT_EQ(manifest["aliases"][0]["operand"], 0);
  EXPECT_EQ(manifest["executable"]["bytes"], files.at("executable.bin").size());
  EXPECT_EQ(manifest["versions"]["gridless"], "1.2.3");
  EXPECT_THAT(manifest["versions"]["libtpu_build"].get<std::string>(), HasSubstr("TPU7x"));
  EXPECT_EQ(files, output_files(*call, "1.2.3"));
}

}  // namespace
}  // namespace gridless::tpu
