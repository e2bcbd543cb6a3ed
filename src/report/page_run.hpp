// A run as the data of its page: JSON, schema "ergometer.page/1" (docs/report.md). Used by `ergometer report`.
#pragma once

#include <string>
#include <vector>

#include "model/manifest.hpp"
#include "model/node.hpp"
#include "model/summary.hpp"
#include "model/trace.hpp"
#include "report/html_page.hpp"
#include "report/lanes.hpp"
#include "report/page_series.hpp"

namespace ergometer {

// What happened on one node.
struct PageNode {
  Node node;
  std::vector<Lanes> tracks;  // one a rank
  std::vector<Event> events;
};

struct RunPage {
  Manifest manifest;
  Summary summary;
  std::vector<PageNode> nodes;  // those that are shown in detail
  std::size_t nodes_total = 0;  // of the run
  std::vector<PageSeries> series;
  PageFactors factors;
};

// Strict JSON in ASCII; what is unknown is null. Deterministic. Bounded: of very many regions, events and series the
// most telling are taken and the page says how many there are.
[[nodiscard]] std::string run_page_json(const RunPage& page);

// One line of plain text: what the run used, for readers without JavaScript.
[[nodiscard]] std::string run_in_a_line(const Manifest& manifest, const Summary& summary);

}  // namespace ergometer
