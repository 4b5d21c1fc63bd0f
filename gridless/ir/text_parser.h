// The recursive-descent parser behind parse() of text.h: types (text_types.cc), attributes
// (text_attrs.cc, text_dense.cc), locations and ops (text_ops.cc).
//
// Limits: 256 nested regions, attributes or types; rank 32; 2^48 elements in a type; 65536 results
// of an op. Every list that is built is written out in the text, so memory grows with the text's
// size.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gridless/ir/location.h"
#include "gridless/ir/module.h"
#include "gridless/ir/text_cursor.h"

namespace gridless::ir {

inline constexpr int kMostNesting = 256;
inline constexpr int64_t kMostElements = int64_t{1} << 48;
inline constexpr size_t kMostRank = 32;

class TextParser : public TextCursor {
 public:
  using TextCursor::TextCursor;
  // The whole file: aliases and one module. The module means something only without any_error().
  Module parse_file();
  // One attribute or one type and nothing behind it. They mean something only without any_error().
  Attr parse_only_attr();
  Type parse_only_type();
  // The list tpu.locs of a module that holds nothing else.
  std::vector<Location> parse_locations();
  // The StableHLO custom call, in either form, whose name begins at `at`; the rest of the text is
  // not looked at.
  struct CustomCall {
    std::string target;
    std::vector<NamedAttr> attrs;
    std::vector<Type> operands, results;
  };
  CustomCall parse_custom_call(size_t at);

 private:
  // A counted level of nesting; fails the reading at the limit.
  struct Level {
    explicit Level(TextParser& p) : parser(p) {
      if (++parser.depth_ > kMostNesting) {
        parser.fail("nested more than 256 deep", "split the expression or the loops");
      }
    }
    ~Level() { --parser.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    TextParser& parser;
  };

  // Types. A failed reading gives Type::none().
  Type parse_type();
  std::vector<Type> parse_types();         // (a, b)
  std::vector<Type> parse_result_types();  // a, (a, b) or ()
  Type parse_memref();
  // "2x8x" of "2x8xf32>"; stops before the element type.
  Shape parse_shape(std::string_view kind);
  Elem parse_elem(std::string_view kind);

  // Attributes.
  Attr parse_attr();
  Attr parse_number_attr();
  Attr parse_hash_attr();
  Attr parse_word_attr();
  Attr parse_dense_array();
  Attr parse_dense();
  std::vector<NamedAttr> parse_dict(std::string_view close);  // after the opening bracket
  int64_t to_integer(std::string_view number, size_t at, Elem e);
  double to_real(std::string_view number, size_t at, Elem e);

  // Where an op or value comes from: a place, or the name of a #alias that may come later.
  struct Where {
    SourceLoc loc;
    std::string alias;
    std::string name;  // of a name location: loc("x"(..))
  };
  Where parse_loc();       // loc(...)
  Where parse_location();  // what stands inside
  SourceLoc follow(const Where& where) const;
  void parse_places();

  // Ops.
  struct Definition {
    std::string name;
    int64_t count = 1;
    size_t at = 0;
  };
  // A use before its definition; legal in MLIR's syntax, refused later by the verifier.
  struct Pending {
    std::string name;
    int64_t number = 0;
    Op* op = nullptr;
    int scope = 0;
    size_t at = 0;
    std::unique_ptr<Value> stand_in;
  };
  void parse_alias();
  void parse_op(Block& block);
  void parse_operands(Op& op, std::vector<size_t>& places);
  void parse_signature(Op& op, const std::vector<size_t>& places);
  void parse_region(Op& op);
  void parse_block_label(Block& block);
  void finish_op(Op& op, std::string_view name, size_t at);
  void define(const std::string& name, std::vector<Value*> values, size_t at);
  Value* use(const std::string& name, int64_t number, Op& op, size_t at);
  void open_scope();
  void close_scope();
  void report_undefined();
  void check_version(Module& module);

  int depth_ = 0;
  std::unordered_map<std::string, Attr> attr_aliases_;
  std::unordered_map<std::string, Type> type_aliases_;
  std::unordered_map<std::string, Where> loc_aliases_;
  std::vector<std::pair<Op*, Where>> op_locs_;
  std::vector<std::pair<Value*, std::string>> arg_aliases_;
  std::vector<Where> places_;  // tpu.locs
  // Names that can be seen now, and per scope the names to forget at its end.
  std::unordered_map<std::string, std::vector<Value*>> values_;
  std::vector<std::vector<std::string>> scopes_;
  std::vector<Pending> pending_;
  size_t stable_ops_ = 0, plain_ops_ = 0;
  size_t first_plain_ = 0;
};

}  // namespace gridless::ir
