// Types of the IR: the subset of MLIR's builtin and tpu types that Mosaic kernels use.
//
// A Type is a pointer to an interned, immutable record: two types are equal exactly when their
// pointers are equal. Interning is global and thread-safe; records are never freed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gridless::ir {

enum class TypeKind : uint8_t {
  kNone,
  kIndex,
  kInt,           // iN, siN, uiN
  kFloat,         // the float formats of Elem
  kVector,        // vector<16x128xbf16>
  kTensor,        // only inside attributes
  kMemRef,        // memref<16x128xbf16, #tpu.memory_space<vmem>>
  kSemaphore,     // !tpu.semaphore
  kDmaSemaphore,  // !tpu.dma_semaphore
  kFunction,
};

// Element formats. Integer signedness is kept as written; ops, not types, decide how bits are read.
enum class Elem : uint8_t {
  kI1,
  kI2,
  kI4,
  kI8,
  kI16,
  kI32,
  kI64,
  kSi4,
  kSi8,
  kSi16,
  kSi32,
  kSi64,
  kUi4,
  kUi8,
  kUi16,
  kUi32,
  kUi64,
  kIndex,  // index as an element (vector<..xindex>); 64 bits in the emulator, 32 on the chip
  kF32,
  kF64,
  kF16,
  kBf16,
  kF8E4M3FN,
  kF8E5M2,
  kF8E8M0FNU,
  kF4E2M1FN,
  kSemaphore,
  kDmaSemaphore,  // memref<2x!tpu.dma_semaphore, ...>
};

// Bits of one element in memory; i1 counts 1, semaphores 32.
int bit_width(Elem e);
bool is_float(Elem e);
bool is_integer(Elem e);  // includes index and i1
bool is_semaphore(Elem e);
const char* spelling(Elem e);  // "bf16", "ui32", "!tpu.dma_semaphore"
std::optional<Elem> elem_from_spelling(std::string_view s);

// Memory spaces of the tpu dialect. kNone: a memref without a space (never a TPU operand).
enum class Space : uint8_t {
  kNone,
  kAny,
  kVmem,
  kSmem,
  kHbm,
  kCmem,
  kSemaphore,
  kVmemShared,
  kHost
};
const char* spelling(Space s);  // "vmem", "semaphore_mem", ...
std::optional<Space> space_from_spelling(std::string_view s);

inline constexpr int64_t kDynamic = INT64_MIN;  // "?" in a shape

using Shape = std::vector<int64_t>;

struct TypeData;

class Type {
 public:
  Type() = default;
  static Type none();
  static Type index();
  static Type scalar(Elem e);  // kInt, kFloat, kIndex or a semaphore type, as e says
  static Type vector(Shape shape, Elem e);
  static Type tensor(Shape shape, Elem e);
  // `layout` is the text of a layout attribute, e.g. "#tpu.tiled<(8,128)(2,1),[4,1]>", or empty.
  static Type memref(Shape shape, Elem e, Space space, std::string layout = "");
  static Type function(std::vector<Type> inputs, std::vector<Type> results);

  explicit operator bool() const { return data_ != nullptr; }
  bool operator==(const Type&) const = default;
  const TypeData* operator->() const { return data_; }
  const TypeData& operator*() const { return *data_; }

  TypeKind kind() const;
  Elem elem() const;           // of scalars, vectors, tensors, memrefs
  const Shape& shape() const;  // empty for scalars
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
  Space space() const;  // memrefs only
  bool is_vector() const { return data_ && kind() == TypeKind::kVector; }
  bool is_memref() const { return data_ && kind() == TypeKind::kMemRef; }
  bool is_scalar() const;  // index, int, float
  // Elements of a vector, tensor or memref; 1 for scalars; kDynamic when a dimension is dynamic.
  int64_t num_elements() const;
  // Bytes of all elements, rounded up to whole bytes, without any tile padding.
  int64_t num_bytes() const;
  // The same type with another shape or element; a memref's layout is dropped by with_shape.
  Type with_shape(Shape s) const;
  Type with_elem(Elem e) const;

  std::string str() const;  // MLIR spelling

 private:
  explicit Type(const TypeData* d) : data_(d) {}
  static Type intern(TypeData d);
  const TypeData* data_ = nullptr;
};

struct TypeData {
  TypeKind kind = TypeKind::kNone;
  Elem elem = Elem::kI32;
  Shape shape;
  Space space = Space::kNone;
  std::string layout;
  std::vector<Type> inputs, results;  // kFunction
};

std::string shape_str(const Shape& s);  // "16x128"

}  // namespace gridless::ir
