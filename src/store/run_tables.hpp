// regions.csv and events.csv as text (docs/run-format.md). Used by RunWriter and RunReader.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/region.hpp"
#include "model/trace.hpp"
#include "model/warning.hpp"

namespace ergometer {

inline constexpr const char* kRegionsHeader = "t_begin_ns,t_end_ns,pid,tid,rank,path,attributes\n";
inline constexpr const char* kEventsHeader = "t_ns,source,kind,detail\n";

// One line each, with its line end. A rank of -1 and no attributes are empty fields.
void append_region_line(std::string& out, const Region& region);
void append_event_line(std::string& out, const Event& event);

// Rows in the file's order; columns are found by name, further ones are ignored, "\r\n", a byte order mark and a
// missing last line end are accepted. Rows that cannot be used are left out and counted in a warning that names
// `source` and the first such line; a file without the needed columns is a warning and has no rows.
[[nodiscard]] std::vector<Region> parse_regions(std::string_view text, const std::string& source,
                                                std::vector<Warning>& warnings);
[[nodiscard]] std::vector<Event> parse_events(std::string_view text, const std::string& source,
                                              std::vector<Warning>& warnings);

}  // namespace ergometer
