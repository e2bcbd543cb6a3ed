#include "analysis/effects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/linear_model.hpp"
#include "analysis/study_slice.hpp"

namespace ergometer {
namespace {

constexpr std::size_t kMostColumns = 600;  // of the model; beyond it interactions are left out, with that reason

using Columns = std::vector<std::vector<double>>;

struct UsedRun {
  std::size_t run;  // index into the study's runs
  double log_value;
};

// A factor of the model: the levels that occur, and which of them each used run has.
struct ModelFactor {
  std::size_t factor = 0;
  std::vector<std::size_t> levels;    // that occur, as indices into the factor's levels
  std::vector<std::size_t> position;  // of each used run, an index into `levels`
};

// Sum-to-zero coding: column l is 1 at level l, -1 at the last level, 0 elsewhere.
double coded(std::size_t position, std::size_t column, std::size_t levels) {
  if (position + 1 == levels) return -1;
  return position == column ? 1 : 0;
}

Columns columns_of(const ModelFactor& f) {
  Columns out(f.levels.size() - 1, std::vector<double>(f.position.size()));
  for (std::size_t c = 0; c < out.size(); ++c)
    for (std::size_t i = 0; i < f.position.size(); ++i) out[c][i] = coded(f.position[i], c, f.levels.size());
  return out;
}

Columns products_of(const Columns& a, const Columns& b) {
  Columns out;
  for (const auto& x : a) {
    for (const auto& y : b) {
      auto& column = out.emplace_back(x);
      for (std::size_t i = 0; i < column.size(); ++i) column[i] *= y[i];
    }
  }
  return out;
}

ModelFactor model_factor(const std::vector<std::size_t>& level_of_run, std::size_t index) {
  const std::set<std::size_t> seen(level_of_run.begin(), level_of_run.end());
  ModelFactor out{index, {seen.begin(), seen.end()}, {}};
  for (const std::size_t level : level_of_run)
    out.position.push_back(static_cast<std::size_t>(
        std::lower_bound(out.levels.begin(), out.levels.end(), level) - out.levels.begin()));
  return out;
}

// Each level of `a` comes with one level of `b` only.
bool follows(const ModelFactor& a, const ModelFactor& b) {
  std::map<std::size_t, std::size_t> seen;
  for (std::size_t i = 0; i < a.position.size(); ++i)
    if (seen.emplace(a.position[i], b.position[i]).first->second != b.position[i]) return false;
  return true;
}

std::string why_aliased(const StudyTable& table, const std::vector<ModelFactor>& factors, std::size_t at,
                        const std::optional<ModelFactor>& block) {
  const std::string& name = table.factors[factors[at].factor].name;
  if (block && (follows(factors[at], *block) || follows(*block, factors[at])))
    return fmt::format("{} changes only together with the block", name);
  for (std::size_t other = 0; other < factors.size(); ++other)
    if (other != at && (follows(factors[other], factors[at]) || follows(factors[at], factors[other])))
      return fmt::format("{} changes only together with {}", name, table.factors[factors[other].factor].name);
  return fmt::format("{} cannot be told from the other factors in these runs", name);
}

std::string why_no_interaction(const StudyTable& table, const ModelFactor& a, const ModelFactor& b) {
  std::set<std::pair<std::size_t, std::size_t>> seen;
  for (std::size_t i = 0; i < a.position.size(); ++i) seen.emplace(a.position[i], b.position[i]);
  const std::size_t all = a.levels.size() * b.levels.size();
  if (seen.size() < all)
    return fmt::format("{} of {} combinations of {} and {} have no valid run", all - seen.size(), all,
                       table.factors[a.factor].name, table.factors[b.factor].name);
  return fmt::format("the interaction of {} and {} cannot be told from other effects in these runs",
                     table.factors[a.factor].name, table.factors[b.factor].name);
}

// A term of the model with its place among the columns.
struct Term {
  std::vector<const ModelFactor*> factors;
  std::size_t first = 0, count = 0;
};

class EffectsFit {
 public:
  EffectsFit(const StudyTable& table, const std::vector<UsedRun>& used) : table_(table), model_(used.size()) {
    for (const auto& u : used) y_.push_back(u.log_value);
    model_.add_term({std::vector<double>(used.size(), 1.0)});
    add_blocks(used);
    for (std::size_t f = 0; f < table.factors.size(); ++f) {
      std::vector<std::size_t> levels;
      for (const auto& u : used) levels.push_back(table.cells[table.runs[u.run].cell].levels[f]);
      auto factor = model_factor(levels, f);
      if (factor.levels.size() > 1) factors_.push_back(std::move(factor));
    }
  }

  [[nodiscard]] bool has_factors() const { return !factors_.empty(); }

  Effects fit(bool interactions) {
    std::vector<bool> estimable;
    for (std::size_t i = 0; i < factors_.size(); ++i) {
      estimable.push_back(add({&factors_[i]}, columns_of(factors_[i])));
      if (!estimable.back()) out_.effects.back().not_estimable = why_aliased(table_, factors_, i, block_);
    }
    for (std::size_t i = 0; interactions && i < factors_.size(); ++i)
      for (std::size_t j = i + 1; j < factors_.size(); ++j)
        if (estimable[i] && estimable[j]) add_interaction(factors_[i], factors_[j]);
    model_.solve(y_);
    describe();
    return out_;
  }

 private:
  void add_blocks(const std::vector<UsedRun>& used) {
    std::vector<std::size_t> blocks;
    for (const auto& u : used) blocks.push_back(static_cast<std::size_t>(std::max(0, table_.runs[u.run].block)));
    auto block = model_factor(blocks, 0);
    out_.blocks = static_cast<int>(block.levels.size());
    if (block.levels.size() < 2) return;
    model_.add_term(columns_of(block));
    block_ = std::move(block);
  }

  bool add(std::vector<const ModelFactor*> factors, const Columns& columns) {
    Effect effect;
    for (const auto* f : factors) effect.factors.push_back(f->factor);
    const std::size_t first = model_.size();
    const bool added = model_.add_term(columns);
    out_.effects.push_back(std::move(effect));
    terms_.push_back({std::move(factors), first, added ? columns.size() : 0});
    return added;
  }

  void add_interaction(const ModelFactor& a, const ModelFactor& b) {
    const std::size_t count = (a.levels.size() - 1) * (b.levels.size() - 1);
    if (model_.size() + count > kMostColumns) {
      add({&a, &b}, {std::vector<double>(y_.size(), 0.0)});  // a column of zeros is never added
      out_.effects.back().not_estimable = fmt::format("left out: the model would have {} terms", model_.size() + count);
    } else if (!add({&a, &b}, products_of(columns_of(a), columns_of(b)))) {
      out_.effects.back().not_estimable = why_no_interaction(table_, a, b);
    }
  }

  void describe() {
    double error = 0, total = 0;
    const double mean = mean_of(y_);
    for (const double r : model_.residuals()) error += square(r);
    for (const double y : y_) total += square(y - mean);
    out_.error_dof = static_cast<int>(y_.size()) - static_cast<int>(model_.size());
    if (total > 0) out_.r_squared = std::clamp(1 - error / total, 0.0, 1.0);
    if (out_.error_dof > 0) {
      variance_ = error / out_.error_dof;
      t_ = t_quantile(0.975, out_.error_dof);
      out_.error_share = std::expm1(std::sqrt(*variance_));
    }
    const double level = model_.coefficients()[0];
    out_.mean = std::exp(level);
    if (const auto half = half_width(0, {1.0})) out_.interval = Bounds{std::exp(level - *half), std::exp(level + *half)};
    for (std::size_t i = 0; i < terms_.size(); ++i)
      if (terms_[i].count > 0) describe(terms_[i], total, out_.effects[i]);
  }

  void describe(const Term& term, double total, Effect& effect) {
    effect.dof = static_cast<int>(term.count);
    const double squares = model_.squares_of(term.first, term.count);
    if (total > 0) effect.share = std::clamp(squares / total, 0.0, 1.0);
    if (variance_ && *variance_ > 0) {
      effect.f_ratio = squares / static_cast<double>(term.count) / *variance_;
      effect.p_value = f_tail(*effect.f_ratio, static_cast<double>(term.count), out_.error_dof);
    }
    const std::size_t second = term.factors.size() > 1 ? term.factors[1]->levels.size() : 1;
    for (std::size_t i = 0; i < term.factors[0]->levels.size(); ++i)
      for (std::size_t j = 0; j < second; ++j) effect.levels.push_back(level_effect(term, i, j));
  }

  LevelEffect level_effect(const Term& term, std::size_t i, std::size_t j) {
    LevelEffect out;
    std::vector<double> combination(term.count);
    const ModelFactor& a = *term.factors[0];
    const ModelFactor* b = term.factors.size() > 1 ? term.factors[1] : nullptr;
    out.levels.push_back(a.levels[i]);
    if (b) out.levels.push_back(b->levels[j]);
    const std::size_t inner = b ? b->levels.size() - 1 : 1;
    double log_effect = 0;
    for (std::size_t c = 0; c < term.count; ++c) {
      combination[c] = coded(i, c / inner, a.levels.size()) * (b ? coded(j, c % inner, b->levels.size()) : 1.0);
      log_effect += combination[c] * model_.coefficients()[term.first + c];
    }
    out.change = std::expm1(log_effect);
    if (const auto half = half_width(term.first, combination))
      out.interval = Bounds{std::expm1(log_effect - *half), std::expm1(log_effect + *half)};
    return out;
  }

  std::optional<double> half_width(std::size_t first, const std::vector<double>& combination) const {
    if (!variance_) return std::nullopt;
    return t_ * std::sqrt(*variance_ * model_.variance_of(first, combination));
  }

 public:
  [[nodiscard]] const std::vector<double>& residuals() const { return model_.residuals(); }

 private:
  const StudyTable& table_;
  LinearModel model_;
  std::vector<double> y_;
  std::vector<ModelFactor> factors_;
  std::optional<ModelFactor> block_;
  std::vector<Term> terms_;  // one for each effect of out_; count 0: not in the model
  std::optional<double> variance_;
  double t_ = 0;
  Effects out_;
};

}  // namespace

Result<Effects> effects_of(const StudyTable& table, const std::string& metric, bool interactions) {
  const auto known = metric_of(table, metric);
  if (!known) return tl::unexpected(known.error());
  std::vector<UsedRun> used;
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < table.runs.size(); ++i) {
    const auto& run = table.runs[i];
    if (run.verdict == Verdict::missing) continue;
    const auto it = run.metrics.find(metric);
    if (run.verdict != Verdict::valid || it == run.metrics.end() || !(it->second.value > 0))
      ++left_out;
    else
      used.push_back({i, std::log(it->second.value)});
  }
  if (used.size() < 2)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} of {} runs have a valid {} above 0: effects need two", used.size(), table.runs.size(),
                            metric),
                "run more of the study, or choose another metric");
  EffectsFit fit(table, used);
  if (!fit.has_factors())
    return fail(ErrorCode::invalid_argument, fmt::format("no factor has two levels among the valid runs with {}", metric),
                "effects compare levels: the study needs a factor that varies");
  Effects out = fit.fit(interactions);
  out.metric = metric;
  out.runs = used.size();
  out.left_out = left_out;
  if (out.error_dof > 0)
    for (const std::size_t i : outliers_of(fit.residuals())) out.outliers.push_back(used[i].run);
  return out;
}

}  // namespace ergometer
