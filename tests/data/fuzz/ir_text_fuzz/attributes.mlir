#loc1 = loc("kernel.cc":7:3)
#m = affine_map<(d0, d1) -> (d1)>
"builtin.module"() <{sym_name = "attributes"}> ({
  "func.func"() ({
  ^bb0(%a: memref<2x?xf32, #tpu.tiled<(8,128)(2,1),[4,1]>, #tpu.memory_space<vmem>> loc("a"(#loc1)), %s: memref<!tpu.semaphore, #tpu.memory_space<semaphore_mem>>):
    %c = "arith.constant"() <{value = dense<[[1, -2], [0x7F, 3]]> : vector<2x2xi8>}> : () -> vector<2x2xi8>
    %d = "arith.constant"() {value = dense<"0x0000803F000000C0"> : vector<2xf32>} : () -> vector<2xf32>
    %e:2 = "tpu.region"() ({
      %f = "arith.constant"() {value = 9.99999997E-7 : f32} : () -> f32
      "tpu.yield"(%f, %f) : (f32, f32) -> ()
    }) {x = [1, 2.0, {b, "c d" = @"e f"}, array<i1: true>, array<f32: 0x7FC00000, 1.0>], y = #m} : () -> (f32, f32) loc(callsite("g"(#loc1) at fused<"h">["x.cc":1:2 to :9, unknown]))
    "func.return"() {z = "a\22\\\0A", w = (i32) -> (f32, index)} : () -> ()
  }) {function_type = () -> (), sym_name = "main"} : () -> () loc(#loc2)
}) : () -> ()
#loc2 = loc("late.cc":9:1)
