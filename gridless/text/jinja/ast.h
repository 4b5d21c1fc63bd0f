// The syntax tree. Built once by the parser, immutable afterwards, shared by any number of
// renderings.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gridless/text/jinja/value.h"

namespace gridless::text::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Args {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr star, double_star;  // f(*a, **b)
};

struct Expr {
  enum class Kind {
    kConst,
    kName,
    kList,
    kTuple,
    kDict,       // kids: key, value, key, value, ...
    kAttribute,  // kids[0].name
    kItem,       // kids[0][kids[1]]
    kSlice,      // kids[0][kids[1]:kids[2]:kids[3]], any of the three may be null
    kCall,       // kids[0](args)
    kFilter,     // kids[0] | name(args)
    kTest,       // kids[0] is name(args)
    kNot,
    kNegate,
    kPlus,
    kBinary,   // kids[0] name kids[1]: + - * / // % **
    kConcat,   // ~ of all kids
    kCompare,  // kids[0] ops[0] kids[1] ops[1] kids[2] ...
    kAnd,
    kOr,
    kConditional,  // kids: value, condition, otherwise (may be null)
  };
  Kind kind;
  int line = 0;
  int depth = 1;
  std::string name;
  Value value;
  std::vector<ExprPtr> kids;
  std::vector<std::string> ops;
  Args args;
};

// What a loop, set or macro parameter binds: a name, ns.attribute, or a tuple of targets.
struct Target {
  std::string name;
  std::string attribute;  // of the namespace `name`
  std::vector<Target> parts;
};

struct Parameter {
  std::string name;
  ExprPtr fallback;
};

struct Stmt;
using Block = std::vector<std::unique_ptr<Stmt>>;

// The callable part of {% macro %} and {% call %}.
struct MacroBody {
  std::string name;
  std::vector<Parameter> parameters;
  bool uses_varargs = false, uses_kwargs = false, uses_caller = false;
  Block body;
};

struct Stmt {
  enum class Kind {
    kText,
    kPrint,
    kIf,        // conditions[i] -> blocks[i]; one more block is the else
    kFor,       // target in expr [if condition] [recursive]; blocks: body, else
    kSet,       // target = expr
    kSetBlock,  // target = the text of blocks[0], through filter (may be null)
    kMacro,
    kCall,    // expr is the call, macro its caller()
    kFilter,  // the text of blocks[0] through expr
    kWith,    // targets = values; blocks[0]
    kScope,   // blocks[0] in a scope of its own ({% generation %}, {% block %})
    kBreak,
    kContinue,
  };
  Kind kind;
  int line = 0;
  std::string text;
  ExprPtr expr, condition;
  std::vector<ExprPtr> conditions;
  std::vector<Block> blocks;
  std::vector<Target> targets;
  bool recursive = false;
  MacroBody macro;
};

// A filter chain applied to text (set blocks, filter blocks) has this name at its far end.
inline constexpr const char* kBlockText = "\x01text";

// Throws Fault with the line.
Block parse(std::string_view source);

}  // namespace gridless::text::jinja
