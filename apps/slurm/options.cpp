#include "options.hpp"

#include <array>
#include <chrono>
#include <span>

#include "base/number.hpp"
#include "base/text.hpp"

namespace ergometer::spank {
namespace {

using namespace std::chrono_literals;

tl::unexpected<Error> unknown(std::string_view what, std::string_view word, std::span<const std::string> known) {
  std::string all;
  for (const auto& one : known) all += (all.empty() ? "" : ", ") + one;
  const auto nearest = nearest_name(word, known);
  return fail(ErrorCode::invalid_argument, std::string(what) + " does not know \"" + std::string(word) + "\"",
              nearest.empty() ? "it knows " + all : "did you mean \"" + nearest + "\"?");
}

struct Word {
  std::string_view key, value;
  bool has_value = false;
};

Word word_of(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) return {trim(text), {}, false};
  return {trim(text.substr(0, equals)), trim(text.substr(equals + 1)), true};
}

Result<void> read_switch(const Word& word, bool& out) {
  if (word.value != "on" && word.value != "off")
    return fail(ErrorCode::invalid_argument,
                std::string(word.key) + " is on or off, not \"" + std::string(word.value) + "\"");
  out = word.value == "on";
  return {};
}

Result<void> read_interval(std::string_view text, std::string& out) {
  const auto interval = parse_duration(text);
  if (!interval || *interval < 1ms || *interval > 1h)
    return fail(ErrorCode::invalid_argument, "\"" + std::string(text) + "\" is no interval",
                "write it as 100ms or 5s, from 1ms to 1h");
  out = text;
  return {};
}

}  // namespace

Result<void> read_site_options(const std::vector<std::string_view>& words, SiteOptions& out) {
  static const std::array<std::string, 7> known{"default", "program", "dir",      "host_root",
                                                "daemon",  "jobs",    "exclusive"};
  for (const auto text : words) {
    const Word word = word_of(text);
    Result<void> read;
    if (word.key == "default")
      read = read_switch(word, out.by_default);
    else if (word.key == "jobs")
      read = read_switch(word, out.tell_daemon);
    else if (word.key == "exclusive")
      read = read_switch(word, out.exclusive);
    else if (word.key == "program")
      out.program = word.value;
    else if (word.key == "dir")
      out.folder = word.value;
    else if (word.key == "host_root")
      out.host_root = word.value;
    else if (word.key == "daemon")
      out.daemon = word.value;
    else
      return unknown("ergometer_spank.so in plugstack.conf", word.key, known);
    if (!read) return read;
  }
  return {};
}

Result<void> read_step_options(std::string_view text, StepOptions& out) {
  static const std::array<std::string, 5> known{"on", "off", "dir", "interval", "sensors"};
  // sbatch passes an option without value on to the job's own srun as this word (Slurm 22.05).
  if (trim(text).empty() || text == "(null)") return {};
  for (const auto part : split(text, ',')) {
    const Word word = word_of(part);
    const bool takes_value = word.key != "on" && word.key != "off";
    Result<void> read;
    if (word.key == "on")
      out.measure = true;
    else if (word.key == "off")
      out.measure = false;
    else if (word.key == "dir")
      out.folder = word.value;
    else if (word.key == "interval")
      read = read_interval(word.value, out.interval);
    else if (word.key == "sensors") {
      out.sensors = word.value;
      for (auto& c : out.sensors)
        if (c == '+') c = ',';
    } else
      return unknown("--ergometer", word.key, known);
    if (!read) return read;
    if (takes_value == word.value.empty())
      return fail(ErrorCode::invalid_argument,
                  "--ergometer: \"" + std::string(word.key) + (takes_value ? "\" needs a value" : "\" takes no value"),
                  "as in --ergometer=interval=100ms,sensors=nvml+rapl");
  }
  if (!out.folder.empty() && out.folder.front() != '/' && out.folder.front() != '%')
    return fail(ErrorCode::invalid_argument, "--ergometer: dir=" + out.folder + " is no absolute path",
                "begin it with / or with %h, your home folder");
  return {};
}

Result<std::string> fill_in(std::string_view form, const Place& place) {
  std::string path;
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '%') {
      path += form[i];
      continue;
    }
    const char kind = i + 1 < form.size() ? form[++i] : '\0';
    const std::string* value = kind == 'h'   ? &place.home
                               : kind == 'u' ? &place.user
                               : kind == 'j' ? &place.job
                               : kind == 's' ? &place.step
                               : kind == 'n' ? &place.node
                                             : nullptr;
    if (!value)
      return fail(ErrorCode::invalid_argument,
                  std::string(form) + " has an unknown %" + std::string(kind ? 1 : 0, kind),
                  "known are %h home, %u user, %j job, %s step, %n node");
    if (value->empty())
      return fail(ErrorCode::not_found, std::string("there is no value for %") + kind + " in " + std::string(form));
    path += *value;
  }
  if (path.empty() || path.front() != '/')
    return fail(ErrorCode::invalid_argument, "\"" + path + "\" is no absolute path");
  return path;
}

}  // namespace ergometer::spank
