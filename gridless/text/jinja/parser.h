// Recursive descent over tokens; grammar and precedence are Jinja's. Private to the folder.
#pragma once

#include <initializer_list>
#include <string_view>

#include "gridless/text/jinja/ast.h"
#include "gridless/text/jinja/lexer.h"

namespace gridless::text::jinja {

// Trees deeper than this are refused, which bounds every recursion over them.
constexpr int kMaxTreeDepth = 150;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  Block run();

 private:
  // Tokens.
  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(pos_ + ahead, tokens_.size() - 1)];
  }
  Token next() { return tokens_[pos_ + 1 < tokens_.size() ? pos_++ : pos_]; }
  bool at_op(std::string_view op) const;
  bool at_name(std::string_view name) const;
  bool take_op(std::string_view op);
  bool take_name(std::string_view name);
  void expect_op(std::string_view op);
  void expect_name(std::string_view name);
  std::string expect_identifier(std::string_view what);
  [[noreturn]] void fail(std::string message) const;
  [[noreturn]] void unexpected(std::string_view wanted) const;

  // Counts the recursion of the parser itself while one of them lives.
  struct Nesting {
    explicit Nesting(Parser& p);
    ~Nesting() { --parser.nesting_; }
    Parser& parser;
  };

  // Expressions (parse_expr.cc).
  ExprPtr make(Expr::Kind kind) const;
  ExprPtr finish(ExprPtr e) const;  // computes and checks the depth
  ExprPtr combine(Expr::Kind kind, ExprPtr a, ExprPtr b = nullptr) const;
  ExprPtr expression();
  ExprPtr tuple(bool with_conditional, std::initializer_list<std::string_view> stops = {});
  ExprPtr conditional();
  ExprPtr disjunction();
  ExprPtr conjunction();
  ExprPtr negation();
  ExprPtr comparison();
  ExprPtr sum();
  ExprPtr concatenation();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary(bool with_filters);
  ExprPtr primary();
  ExprPtr parenthesised();
  ExprPtr dict();
  ExprPtr postfix(ExprPtr e);
  ExprPtr filters(ExprPtr e);
  ExprPtr filter_chain(ExprPtr e);  // name|name(...)|..., the first without its bar
  ExprPtr subscript(ExprPtr e);
  ExprPtr call(ExprPtr e);
  ExprPtr test(ExprPtr e);
  std::string dotted_name(std::string_view what);
  Args arguments();

  // Statements (parse_stmt.cc).
  Block block(std::initializer_list<std::string_view> ends);
  std::unique_ptr<Stmt> statement();
  std::unique_ptr<Stmt> if_statement();
  std::unique_ptr<Stmt> for_statement();
  std::unique_ptr<Stmt> set_statement();
  std::unique_ptr<Stmt> macro_statement();
  std::unique_ptr<Stmt> call_statement();
  std::unique_ptr<Stmt> with_statement();
  std::vector<Parameter> parameters();
  void macro_body(MacroBody& macro, std::string_view end);
  Target target(bool attributes);
  Target single_target(bool attributes);
  std::unique_ptr<Stmt> make_stmt(Stmt::Kind kind) const;
  void end_block();

  std::vector<Token> tokens_;
  size_t pos_ = 0;
  int nesting_ = 0;
  int loops_ = 0;  // break and continue need one
  std::vector<MacroBody*> macros_;
};

}  // namespace gridless::text::jinja
