// Pieces of JSON that the page's data share. Used by page_run.cpp, page_series_json.cpp and page_study.cpp.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "report/html_page.hpp"
#include "report/page_series.hpp"

namespace ergometer::page {

using Json = nlohmann::ordered_json;

[[nodiscard]] inline Json json_number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
template <class T>
[[nodiscard]] Json json_number(const std::optional<T>& value) {
  return value ? json_number(static_cast<double>(*value)) : Json(nullptr);
}

[[nodiscard]] Json factors_json(const PageFactors& factors);
// Compact ASCII; bytes that are no UTF-8 are replaced.
[[nodiscard]] std::string dump(const Json& json);
// Appends one series as JSON. Times are seconds since `origin_ns`. Written by hand: nearly all of a page is this.
void append_series(std::string& out, const PageSeries& series, std::int64_t origin_ns);

}  // namespace ergometer::page
