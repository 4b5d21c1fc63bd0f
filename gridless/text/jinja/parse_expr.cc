#include <fmt/format.h>

#include <algorithm>

#include "gridless/text/jinja/parser.h"

namespace gridless::text::jinja {

using Type = Token::Type;

bool Parser::at_op(std::string_view op) const {
  return peek().type == Type::kOp && peek().text == op;
}
bool Parser::at_name(std::string_view name) const {
  return peek().type == Type::kName && peek().text == name;
}
bool Parser::take_op(std::string_view op) {
  const bool found = at_op(op);
  if (found) next();
  return found;
}
bool Parser::take_name(std::string_view name) {
  const bool found = at_name(name);
  if (found) next();
  return found;
}
void Parser::expect_op(std::string_view op) {
  if (!take_op(op)) unexpected(fmt::format("'{}'", op));
}
void Parser::expect_name(std::string_view name) {
  if (!take_name(name)) unexpected(fmt::format("'{}'", name));
}
std::string Parser::expect_identifier(std::string_view what) {
  if (peek().type != Type::kName) unexpected(what);
  return next().text;
}
void Parser::fail(std::string message) const { throw Fault{std::move(message), peek().line}; }

void Parser::unexpected(std::string_view wanted) const {
  const Token& t = peek();
  std::string found = fmt::format("'{}'", t.text);
  if (t.type == Type::kText) found = "text";
  if (t.type == Type::kString) found = "a string";
  if (t.type == Type::kVarEnd) found = "'}}'";
  if (t.type == Type::kBlockEnd) found = "'%}'";
  if (t.type == Type::kEnd) found = "the end of the template";
  fail(fmt::format("expected {}, found {}", wanted, found));
}

Parser::Nesting::Nesting(Parser& p) : parser(p) {
  if (++parser.nesting_ > kMaxTreeDepth) {
    parser.fail(fmt::format("the template nests more than {} levels deep", kMaxTreeDepth));
  }
}

ExprPtr Parser::make(Expr::Kind kind) const {
  auto e = std::make_unique<Expr>();
  e->kind = kind;
  e->line = peek().line;
  return e;
}

ExprPtr Parser::finish(ExprPtr e) const {
  const auto see = [&](const ExprPtr& kid) {
    if (kid) e->depth = std::max(e->depth, kid->depth + 1);
  };
  for (const ExprPtr& kid : e->kids) see(kid);
  for (const ExprPtr& kid : e->args.positional) see(kid);
  for (const auto& [name, kid] : e->args.named) see(kid);
  see(e->args.star);
  see(e->args.double_star);
  if (e->depth > kMaxTreeDepth) {
    fail(fmt::format("an expression nests more than {} levels deep", kMaxTreeDepth));
  }
  return e;
}

ExprPtr Parser::combine(Expr::Kind kind, ExprPtr a, ExprPtr b) const {
  ExprPtr e = make(kind);
  e->line = a->line;
  e->kids.push_back(std::move(a));
  if (b) e->kids.push_back(std::move(b));
  return finish(std::move(e));
}

ExprPtr Parser::expression() { return conditional(); }

// a, b, c; a single expression without a comma is itself.
ExprPtr Parser::tuple(bool with_conditional, std::initializer_list<std::string_view> stops) {
  ExprPtr e = make(Expr::Kind::kTuple);
  bool is_tuple = false;
  while (true) {
    const bool stop =
        peek().type == Type::kVarEnd || peek().type == Type::kBlockEnd || at_op(")") ||
        std::any_of(stops.begin(), stops.end(), [&](std::string_view s) { return at_name(s); });
    if (stop) break;
    e->kids.push_back(with_conditional ? conditional() : disjunction());
    if (!take_op(",")) break;
    is_tuple = true;
  }
  if (e->kids.empty()) unexpected("an expression");
  if (!is_tuple) return std::move(e->kids[0]);
  return finish(std::move(e));
}

ExprPtr Parser::conditional() {
  const Nesting nesting(*this);
  ExprPtr value = disjunction();
  while (take_name("if")) {
    ExprPtr e = make(Expr::Kind::kConditional);
    e->line = value->line;
    e->kids.push_back(std::move(value));
    e->kids.push_back(disjunction());
    e->kids.push_back(take_name("else") ? conditional() : nullptr);
    value = finish(std::move(e));
  }
  return value;
}

ExprPtr Parser::disjunction() {
  ExprPtr left = conjunction();
  while (take_name("or")) left = combine(Expr::Kind::kOr, std::move(left), conjunction());
  return left;
}

ExprPtr Parser::conjunction() {
  ExprPtr left = negation();
  while (take_name("and")) left = combine(Expr::Kind::kAnd, std::move(left), negation());
  return left;
}

ExprPtr Parser::negation() {
  const Nesting nesting(*this);
  if (at_name("not") && !(peek(1).type == Type::kName && peek(1).text == "in")) {
    next();
    return combine(Expr::Kind::kNot, negation());
  }
  return comparison();
}

ExprPtr Parser::comparison() {
  ExprPtr e = make(Expr::Kind::kCompare);
  e->kids.push_back(sum());
  while (true) {
    static constexpr std::string_view kOps[] = {"==", "!=", "<", "<=", ">", ">="};
    if (peek().type == Type::kOp && std::ranges::find(kOps, peek().text) != std::end(kOps)) {
      e->ops.push_back(next().text);
    } else if (take_name("in")) {
      e->ops.push_back("in");
    } else if (at_name("not") && peek(1).type == Type::kName && peek(1).text == "in") {
      next();
      next();
      e->ops.push_back("not in");
    } else {
      break;
    }
    e->kids.push_back(sum());
  }
  if (e->ops.empty()) return std::move(e->kids[0]);
  return finish(std::move(e));
}

ExprPtr Parser::sum() {
  ExprPtr left = concatenation();
  while (at_op("+") || at_op("-")) {
    const std::string op = next().text;
    left = combine(Expr::Kind::kBinary, std::move(left), concatenation());
    left->name = op;
  }
  return left;
}

ExprPtr Parser::concatenation() {
  ExprPtr first = product();
  if (!at_op("~")) return first;
  ExprPtr e = combine(Expr::Kind::kConcat, std::move(first));
  while (take_op("~")) e->kids.push_back(product());
  return finish(std::move(e));
}

ExprPtr Parser::product() {
  ExprPtr left = power();
  while (at_op("*") || at_op("/") || at_op("//") || at_op("%")) {
    const std::string op = next().text;
    left = combine(Expr::Kind::kBinary, std::move(left), power());
    left->name = op;
  }
  return left;
}

ExprPtr Parser::power() {
  ExprPtr left = unary(true);
  while (take_op("**")) {
    left = combine(Expr::Kind::kBinary, std::move(left), unary(true));
    left->name = "**";
  }
  return left;
}

ExprPtr Parser::unary(bool with_filters) {
  const Nesting nesting(*this);
  ExprPtr e;
  if (take_op("-")) {
    e = combine(Expr::Kind::kNegate, unary(false));
  } else if (take_op("+")) {
    e = combine(Expr::Kind::kPlus, unary(false));
  } else {
    e = primary();
  }
  e = postfix(std::move(e));
  return with_filters ? filters(std::move(e)) : std::move(e);
}

ExprPtr Parser::primary() {
  ExprPtr e = make(Expr::Kind::kConst);
  const Token t = peek();
  switch (t.type) {
    case Type::kName:
      next();
      if (t.text == "true" || t.text == "True") {
        e->value = Value::boolean(true);
      } else if (t.text == "false" || t.text == "False") {
        e->value = Value::boolean(false);
      } else if (t.text != "none" && t.text != "None") {
        e->kind = Expr::Kind::kName;
        e->name = t.text;
        if (!macros_.empty()) {
          macros_.back()->uses_varargs |= t.text == "varargs";
          macros_.back()->uses_kwargs |= t.text == "kwargs";
          macros_.back()->uses_caller |= t.text == "caller";
        }
      }
      return e;
    case Type::kString: {
      std::string text;
      while (peek().type == Type::kString) text += next().text;  // "a" "b" is one string
      e->value = Value::string(std::move(text));
      return e;
    }
    case Type::kInt:
      e->value = Value::integer(next().integer);
      return e;
    case Type::kFloat:
      e->value = Value::real(next().real);
      return e;
    default:
      break;
  }
  if (at_op("(")) return parenthesised();
  if (at_op("{")) return dict();
  if (take_op("[")) {
    e->kind = Expr::Kind::kList;
    while (!at_op("]")) {
      if (!e->kids.empty()) expect_op(",");
      if (at_op("]")) break;
      e->kids.push_back(expression());
    }
    expect_op("]");
    return finish(std::move(e));
  }
  unexpected("an expression");
}

ExprPtr Parser::parenthesised() {
  ExprPtr empty = make(Expr::Kind::kTuple);
  expect_op("(");
  if (take_op(")")) return empty;
  ExprPtr e = tuple(true);
  expect_op(")");
  return e;
}

ExprPtr Parser::dict() {
  ExprPtr e = make(Expr::Kind::kDict);
  expect_op("{");
  while (!at_op("}")) {
    if (!e->kids.empty()) expect_op(",");
    if (at_op("}")) break;
    e->kids.push_back(expression());
    expect_op(":");
    e->kids.push_back(expression());
  }
  expect_op("}");
  return finish(std::move(e));
}

ExprPtr Parser::postfix(ExprPtr e) {
  while (true) {
    if (at_op(".") || at_op("[")) {
      e = subscript(std::move(e));
    } else if (at_op("(")) {
      e = call(std::move(e));
    } else {
      return e;
    }
  }
}

ExprPtr Parser::filters(ExprPtr e) {
  while (true) {
    if (take_op("|")) {
      const int line = peek().line;
      const std::string name = dotted_name("the name of a filter");
      e = combine(Expr::Kind::kFilter, std::move(e));
      e->name = name;
      e->line = line;
      if (at_op("(")) e->args = arguments();
      e = finish(std::move(e));
    } else if (take_name("is")) {
      e = test(std::move(e));
    } else if (at_op("(")) {
      e = call(std::move(e));
    } else {
      return e;
    }
  }
}

ExprPtr Parser::filter_chain(ExprPtr e) {
  e = combine(Expr::Kind::kFilter, std::move(e));
  e->name = dotted_name("the name of a filter");
  if (at_op("(")) e->args = arguments();
  return filters(finish(std::move(e)));
}

std::string Parser::dotted_name(std::string_view what) {
  std::string name = expect_identifier(what);
  while (take_op(".")) name += "." + expect_identifier(what);
  return name;
}

ExprPtr Parser::subscript(ExprPtr e) {
  if (take_op(".")) {
    if (peek().type == Type::kInt) {
      ExprPtr index = make(Expr::Kind::kConst);
      index->value = Value::integer(next().integer);
      return combine(Expr::Kind::kItem, std::move(e), std::move(index));
    }
    const std::string name = expect_identifier("the name of an attribute");
    e = combine(Expr::Kind::kAttribute, std::move(e));
    e->name = name;
    return e;
  }
  expect_op("[");
  ExprPtr parts[3];
  bool slice = false;
  for (int i = 0; i < 3; ++i) {
    if (!at_op(":") && !at_op("]") && !at_op(",")) parts[i] = expression();
    if (i == 2 || !take_op(":")) break;
    slice = true;
  }
  if (at_op(",")) fail("an index of several parts is not supported");
  expect_op("]");
  if (!slice) {
    if (!parts[0]) unexpected("an index");
    return combine(Expr::Kind::kItem, std::move(e), std::move(parts[0]));
  }
  ExprPtr out = make(Expr::Kind::kSlice);
  out->line = e->line;
  out->kids.push_back(std::move(e));
  for (ExprPtr& part : parts) out->kids.push_back(std::move(part));
  return finish(std::move(out));
}

ExprPtr Parser::call(ExprPtr e) {
  ExprPtr out = combine(Expr::Kind::kCall, std::move(e));
  out->args = arguments();
  return finish(std::move(out));
}

Args Parser::arguments() {
  const Nesting nesting(*this);
  Args args;
  expect_op("(");
  bool first = true;
  while (!at_op(")")) {
    if (!first) expect_op(",");
    if (at_op(")")) break;
    first = false;
    if (take_op("**")) {
      if (args.double_star) fail("two '**' arguments");
      args.double_star = expression();
    } else if (take_op("*")) {
      if (args.star || args.double_star) fail("'*' comes once and before '**'");
      args.star = expression();
    } else if (peek().type == Type::kName && peek(1).type == Type::kOp && peek(1).text == "=") {
      if (args.double_star) fail("no argument may follow '**'");
      const std::string name = next().text;
      next();
      args.named.emplace_back(name, expression());
    } else {
      if (!args.named.empty() || args.star || args.double_star) {
        fail("a positional argument follows a named one");
      }
      args.positional.push_back(expression());
    }
  }
  expect_op(")");
  return args;
}

ExprPtr Parser::test(ExprPtr e) {
  const bool negated = take_name("not");
  const int line = peek().line;
  const std::string name = dotted_name("the name of a test");
  ExprPtr out = combine(Expr::Kind::kTest, std::move(e));
  out->name = name;
  out->line = line;
  const Type type = peek().type;
  const bool operand = type == Type::kName || type == Type::kString || type == Type::kInt ||
                       type == Type::kFloat || at_op("[") || at_op("{");
  if (at_op("(")) {
    out->args = arguments();
  } else if (operand && !at_name("else") && !at_name("or") && !at_name("and") && !at_name("if") &&
             !at_name("not") && !at_name("in") && !at_name("recursive")) {
    if (at_name("is")) fail("tests cannot be chained with 'is'");
    out->args.positional.push_back(postfix(primary()));
  }
  out = finish(std::move(out));
  return negated ? combine(Expr::Kind::kNot, std::move(out)) : std::move(out);
}

}  // namespace gridless::text::jinja
