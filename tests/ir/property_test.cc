// Random modules built with append_op: the text gives them back, and wrecking one in any single
// place never gets past the verifier as a crash.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "gridless/ir/verifier.h"
#include "ir_test_util.h"

namespace gridless::ir {
namespace {

// A small generator of valid programs: scalars and vectors, loops, branches, scopes, copies.
class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  Module make() {
    Module m;
    const Type vmem = Type::memref({16, 128}, Elem::kF32, Space::kVmem);
    const Type dma = Type::memref({}, Elem::kDmaSemaphore, Space::kSemaphore);
    Op* f = append_op(m.body(), OpCode::kFuncFunc, {}, {},
                      {{"function_type", Attr::type(Type::function({vmem, vmem, dma, kI32}, {}))},
                       {"sym_name", Attr::string("main")}},
                      loc(), 1);
    Block& body = f->body();
    refs_ = {body.add_arg(vmem), body.add_arg(vmem)};
    semaphore_ = body.add_arg(dma);
    std::vector<Value*> ints = {body.add_arg(kI32)}, vectors;
    fill(body, ints, vectors, 3);
    append_op(body, OpCode::kFuncReturn, {}, {}, {}, loc());
    return m;
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  SourceLoc loc() { return {"gen.cc", 1 + pick(500), 1 + pick(90)}; }

  Value* index(Block& b) {
    return append_op(b, OpCode::kArithConstant, {}, {Type::index()},
                     {{"value", Attr::integer(0, Type::index())}}, loc())
        ->result();
  }

  double number() {
    switch (pick(6)) {
      case 0:
        return 0.0;
      case 1:
        return -std::numeric_limits<double>::infinity();
      case 2:
        return std::numeric_limits<double>::quiet_NaN();
      default:
        return static_cast<float>(
            std::ldexp(static_cast<double>(random_() >> 11) - 0x1p52, pick(120) - 110));
    }
  }

  // By value: what is defined in a region is not seen after it.
  void fill(Block& b, std::vector<Value*> ints, std::vector<Value*> vectors, int depth) {
    for (int n = 1 + pick(8); n > 0; --n) {
      switch (pick(depth > 0 ? 11 : 8)) {
        case 0:
          ints.push_back(append_op(b, OpCode::kArithConstant, {}, {kI32},
                                   {{"value", Attr::i32(static_cast<int32_t>(random_()))}}, loc())
                             ->result());
          break;
        case 1:
          ints.push_back(append_op(b, OpCode::kArithAddi, {any(ints), any(ints)}, {kI32},
                                   {{"overflowFlags", Attr::opaque("#arith.overflow<none>")}},
                                   loc())
                             ->result());
          break;
        case 2: {
          std::vector<double> v(pick(2) ? 1 : 16 * 128);
          for (double& x : v) x = number();
          vectors.push_back(append_op(b, OpCode::kArithConstant, {}, {kVector},
                                      {{"value", Attr::dense_real(kVector, v)}}, loc())
                                ->result());
          break;
        }
        case 3:
          vectors.push_back(append_op(b, OpCode::kVectorLoad, {any(refs_), index(b), index(b)},
                                      {kVector}, {}, loc())
                                ->result());
          break;
        case 4:
          if (vectors.empty()) break;
          vectors.push_back(append_op(b, OpCode::kArithMulf, {any(vectors), any(vectors)},
                                      {kVector},
                                      {{"fastmath", Attr::opaque("#arith.fastmath<none>")}}, loc())
                                ->result());
          break;
        case 5: {
          if (vectors.empty()) break;
          append_op(b, OpCode::kTpuVectorStore, {any(vectors), refs_[0], index(b), index(b)}, {},
                    {{"add", Attr::boolean(false)},
                     {"operandSegmentSizes", Attr::dense_array(Elem::kI32, {1, 1, 2, 0})},
                     {"strides", Attr::dense_array(Elem::kI32, {})}},
                    loc());
          break;
        }
        case 6:
          copy(b, any(ints), pick(2) != 0);
          break;
        case 7:
          append_op(
              b, OpCode::kTpuTraceStart, {}, {},
              {{"level", Attr::i32(10)},
               {"message", Attr::string(std::string(1, static_cast<char>(pick(256))) + "\"x")},
               {"gridless.unit", Attr::unit()}},
              loc());
          break;
        case 8:
          loop(b, ints, vectors, depth);
          break;
        case 9:
          branch(b, ints, vectors, depth);
          break;
        default: {
          Op* scope = append_op(b, OpCode::kTpuRegion, {}, {kI32, kI32}, {}, loc(), 1);
          fill(scope->body(), ints, vectors, depth - 1);
          append_op(scope->body(), OpCode::kTpuYield, {ints[0], any(ints)}, {}, {}, loc());
          ints.push_back(scope->result(static_cast<size_t>(pick(2))));
        }
      }
    }
  }

  void copy(Block& b, Value* device, bool remote) {
    std::vector<Value*> operands = {refs_[0]};
    if (remote) operands.push_back(semaphore_);
    operands.insert(operands.end(), {refs_[1], semaphore_});
    if (remote) operands.push_back(device);
    const Attr segments = Attr::dense_array(Elem::kI32, {1, remote, 1, 1, remote, 0, 0});
    append_op(b, OpCode::kTpuEnqueueDma, operands, {},
              {{"operandSegmentSizes", segments},
               {"priority", Attr::i32(0)},
               {"strict_ordering", Attr::boolean(false)}},
              loc());
    append_op(b, OpCode::kTpuWaitDma, operands, {},
              {{"operandSegmentSizes", segments},
               {"priority", Attr::i32(0)},
               {"strict_ordering", Attr::boolean(false)},
               {"wait_target", Attr::boolean(!remote || pick(2))}},
              loc());
  }

  void loop(Block& b, std::vector<Value*>& ints, const std::vector<Value*>& vectors, int depth) {
    Value* step = append_op(b, OpCode::kArithConstant, {}, {kI32}, {{"value", Attr::i32(1)}}, loc())
                      ->result();
    Op* f = append_op(b, OpCode::kScfFor, {any(ints), any(ints), step, any(ints)}, {kI32}, {},
                      loc(), 1);
    std::vector<Value*> inside = ints;
    inside.push_back(f->body().add_arg(kI32));
    inside.push_back(f->body().add_arg(kI32));
    fill(f->body(), inside, vectors, depth - 1);
    append_op(f->body(), OpCode::kScfYield, {any(inside)}, {}, {}, loc());
    ints.push_back(f->result());
  }

  void branch(Block& b, std::vector<Value*>& ints, const std::vector<Value*>& vectors, int depth) {
    Value* c = append_op(b, OpCode::kArithCmpi, {any(ints), any(ints)}, {Type::scalar(Elem::kI1)},
                         {{"predicate", Attr::i64(pick(10))}}, loc())
                   ->result();
    const bool with_else = pick(2) != 0;
    Op* f = append_op(b, OpCode::kScfIf, {c}, {}, {}, loc(), 2);
    if (!with_else) f->regions[1]->blocks.clear();
    for (int i = 0; i < (with_else ? 2 : 1); ++i) {
      Block& inside = f->body(static_cast<size_t>(i));
      fill(inside, ints, vectors, depth - 1);
      append_op(inside, OpCode::kScfYield, {}, {}, {}, loc());
    }
  }

  Value* any(const std::vector<Value*>& list) {
    return list[static_cast<size_t>(pick(static_cast<int>(list.size())))];
  }

  const Type kI32 = Type::scalar(Elem::kI32);
  const Type kVector = Type::vector({16, 128}, Elem::kF32);
  std::mt19937_64 random_;
  std::vector<Value*> refs_;
  Value* semaphore_ = nullptr;
};

std::vector<const Op*> all_ops(const Module& m) {
  std::vector<const Op*> out;
  walk(*m.top, [&](const Op& op) { out.push_back(&op); });
  return out;
}

RC_GTEST_PROP(Property, RandomModulesComeBackFromText, (uint64_t seed)) {
  const Module m = Generator(seed).make();
  RC_ASSERT(to_string(verify(m)).empty());
  const std::string text = print(m, {.version = 18});
  const auto again = parse(text);
  RC_ASSERT(again.has_value());
  RC_ASSERT(print(*again, {.version = 18}) == text);
  const auto a = all_ops(m), b = all_ops(*again);
  RC_ASSERT(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    RC_ASSERT(a[i]->code == b[i]->code);
    RC_ASSERT(a[i]->attrs == b[i]->attrs);
    RC_ASSERT(a[i]->operands.size() == b[i]->operands.size());
  }
}

RC_GTEST_PROP(Property, OldVersionsAreStableAndValid, (uint64_t seed)) {
  const Module m = Generator(seed).make();
  for (int version = 13; version <= 17; ++version) {
    const std::string text = print(m, {.version = version});
    const auto again = parse(text);
    RC_ASSERT(again.has_value());
    RC_ASSERT(to_string(verify(*again)).empty());
    RC_ASSERT(print(*again, {.version = version}) == text);
  }
}

// One change that breaks the program's shape: the verifier answers, whatever it says.
RC_GTEST_PROP(Property, WreckedModulesAreAnswered, (uint64_t seed, uint64_t where, uint8_t how)) {
  Module m = Generator(seed).make();
  std::vector<Op*> ops;
  for (const Op* op : all_ops(m)) ops.push_back(const_cast<Op*>(op));
  Op& op = *ops[1 + where % (ops.size() - 1)];
  switch (how % 5) {
    case 0:
      op.attrs.clear();
      break;
    case 1:
      if (!op.operands.empty()) op.operands.pop_back();
      break;
    case 2:
      for (NamedAttr& a : op.attrs) a.second = Attr::string("wrong");
      break;
    case 3:
      if (!op.operands.empty()) std::swap(op.operands.front(), op.operands.back());
      break;
    default:
      for (auto& region : op.regions) region->blocks.clear();
  }
  verify(m);
}

}  // namespace
}  // namespace gridless::ir
