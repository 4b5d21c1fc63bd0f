#include "gridless/decode/next_rows.h"

#include <fmt/format.h>

#include "gridless/blocks/step_rows.h"

namespace gridless::decode {

std::string next_rows_text(const NextRows& next) {
  using fmt::arg;
  constexpr int kFields = blocks::kRowFields;
  static_assert(blocks::kRowToken == 0 && blocks::kRowActive == 3 && kFields == 4);
  // C cores, R rows; CF = C * 4 and CR = C * R are the first axes of the whole arrays.
  return fmt::format(
      R"(module @next_rows attributes {{mhlo.num_partitions = {C} : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["core"={C}]>
  func.func public @main(
      %rows: tensor<{CF}x{R}xi32> {{mhlo.layout_mode = "{{1, 0}}", sdy.sharding = #sdy.sharding<@mesh, [{{"core"}}, {{}}]>}},
      %logits: tensor<{CR}x{L}xf32> {{mhlo.layout_mode = "{{1, 0}}", sdy.sharding = #sdy.sharding<@mesh, [{{"core"}}, {{}}]>}},
      %ids: tensor<{CR}x{L}xi32> {{mhlo.layout_mode = "{{1, 0}}", sdy.sharding = #sdy.sharding<@mesh, [{{"core"}}, {{}}]>}})
      -> (tensor<{CF}x{R}xi32> {{mhlo.layout_mode = "{{1, 0}}", sdy.sharding = #sdy.sharding<@mesh, [{{"core"}}, {{}}]>}}) {{
    %l0 = stablehlo.slice %logits [0:{CR}, 0:1] : (tensor<{CR}x{L}xf32>) -> tensor<{CR}x1xf32>
    %l = stablehlo.reshape %l0 : (tensor<{CR}x1xf32>) -> tensor<{C}x{R}xf32>
    %i0 = stablehlo.slice %ids [0:{CR}, 0:1] : (tensor<{CR}x{L}xi32>) -> tensor<{CR}x1xi32>
    %i = stablehlo.reshape %i0 : (tensor<{CR}x1xi32>) -> tensor<{C}x{R}xi32>
    %core = stablehlo.iota dim = 0 : tensor<{C}x{R}xi32>
    %shard = stablehlo.constant dense<{V}> : tensor<{C}x{R}xi32>
    %first = stablehlo.multiply %core, %shard : tensor<{C}x{R}xi32>
    %id = stablehlo.add %i, %first : tensor<{C}x{R}xi32>
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %beyond = stablehlo.constant dense<2147483647> : tensor<i32>
    %best:2 = stablehlo.reduce(%l init: %least), (%id init: %beyond) across dimensions = [0] : (tensor<{C}x{R}xf32>, tensor<{C}x{R}xi32>, tensor<f32>, tensor<i32>) -> (tensor<{R}xf32>, tensor<{R}xi32>)
      reducer(%a: tensor<f32>, %b: tensor<f32>) (%m: tensor<i32>, %n: tensor<i32>) {{
      %gt = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %eq = stablehlo.compare EQ, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %lower = stablehlo.compare LT, %m, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %tie = stablehlo.and %eq, %lower : tensor<i1>
      %left = stablehlo.or %gt, %tie : tensor<i1>
      %v = stablehlo.select %left, %a, %b : tensor<i1>, tensor<f32>
      %w = stablehlo.select %left, %m, %n : tensor<i1>, tensor<i32>
      stablehlo.return %v, %w : tensor<f32>, tensor<i32>
    }}
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %last = stablehlo.constant dense<{LAST}> : tensor<i32>
    %token = stablehlo.clamp %zero, %best#1, %last : (tensor<i32>, tensor<{R}xi32>, tensor<i32>) -> tensor<{R}xi32>
    %all = stablehlo.broadcast_in_dim %token, dims = [2] : (tensor<{R}xi32>) -> tensor<{C}x1x{R}xi32>
    %table = stablehlo.reshape %rows : (tensor<{CF}x{R}xi32>) -> tensor<{C}x{F}x{R}xi32>
    %old = stablehlo.slice %table [0:{C}, 0:1, 0:{R}] : (tensor<{C}x{F}x{R}xi32>) -> tensor<{C}x1x{R}xi32>
    %rest = stablehlo.slice %table [0:{C}, 1:{F}, 0:{R}] : (tensor<{C}x{F}x{R}xi32>) -> tensor<{C}x{G}x{R}xi32>
    %active = stablehlo.slice %table [0:{C}, {G}:{F}, 0:{R}] : (tensor<{C}x{F}x{R}xi32>) -> tensor<{C}x1x{R}xi32>
    %none = stablehlo.constant dense<0> : tensor<{C}x1x{R}xi32>
    %is = stablehlo.compare NE, %active, %none : (tensor<{C}x1x{R}xi32>, tensor<{C}x1x{R}xi32>) -> tensor<{C}x1x{R}xi1>
    %new = stablehlo.select %is, %all, %old : tensor<{C}x1x{R}xi1>, tensor<{C}x1x{R}xi32>
    %joined = stablehlo.concatenate %new, %rest, dim = 1 : (tensor<{C}x1x{R}xi32>, tensor<{C}x{G}x{R}xi32>) -> tensor<{C}x{F}x{R}xi32>
    %out = stablehlo.reshape %joined : (tensor<{C}x{F}x{R}xi32>) -> tensor<{CF}x{R}xi32>
    return %out : tensor<{CF}x{R}xi32>
  }}
}}
)",
      arg("C", next.cores), arg("R", next.rows), arg("L", blocks::kLanes), arg("F", kFields),
      arg("G", kFields - 1), arg("CF", next.cores * kFields), arg("CR", next.cores * next.rows),
      arg("V", next.shard), arg("LAST", next.cores * next.shard - 1));
}

}  // namespace gridless::decode
