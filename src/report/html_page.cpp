#include "report/html_page.hpp"

#include <fmt/format.h>

namespace ergometer {

std::string script_safe(std::string_view json) {
  std::string out;
  out.reserve(json.size() + json.size() / 64);
  for (const char c : json) {
    // These occur in JSON only inside strings, where \u stands for the same character.
    if (c == '<')
      out += "\\u003c";
    else if (c == '>')
      out += "\\u003e";
    else if (c == '&')
      out += "\\u0026";
    else
      out += c;
  }
  return out;
}

std::string html_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f)
      out += "\xEF\xBF\xBD";
    else
      out += c;
  }
  return out;
}

std::string html_page(std::string_view title, std::string_view fallback, std::string_view json,
                      const PageAssets& assets) {
  // The policy allows the page's own script and nothing from outside, whatever a name in the data tries. Figures set
  // inline styles, so those stay allowed.
  return fmt::format(
      R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '{}'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="ergometer">
<link rel="icon" href="data:,">
<title>{}</title>
<style>{}</style>
</head>
<body>
<noscript><p class="notice">{}</p></noscript>
<main id="page"></main>
<script type="application/json" id="ergometer-data">{}</script>
<script>{}</script>
</body>
</html>
)",
      assets.script_hash, html_escaped(title), assets.style, html_escaped(fallback), script_safe(json), assets.script);
}

}  // namespace ergometer
