// The time model against published measurements: error per figure, and means.
//   time_figures_bench [--params NAME] [--fit] [CSV]
// --fit searches the constants of copies and links on the figures marked `fit`, and prints them.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>

#include "bench/figure_programs.h"
#include "bench/muse_layer.h"
#include "bench/qwen_round.h"

namespace {

using namespace gridless;         // NOLINT
using namespace gridless::bench;  // NOLINT
using chips::TimeParameters;

struct Figure {
  std::string name, unit, use;
  double value = 0;
};

// figure,conditions,value,unit,source,use: the conditions and the source may be quoted.
std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      out.emplace_back();
    } else if (c != '\r') {
      out.back() += c;
    }
  }
  return out;
}

std::vector<Figure> read_figures(const std::string& path) {
  std::vector<Figure> out;
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    const std::vector<std::string> f = fields(line);
    if (f.size() == 6) out.push_back({f[0], f[3], f[5], std::strtod(f[2].c_str(), nullptr)});
  }
  return out;
}

using Predict = std::function<double(const TimeParameters&)>;  // in the figure's unit

double us(double ns) { return ns * 1e-3; }

std::map<std::string, Predict> micro_figures() {
  std::map<std::string, Predict> f;
  for (const int64_t mib : {2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 8192})
    f[fmt::format("hbm_copy_{}MiB", mib)] = [=](const TimeParameters& p) {
      return 2.0 * static_cast<double>(mib * kMi) / hbm_copy(p, mib * kMi);
    };
  for (const auto& [size, bytes] : {std::pair{"16MiB", 16 * kMi}, {"256KiB", 256 * kKi}}) {
    f[fmt::format("d2d_{}", size)] = [=](const TimeParameters& p) {
      return us(send(p, {1}, bytes));
    };
    f[fmt::format("ici_{}", size)] = [=](const TimeParameters& p) {
      return us(send(p, {2}, bytes));
    };
  }
  f["ici_3peers"] = [](const TimeParameters& p) {
    return 3.0 * 16 * static_cast<double>(kMi) / send(p, {2, 4, 6}, 16 * kMi);
  };
  for (const int64_t kib : {8, 16, 32})
    for (const bool by_chip : {false, true})
      f[fmt::format("ag_{}_{}KiB", by_chip ? "hier" : "direct", kib)] =
          [=](const TimeParameters& p) { return us(all_gather(p, kib * kKi, by_chip)); };
  for (const auto& [size, kib] : {std::pair{"256K", int64_t{256}}, {"1M", int64_t{1024}}})
    for (const bool bf16 : {false, true})
      for (const bool by_chip : {false, true})
        f[fmt::format("ar_{}_{}_{}", by_chip ? "hier" : "flat", bf16 ? "bf16" : "f32", size)] =
            [=](const TimeParameters& p) {
              return us(all_reduce(p, kib * kKi / (bf16 ? 2 : 1), bf16, by_chip));
            };
  return f;
}

// Layers of a weight stream, per layer.
Predict layers(Stream s, int64_t loads) {
  s.loads = loads * 16;
  return [=](const TimeParameters& p) { return us(stream(p, s)) / 16; };
}

// Through 200 loads whose ring is full when the clock starts.
Predict head(Elem e, int64_t loads) {
  return [=](const TimeParameters& p) {
    return us(stream(p, {.loads = loads, .weights = e, .warm_ns = 20'000}));
  };
}

double push_ns(const TimeParameters& p, Elem e) {
  const Stream s{.loads = 64, .weights = e, .from_hbm = false};
  const double tiles = static_cast<double>(s.bytes) * 8 / ir::bit_width(e) / 65536;
  return stream(p, s) / 64 / tiles;
}

std::map<std::string, Predict> stream_figures() {
  std::map<std::string, Predict> f;
  f["hbm_stream_bf16"] = layers({}, 38);
  f["hbm_stream_int8"] = layers({.weights = Elem::kI8, .multiplies = false}, 21);
  f["hbm_stream_dense_experts"] = [](const TimeParameters& p) {
    const double us_per_layer = layers({.multiplies = false}, 51)(p);
    return 102.0 * static_cast<double>(kMi) / us_per_layer * 1e-6;
  };
  const Stream experts{.bytes = 51 * kMi / 16, .slots = 4, .multiplies = false};
  f["hbm_expert_rate"] = [=](const TimeParameters& p) {
    return 25.5 * static_cast<double>(kMi) / layers(experts, 8)(p) * 1e-6;
  };
  f["expert_extra"] = [=](const TimeParameters& p) {
    return layers(experts, 9)(p) - layers(experts, 8)(p);
  };
  f["mxu_push_bf16"] = [](const TimeParameters& p) { return push_ns(p, Elem::kBf16); };
  f["mxu_push_fp8"] = [](const TimeParameters& p) { return push_ns(p, Elem::kF8E4M3FN); };
  f["lm_head_bf16"] = head(Elem::kBf16, 200);
  f["lm_head_int8"] = head(Elem::kI8, 100);
  f["dense_int8_ring"] = layers({.weights = Elem::kI8}, 21);
  f["dense_bf16_ring"] = layers({}, 38);
  return f;
}

// Why a figure has no kernel here.
std::string why_not(const Figure& f) {
  if (f.use == "input") return "goes into the composite rows as it is";
  if (f.name.starts_with("muse_slots")) return "batch and format of the measurement are not stated";
  if (f.name == "lm_head_bf16_b") return "the same measurement as lm_head_bf16";
  if (f.name == "xla_launch") return "launches are a constant here";
  if (f.name == "muse_experts_B1") return "the expert phase goes in as published";
  return "not enough is known";
}

struct Errors {
  double sum = 0, worst = 0;
  int n = 0;
  void add(double e) {
    sum += std::abs(e);
    worst = std::max(worst, std::abs(e));
    ++n;
  }
};

using Fitted = double TimeParameters::*;
constexpr std::array kFitted = {
    &TimeParameters::hbm_copy_rate,  &TimeParameters::hbm_copy_latency_ns,
    &TimeParameters::die_rate,       &TimeParameters::die_latency_ns,
    &TimeParameters::ici_link_rate,  &TimeParameters::ici_message_rate,
    &TimeParameters::ici_latency_ns, &TimeParameters::ici_issue_ns,
    &TimeParameters::wake_ns};

// Coordinate descent on the mean square of the relative errors.
void fit(const std::vector<Figure>& figures, TimeParameters p) {
  auto predictors = micro_figures();
  predictors.merge(stream_figures());
  predictors.merge(muse_figures());
  if (p.wake_ns == 0) p.wake_ns = 50;
  const auto loss = [&](const TimeParameters& at) {
    double sum = 0;
    for (const Figure& f : figures) {
      const auto it = predictors.find(f.name);
      if (f.use != "fit" || it == predictors.end() || f.name == "hbm_copy_8192MiB") continue;
      const double e = it->second(at) / f.value - 1;
      sum += e * e;
    }
    return sum;
  };
  double best = loss(p);
  std::array<double, kFitted.size()> step;
  step.fill(0.08);
  for (int round = 0; round < 16; ++round)
    for (size_t k = 0; k < kFitted.size(); ++k) {
      bool better = false;
      for (const double sign : {1.0, -1.0}) {
        TimeParameters q = p;
        q.*kFitted[k] *= 1 + sign * step[k];
        const double l = loss(q);
        if (l >= best - 1e-10) continue;
        best = l;
        p = q;
        better = true;
        break;
      }
      if (!better) step[k] *= 0.5;
    }
  fmt::print("fitted, mean square error {:.5f}:\n", best);
  for (const chips::TimeParameter& t : chips::time_parameters())
    for (const Fitted field : kFitted)
      if (t.field == field) fmt::print("  {} = {:.1f}\n", t.name, p.*field);
}

}  // namespace

int main(int argc, char** argv) {
  std::string path = "tests/data/published/figures.csv", set = "nominal";
  bool fits = false;
  for (int k = 1; k < argc; ++k) {
    if (std::strcmp(argv[k], "--fit") == 0) {
      fits = true;
    } else if (std::strcmp(argv[k], "--params") == 0 && k + 1 < argc) {
      set = argv[++k];
    } else {
      path = argv[k];
    }
  }
  const auto found = chips::find_time_parameters(set);
  const std::vector<Figure> figures = read_figures(path);
  if (!found || figures.empty()) {
    fmt::print(stderr, "{}\n", found ? path + ": no figures" : found.error().message);
    return 1;
  }
  if (fits) {
    fit(figures, found->values);
    return 0;
  }
  auto predictors = micro_figures();
  predictors.merge(stream_figures());
  predictors.merge(muse_figures());
  predictors["qwen_ref_round"] = qwen_round_ms;
  std::map<std::string, Errors> errors;
  const auto best = chips::find_time_parameters("optimistic"),
             worst = chips::find_time_parameters("pessimistic");
  std::vector<Figure> not_built;
  fmt::print("{:<10} {:<26} {:>10} {:>10}  {:<9} {:>7}  band\n", "use", "figure", "published", set,
             "unit", "error");
  for (const Figure& f : figures) {
    const auto it = predictors.find(f.name);
    if (it == predictors.end()) {
      not_built.push_back(f);
      continue;
    }
    const double value = it->second(found->values), error = value / f.value - 1;
    const double low = it->second(best->values), high = it->second(worst->values);
    errors[f.use].add(error);
    fmt::print("{:<10} {:<26} {:>10.3f} {:>10.3f}  {:<9} {:>+6.1f}%  {:.3f} to {:.3f}\n", f.use,
               f.name, f.value, value, f.unit, 100 * error, std::min(low, high),
               std::max(low, high));
    std::fflush(stdout);
  }
  for (const Figure& f : not_built)
    fmt::print("{:<10} {:<26} {:>10.3f} not built: {}\n", f.use, f.name, f.value, why_not(f));
  for (const auto& [use, e] : errors)
    fmt::print("{}: {} figures, mean error {:.1f} %, worst {:.1f} %\n", use, e.n, 100 * e.sum / e.n,
               100 * e.worst);
  return 0;
}
