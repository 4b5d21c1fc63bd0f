// Attributes of the IR. A value type (a shared pointer to an immutable record); structural
// equality.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gridless/ir/type.h"

namespace gridless::ir {

enum class AttrKind : uint8_t {
  kUnit,
  kBool,        // true / false
  kInt,         // 4 : i32  (type is the integer or index type)
  kFloat,       // 1.0e+00 : f32 (stored as a double)
  kString,      // "text"
  kSymbol,      // @name
  kType,        // a type, function_type included
  kArray,       // [a, b]
  kDict,        // {a = 1 : i32}
  kDenseArray,  // array<i32: 1, 2>   (elem says i1, i8, i32, i64, f32, ...)
  kDense,       // dense<...> : vector<8x128xf32>; one stored value when splat
  kOpaque,  // any dialect attribute, kept as text: #tpu.memory_space<vmem>, #arith.fastmath<none>
};

struct AttrData;

class Attr {
 public:
  Attr() = default;
  static Attr unit();
  static Attr boolean(bool v);
  static Attr integer(int64_t v, Type type);
  static Attr i32(int64_t v) { return integer(v, Type::scalar(Elem::kI32)); }
  static Attr i64(int64_t v) { return integer(v, Type::scalar(Elem::kI64)); }
  static Attr real(double v, Type type);
  static Attr string(std::string v);
  static Attr symbol(std::string v);
  static Attr type(Type t);
  static Attr array(std::vector<Attr> v);
  static Attr dict(std::vector<std::pair<std::string, Attr>> v);
  static Attr dense_array(Elem e, std::vector<int64_t> v);
  static Attr dense_array_f(Elem e, std::vector<double> v);
  // One entry (splat) or num_elements entries.
  static Attr dense_int(Type shaped, std::vector<int64_t> ints);
  static Attr dense_real(Type shaped, std::vector<double> reals);
  static Attr opaque(std::string text);

  explicit operator bool() const { return data_ != nullptr; }
  bool operator==(const Attr& o) const;
  const AttrData* operator->() const { return data_.get(); }
  const AttrData& operator*() const { return *data_; }
  AttrKind kind() const;

 private:
  explicit Attr(AttrData d);
  std::shared_ptr<const AttrData> data_;
};

using NamedAttr = std::pair<std::string, Attr>;

struct AttrData {
  AttrKind kind = AttrKind::kUnit;
  Type type;                    // kInt, kFloat, kType, kDense (the shaped type)
  Elem elem = Elem::kI64;       // kDenseArray
  std::string text;             // kString, kSymbol, kOpaque
  std::vector<int64_t> ints;    // kBool, kInt (one), kDenseArray, kDense of integers
  std::vector<double> reals;    // kFloat (one), kDenseArray / kDense of floats
  std::vector<Attr> array;      // kArray
  std::vector<NamedAttr> dict;  // kDict
  bool operator==(const AttrData&) const;
};

}  // namespace gridless::ir
