#include "gridless/ir/type.h"

#include <fmt/format.h>

#include <array>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "gridless/base/check.h"

namespace gridless::ir {
namespace {

struct ElemInfo {
  Elem elem;
  const char* spelling;
  int bits;
};

constexpr ElemInfo kElems[] = {
    {Elem::kI1, "i1", 1},
    {Elem::kI2, "i2", 2},
    {Elem::kI4, "i4", 4},
    {Elem::kI8, "i8", 8},
    {Elem::kI16, "i16", 16},
    {Elem::kI32, "i32", 32},
    {Elem::kI64, "i64", 64},
    {Elem::kSi4, "si4", 4},
    {Elem::kSi8, "si8", 8},
    {Elem::kSi16, "si16", 16},
    {Elem::kSi32, "si32", 32},
    {Elem::kSi64, "si64", 64},
    {Elem::kUi4, "ui4", 4},
    {Elem::kUi8, "ui8", 8},
    {Elem::kUi16, "ui16", 16},
    {Elem::kUi32, "ui32", 32},
    {Elem::kUi64, "ui64", 64},
    {Elem::kIndex, "index", 64},
    {Elem::kF32, "f32", 32},
    {Elem::kF64, "f64", 64},
    {Elem::kF16, "f16", 16},
    {Elem::kBf16, "bf16", 16},
    {Elem::kF8E4M3FN, "f8E4M3FN", 8},
    {Elem::kF8E5M2, "f8E5M2", 8},
    {Elem::kF8E8M0FNU, "f8E8M0FNU", 8},
    {Elem::kF4E2M1FN, "f4E2M1FN", 4},
    {Elem::kSemaphore, "!tpu.semaphore", 32},
    {Elem::kDmaSemaphore, "!tpu.dma_semaphore", 32},
};

const ElemInfo& info(Elem e) {
  const ElemInfo& i = kElems[static_cast<int>(e)];
  GRIDLESS_CHECK(i.elem == e);
  return i;
}

constexpr std::array<const char*, 9> kSpaces = {
    "", "any", "vmem", "smem", "hbm", "cmem", "semaphore_mem", "vmem_shared", "host"};

}  // namespace

int bit_width(Elem e) { return info(e).bits; }
bool is_float(Elem e) { return e >= Elem::kF32 && e <= Elem::kF4E2M1FN; }
bool is_integer(Elem e) { return e <= Elem::kIndex; }
bool is_semaphore(Elem e) { return e >= Elem::kSemaphore; }
const char* spelling(Elem e) { return info(e).spelling; }

std::optional<Elem> elem_from_spelling(std::string_view s) {
  for (const ElemInfo& i : kElems) {
    if (s == i.spelling) return i.elem;
  }
  return std::nullopt;
}

const char* spelling(Space s) { return kSpaces[static_cast<size_t>(s)]; }

std::optional<Space> space_from_spelling(std::string_view s) {
  for (size_t i = 1; i < kSpaces.size(); ++i) {
    if (s == kSpaces[i]) return static_cast<Space>(i);
  }
  return std::nullopt;
}

std::string shape_str(const Shape& s) {
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    if (i) out += 'x';
    out += s[i] == kDynamic ? "?" : std::to_string(s[i]);
  }
  return out;
}

Type Type::intern(TypeData d) {
  using Key = std::tuple<int, int, Shape, int, std::string, std::vector<const void*>>;
  static std::mutex mutex;
  static std::map<Key, const TypeData*> table;
  static std::deque<TypeData> storage;
  std::vector<const void*> parts;
  for (Type t : d.inputs) parts.push_back(t.data_);
  parts.push_back(nullptr);
  for (Type t : d.results) parts.push_back(t.data_);
  Key key{static_cast<int>(d.kind),
          static_cast<int>(d.elem),
          d.shape,
          static_cast<int>(d.space),
          d.layout,
          std::move(parts)};
  std::lock_guard lock(mutex);
  auto [it, inserted] = table.try_emplace(std::move(key), nullptr);
  if (inserted) {
    storage.push_back(std::move(d));
    it->second = &storage.back();
  }
  return Type(it->second);
}

Type Type::none() { return intern({.kind = TypeKind::kNone}); }
Type Type::index() { return intern({.kind = TypeKind::kIndex, .elem = Elem::kIndex}); }

Type Type::scalar(Elem e) {
  TypeKind kind = TypeKind::kInt;
  if (e == Elem::kIndex) kind = TypeKind::kIndex;
  if (is_float(e)) kind = TypeKind::kFloat;
  if (e == Elem::kSemaphore) kind = TypeKind::kSemaphore;
  if (e == Elem::kDmaSemaphore) kind = TypeKind::kDmaSemaphore;
  return intern({.kind = kind, .elem = e});
}

Type Type::vector(Shape shape, Elem e) {
  return intern({.kind = TypeKind::kVector, .elem = e, .shape = std::move(shape)});
}
Type Type::tensor(Shape shape, Elem e) {
  return intern({.kind = TypeKind::kTensor, .elem = e, .shape = std::move(shape)});
}
Type Type::memref(Shape shape, Elem e, Space space, std::string layout) {
  return intern({.kind = TypeKind::kMemRef,
                 .elem = e,
                 .shape = std::move(shape),
                 .space = space,
                 .layout = std::move(layout)});
}
Type Type::function(std::vector<Type> inputs, std::vector<Type> results) {
  return intern(
      {.kind = TypeKind::kFunction, .inputs = std::move(inputs), .results = std::move(results)});
}

TypeKind Type::kind() const { return data_->kind; }
Elem Type::elem() const { return data_->elem; }
const Shape& Type::shape() const { return data_->shape; }
Space Type::space() const { return data_->space; }
bool Type::is_scalar() const {
  return data_ &&
         (kind() == TypeKind::kIndex || kind() == TypeKind::kInt || kind() == TypeKind::kFloat);
}

int64_t Type::num_elements() const {
  int64_t n = 1;
  for (int64_t d : shape()) {
    if (d == kDynamic) return kDynamic;
    n *= d;
  }
  return n;
}

int64_t Type::num_bytes() const {
  const int64_t n = num_elements();
  return n == kDynamic ? kDynamic : (n * bit_width(elem()) + 7) / 8;
}

Type Type::with_shape(Shape s) const {
  TypeData d = *data_;
  d.shape = std::move(s);
  d.layout.clear();
  return intern(std::move(d));
}
Type Type::with_elem(Elem e) const {
  TypeData d = *data_;
  d.elem = e;
  if (is_scalar()) return scalar(e);
  return intern(std::move(d));
}

std::string Type::str() const {
  if (!data_) return "<null type>";
  const auto dims = [&] { return shape().empty() ? "" : shape_str(shape()) + "x"; };
  const auto list = [](const std::vector<Type>& types) {
    std::string out;
    for (size_t i = 0; i < types.size(); ++i) out += (i ? ", " : "") + types[i].str();
    return out;
  };
  switch (kind()) {
    case TypeKind::kNone:
      return "none";
    case TypeKind::kIndex:
    case TypeKind::kInt:
    case TypeKind::kFloat:
    case TypeKind::kSemaphore:
    case TypeKind::kDmaSemaphore:
      return spelling(elem());
    case TypeKind::kVector:
      return fmt::format("vector<{}{}>", dims(), spelling(elem()));
    case TypeKind::kTensor:
      return fmt::format("tensor<{}{}>", dims(), spelling(elem()));
    case TypeKind::kMemRef: {
      std::string out = fmt::format("memref<{}{}", dims(), spelling(elem()));
      if (!data_->layout.empty()) out += ", " + data_->layout;
      if (space() != Space::kNone) out += fmt::format(", #tpu.memory_space<{}>", spelling(space()));
      return out + ">";
    }
    case TypeKind::kFunction: {
      const std::vector<Type>& r = data_->results;
      const bool single = r.size() == 1 && r[0].kind() != TypeKind::kFunction;
      return single ? fmt::format("({}) -> {}", list(data_->inputs), r[0].str())
                    : fmt::format("({}) -> ({})", list(data_->inputs), list(r));
    }
  }
  return "?";
}

}  // namespace gridless::ir
