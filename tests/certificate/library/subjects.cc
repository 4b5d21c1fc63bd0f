#include "tests/certificate/library/subjects.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "gridless/base/check.h"
#include "gridless/base/mapped_file.h"
#include "gridless/ir/read_program.h"
#include "gridless/weights/safetensors.h"
#include "kernels/gallery.h"

namespace gridless::certificate {
namespace {

namespace fs = std::filesystem;

const fs::path& corpus_folder() {
  static const fs::path folder = fs::path(GRIDLESS_SOURCE_DIR) / "tests" / "data" / "corpus";
  return folder;
}

}  // namespace

Subject lesson(const std::string& name, const std::map<std::string, std::string>& keys) {
  const kernels::Lesson* found = kernels::find_lesson(name).value();
  const kernels::Options options = found->with(keys).value();
  Subject s{.name = found->name};
  for (const auto& [key, value] : keys) s.name += fmt::format(" {}={}", key, value);
  s.make = [found, options] { return std::move(found->build(options).value()); };
  const kernels::PerCore per_core = found->inputs(options, 7);
  s.cores = static_cast<int>(per_core.size());
  s.inputs.resize(per_core.at(0).size());
  for (const auto& core : per_core)
    for (size_t k = 0; k < core.size(); ++k) {
      const std::vector<std::byte> bytes = core[k].bytes();
      s.inputs[k].insert(s.inputs[k].end(), bytes.begin(), bytes.end());
    }
  return s;
}

Subject corpus(const std::string& name) {
  const fs::path folder = corpus_folder() / name;
  Subject s{.name = name};
  s.make = [folder] { return std::move(ir::read_program(folder / "module.mlirbc").value()); };
  const ir::Program program = s.make();
  s.cores = program.call.cores;
  const std::string data = read_text_file(folder / "data.safetensors").value();
  const auto tensors =
      weights::Safetensors::parse({reinterpret_cast<const uint8_t*>(data.data()), data.size()});
  for (size_t k = 0; k < program.call.operands.size(); ++k) {
    const auto* t = tensors->find(fmt::format("in{}", k));
    GRIDLESS_CHECK(t, "{} has no in{}", name, k);
    const auto* bytes = reinterpret_cast<const std::byte*>(t->stored.data());
    s.inputs.emplace_back(bytes, bytes + t->stored.size());
  }
  return s;
}

std::vector<Subject> all_subjects() {
  std::vector<Subject> out{
      lesson("01", {{"rows", "8"}}),
      lesson("02", {{"blocks", "3"}}),
      lesson("03", {{"tiles", "3"}}),
      lesson("04", {{"columns", "128"}}),
      lesson("05", {{"k", "256"}}),
      lesson("06", {{"picks", "3"}}),
      lesson("07", {{"tiles", "4"}}),
      lesson("08", {{"k", "128"}, {"chunks", "4"}}),
      lesson("09"),
      lesson("10"),
      lesson("11", {{"pages", "3"}, {"length", "200"}}),
      lesson("12", {{"k", "2"}, {"columns", "128"}}),
      lesson("13", {{"tiles", "6"}}),
      lesson("14", {{"cores", "2"}}),
      lesson("14", {{"cores", "3"}}),
      lesson("14", {{"cores", "4"}, {"hops", "2"}}),
      lesson("15", {{"cores", "2"}}),
      lesson("15", {{"cores", "4"}}),
      lesson("16", {{"k", "256"}}),
      lesson("17", {{"rows", "4"}}),
      lesson("18", {{"experts", "8"}}),
      lesson("19", {{"cores", "2"}, {"layers", "2"}, {"chunks", "4"}, {"tiles", "1"}}),
  };
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(corpus_folder())) {
    const fs::path meta = entry.path() / "meta.json";
    if (fs::exists(meta) &&
        nlohmann::json::parse(read_text_file(meta).value())["verdict"] == "clean")
      names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  for (const std::string& name : names) out.push_back(corpus(name));
  return out;
}

}  // namespace gridless::certificate
