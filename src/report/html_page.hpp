// The page of `ergometer report`: one HTML file with its data, script and styles inside, which needs no network. Used
// by the command line.
#pragma once

#include <string>
#include <string_view>

namespace ergometer {

// What the build made of web/. Views live as long as the program.
struct PageAssets {
  std::string_view script, style;
  std::string_view script_hash;  // "sha256-...", for the page's content security policy
  std::string_view missing;      // why there is no script, with the remedy; "" if there is one
};
// Defined in the file that web/ generates.
[[nodiscard]] const PageAssets& page_assets();

// Factors that turn energy into money and emissions; the reader can change them on the page.
struct PageFactors {
  std::string price;     // of one kWh, as a decimal number; "" if not given
  std::string currency;  // "EUR"; "" if not given
  std::string carbon;    // g CO2e of one kWh, as a decimal number; "" if not given
};

// `json` as of run_page_json or study_page_json. `title` is plain text and may hold anything. `fallback` is plain text
// for readers without JavaScript.
[[nodiscard]] std::string html_page(std::string_view title, std::string_view fallback, std::string_view json,
                                    const PageAssets& assets);

// `json` safe inside a script element: nothing in it can end the element or open a comment; the same JSON.
[[nodiscard]] std::string script_safe(std::string_view json);
// Plain text as HTML text or as the value of a quoted attribute. Control characters, which HTML forbids, become U+FFFD.
[[nodiscard]] std::string html_escaped(std::string_view text);

}  // namespace ergometer
