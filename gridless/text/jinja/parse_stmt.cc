#include <fmt/format.h>

#include <algorithm>

#include "gridless/text/jinja/parser.h"

namespace gridless::text::jinja {

using Type = Token::Type;

Block parse(std::string_view source) { return Parser(tokenize(source)).run(); }

Block Parser::run() { return block({}); }

std::unique_ptr<Stmt> Parser::make_stmt(Stmt::Kind kind) const {
  auto s = std::make_unique<Stmt>();
  s->kind = kind;
  s->line = peek().line;
  return s;
}

void Parser::end_block() {
  if (peek().type != Type::kBlockEnd) unexpected("'%}'");
  next();
}

// Statements up to one of the names in `ends`, which stays the next token; no names: to the end of
// the template.
Block Parser::block(std::initializer_list<std::string_view> ends) {
  const Nesting nesting(*this);
  Block out;
  while (true) {
    const Token& t = peek();
    if (t.type == Type::kEnd) {
      if (ends.size() != 0) fail(fmt::format("the template ends before '{}'", *(ends.end() - 1)));
      return out;
    }
    if (t.type == Type::kText) {
      auto s = make_stmt(Stmt::Kind::kText);
      s->text = next().text;
      out.push_back(std::move(s));
    } else if (t.type == Type::kVarBegin) {
      auto s = make_stmt(Stmt::Kind::kPrint);
      next();
      s->expr = tuple(true);
      if (peek().type != Type::kVarEnd) unexpected("'}}'");
      next();
      out.push_back(std::move(s));
    } else {
      next();  // '{%'
      if (std::any_of(ends.begin(), ends.end(), [&](std::string_view e) { return at_name(e); }))
        return out;
      out.push_back(statement());
    }
  }
}

std::unique_ptr<Stmt> Parser::statement() {
  if (peek().type != Type::kName) unexpected("the name of a statement");
  const std::string name = peek().text;
  if (name == "if") return if_statement();
  if (name == "for") return for_statement();
  if (name == "set") return set_statement();
  if (name == "macro") return macro_statement();
  if (name == "call") return call_statement();
  if (name == "with") return with_statement();
  if (name == "filter") {
    auto s = make_stmt(Stmt::Kind::kFilter);
    next();
    ExprPtr text = make(Expr::Kind::kName);
    text->name = kBlockText;
    s->expr = filter_chain(std::move(text));
    end_block();
    s->blocks.push_back(block({"endfilter"}));
    next();
    end_block();
    return s;
  }
  if (name == "break" || name == "continue") {
    if (loops_ == 0) fail(fmt::format("'{}' outside of a loop", name));
    auto s = make_stmt(name == "break" ? Stmt::Kind::kBreak : Stmt::Kind::kContinue);
    next();
    end_block();
    return s;
  }
  if (name == "generation" || name == "autoescape" || name == "block") {
    // {% generation %} marks what the assistant wrote, for training; it prints its body. Without
    // inheritance a block prints its body too.
    auto s = make_stmt(Stmt::Kind::kScope);
    next();
    if (name == "autoescape") {
      const ExprPtr on = expression();
      if (on->kind != Expr::Kind::kConst || truthy(on->value)) fail("autoescape is not supported");
    }
    if (name == "block") expect_identifier("the name of a block");
    end_block();
    const std::string end = "end" + name;
    s->blocks.push_back(block({end}));
    next();
    if (name == "block" && peek().type == Type::kName) next();
    end_block();
    return s;
  }
  if (name.starts_with("end") || name == "else" || name == "elif") {
    fail(fmt::format("unexpected '{}'", name));
  }
  fail(fmt::format("the statement '{}' is not supported", name));
}

std::unique_ptr<Stmt> Parser::if_statement() {
  auto s = make_stmt(Stmt::Kind::kIf);
  do {
    next();  // if, elif
    s->conditions.push_back(tuple(true));
    end_block();
    s->blocks.push_back(block({"elif", "else", "endif"}));
  } while (at_name("elif"));
  if (take_name("else")) {
    end_block();
    s->blocks.push_back(block({"endif"}));
  }
  expect_name("endif");
  end_block();
  return s;
}

std::unique_ptr<Stmt> Parser::for_statement() {
  auto s = make_stmt(Stmt::Kind::kFor);
  next();
  s->targets.push_back(target(false));
  expect_name("in");
  s->expr = tuple(false, {"recursive", "if"});
  if (take_name("if")) s->condition = expression();
  s->recursive = take_name("recursive");
  end_block();
  ++loops_;
  s->blocks.push_back(block({"else", "endfor"}));
  --loops_;
  if (take_name("else")) {
    end_block();
    s->blocks.push_back(block({"endfor"}));
  }
  expect_name("endfor");
  end_block();
  return s;
}

Target Parser::single_target(bool attributes) {
  if (take_op("(")) {
    Target t = target(attributes);
    expect_op(")");
    return t;
  }
  Target t;
  t.name = expect_identifier("a name to assign to");
  static constexpr std::string_view kReserved[] = {"true", "false", "none",
                                                   "True", "False", "None"};
  if (std::ranges::find(kReserved, t.name) != std::end(kReserved)) {
    fail(fmt::format("cannot assign to '{}'", t.name));
  }
  if (attributes && take_op(".")) t.attribute = expect_identifier("the name of an attribute");
  return t;
}

Target Parser::target(bool attributes) {
  const Nesting nesting(*this);
  Target first = single_target(attributes);
  if (!at_op(",")) return first;
  Target out;
  out.parts.push_back(std::move(first));
  while (take_op(",")) {
    if (peek().type != Type::kName && !at_op("(")) break;
    if (at_name("in")) break;
    out.parts.push_back(single_target(attributes));
  }
  return out;
}

std::unique_ptr<Stmt> Parser::set_statement() {
  auto s = make_stmt(Stmt::Kind::kSet);
  next();
  s->targets.push_back(target(true));
  if (take_op("=")) {
    s->expr = tuple(true);
    end_block();
    return s;
  }
  s->kind = Stmt::Kind::kSetBlock;
  if (take_op("|")) {
    ExprPtr text = make(Expr::Kind::kName);
    text->name = kBlockText;
    s->expr = filter_chain(std::move(text));
  }
  end_block();
  s->blocks.push_back(block({"endset"}));
  next();
  end_block();
  return s;
}

std::vector<Parameter> Parser::parameters() {
  std::vector<Parameter> out;
  expect_op("(");
  while (!at_op(")")) {
    if (!out.empty()) expect_op(",");
    if (at_op(")")) break;
    Parameter p;
    p.name = expect_identifier("the name of a parameter");
    if (take_op("=")) {
      p.fallback = expression();
    } else if (!out.empty() && out.back().fallback) {
      fail("a parameter without default follows one with a default");
    }
    out.push_back(std::move(p));
  }
  expect_op(")");
  return out;
}

void Parser::macro_body(MacroBody& macro, std::string_view end) {
  end_block();
  macros_.push_back(&macro);
  const int loops = std::exchange(loops_, 0);  // a loop around the macro is not the body's
  macro.body = block({end});
  loops_ = loops;
  macros_.pop_back();
  next();
  if (peek().type == Type::kName) next();  // {% endmacro name %}
  end_block();
}

std::unique_ptr<Stmt> Parser::macro_statement() {
  auto s = make_stmt(Stmt::Kind::kMacro);
  next();
  s->macro.name = expect_identifier("the name of a macro");
  s->macro.parameters = parameters();
  macro_body(s->macro, "endmacro");
  return s;
}

std::unique_ptr<Stmt> Parser::call_statement() {
  auto s = make_stmt(Stmt::Kind::kCall);
  next();
  s->macro.name = "caller";
  if (at_op("(")) s->macro.parameters = parameters();
  s->expr = unary(true);
  if (s->expr->kind != Expr::Kind::kCall) fail("{% call %} needs the call of a macro");
  macro_body(s->macro, "endcall");
  return s;
}

std::unique_ptr<Stmt> Parser::with_statement() {
  auto s = make_stmt(Stmt::Kind::kWith);
  next();
  while (peek().type != Type::kBlockEnd) {
    if (!s->targets.empty()) expect_op(",");
    s->targets.push_back(single_target(false));
    expect_op("=");
    s->conditions.push_back(expression());
  }
  end_block();
  s->blocks.push_back(block({"endwith"}));
  next();
  end_block();
  return s;
}

}  // namespace gridless::text::jinja
