#include "apps/exec_tensors.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "gridless/emulate/buffer.h"
#include "gridless/emulate/codec.h"
#include "gridless/emulate/kernel.h"
#include "gridless/weights/safetensors.h"

namespace gridless::apps {
namespace {

using ir::Elem;
using weights::Dtype;

// How a file stores elements of a format.
std::optional<Dtype> stored_as(Elem e) {
  switch (e) {
    case Elem::kF32:
      return Dtype::kF32;
    case Elem::kF16:
      return Dtype::kF16;
    case Elem::kBf16:
      return Dtype::kBF16;
    case Elem::kF8E4M3FN:
      return Dtype::kF8E4M3;
    case Elem::kF8E5M2:
      return Dtype::kF8E5M2;
    case Elem::kF8E8M0FNU:
      return Dtype::kF8E8M0;
    case Elem::kI32:
    case Elem::kSi32:
      return Dtype::kI32;
    case Elem::kUi32:
      return Dtype::kU32;
    case Elem::kI16:
    case Elem::kSi16:
      return Dtype::kI16;
    case Elem::kUi16:
      return Dtype::kU16;
    case Elem::kUi8:
      return Dtype::kU8;
    case Elem::kI8:
    case Elem::kSi8:
    case Elem::kI1:
    case Elem::kI2:
    case Elem::kI4:
    case Elem::kSi4:
    case Elem::kUi4:
    case Elem::kF4E2M1FN:
      return Dtype::kI8;
    default:
      return std::nullopt;
  }
}

bool is_integer(Dtype d) {
  return weights::info(d).block_elements == 1 &&
         (d == Dtype::kBool || d == Dtype::kI8 || d == Dtype::kU8 || d == Dtype::kI16 ||
          d == Dtype::kU16 || d == Dtype::kI32 || d == Dtype::kU32);
}

// The sign of integers does not count: a table of u32 may be given for i32.
bool may_stand_for(Dtype given, Dtype wanted) {
  if (given == wanted) return true;
  return is_integer(given) && is_integer(wanted) &&
         weights::info(given).block_bytes == weights::info(wanted).block_bytes;
}

std::vector<int64_t> with_cores(const ir::Shape& shape, int cores) {
  std::vector<int64_t> out(shape.begin(), shape.end());
  if (cores > 1) out.insert(out.begin(), cores);
  return out;
}

// One element per byte <-> packed, per core.
std::vector<std::byte> pack(ByteView stored, Elem e, int64_t elements, int cores) {
  const auto bytes = static_cast<size_t>(emulate::storage_bytes(e, elements));
  std::vector<std::byte> out(bytes * static_cast<size_t>(cores));
  for (int c = 0; c < cores; ++c) {
    std::byte* core = out.data() + bytes * static_cast<size_t>(c);
    for (int64_t k = 0; k < elements; ++k)
      emulate::set_bits(core, k, emulate::storage_bits(e),
                        stored[static_cast<size_t>(c * elements + k)]);
  }
  return out;
}

std::vector<uint8_t> unpack(const std::vector<std::byte>& packed, Elem e, int64_t elements,
                            int cores) {
  const auto bytes = static_cast<size_t>(emulate::storage_bytes(e, elements));
  std::vector<uint8_t> out;
  for (int c = 0; c < cores; ++c) {
    const std::byte* core = packed.data() + bytes * static_cast<size_t>(c);
    for (int64_t k = 0; k < elements; ++k) {
      const uint32_t bits = emulate::get_bits(core, k, emulate::storage_bits(e));
      const bool signed_integer = ir::is_integer(e) && e != Elem::kUi4 && e != Elem::kI1;
      out.push_back(static_cast<uint8_t>(signed_integer ? emulate::wrap(e, bits) : bits));
    }
  }
  return out;
}

}  // namespace

Result<CallBytes> read_operands(const std::string& path, const ir::Call& call, int cores,
                                bool some) {
  TRY(const MappedFile file, MappedFile::open(path));
  auto tensors = weights::Safetensors::parse(file.bytes());
  if (!tensors) return std::unexpected(tensors.error().in(path));
  CallBytes out;
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const ir::CallArg& arg = call.operands[k];
    const std::string number = fmt::format("in{}", k);
    const weights::TensorView* t = tensors->find(number);
    if (!t) t = tensors->find(arg.name);
    if (!t && some) {
      out.emplace_back();
      continue;
    }
    if (!t) {
      return input_error("{} has no tensor {}{}: operand {} is {}", path, number,
                         arg.name == number ? "" : " or " + arg.name, k, arg.type.str());
    }
    const Elem e = arg.type.elem();
    const auto dtype = stored_as(e);
    if (!dtype) return input_error("operand {} is {}: no file stores that", k, ir::spelling(e));
    const std::vector<int64_t> shape = with_cores(arg.type.shape(), cores);
    if (t->shape != shape || !may_stand_for(t->dtype, *dtype)) {
      return input_error("{}: {} is {} {}, the kernel takes {} {}{}", path, t->name,
                         weights::name(t->dtype), weights::shape_text(t->shape),
                         weights::name(*dtype), weights::shape_text(shape),
                         cores > 1 ? " (leading axis: core)" : "");
    }
    if (emulate::storage_bits(e) < 8) {
      out.push_back(pack(t->stored, e, arg.type.num_elements(), cores));
    } else {
      const auto* first = reinterpret_cast<const std::byte*>(t->stored.data());
      out.emplace_back(first, first + t->stored.size());
    }
  }
  return out;
}

Result<std::vector<NamedTensor>> write_results(const std::string& path, const ir::Call& call,
                                               int cores, const CallBytes& results) {
  std::vector<weights::TensorToWrite> tensors;
  std::vector<std::vector<uint8_t>> unpacked(results.size());
  std::vector<NamedTensor> written;
  for (size_t k = 0; k < results.size(); ++k) {
    const ir::Type type = call.results[k].type;
    const auto dtype = stored_as(type.elem());
    if (!dtype)
      return input_error("result {} is {}: no file stores that", k, ir::spelling(type.elem()));
    ByteView bytes(reinterpret_cast<const uint8_t*>(results[k].data()), results[k].size());
    if (emulate::storage_bits(type.elem()) < 8) {
      unpacked[k] = unpack(results[k], type.elem(), type.num_elements(), cores);
      bytes = unpacked[k];
    }
    const std::string name = fmt::format("out{}", k);
    const std::vector<int64_t> shape = with_cores(type.shape(), cores);
    tensors.push_back({.name = name, .dtype = *dtype, .shape = shape, .bytes = bytes});
    written.push_back({name, std::string(weights::name(*dtype)), shape});
  }
  TRY_VOID(weights::write_safetensors(path, tensors));
  return written;
}

}  // namespace gridless::apps
