// `ergometer`: one subcommand a file; this one only puts them together.
#include "settings.hpp"

int main(int argc, char** argv) {
  using namespace ergometer::cli;
  CLI::App app{"Measures the energy and the resource use of AI training and inference.", "ergometer"};
  Context context;
  add_global_options(app, context);
  for (const auto add : {add_run, add_show, add_list, add_export, add_sensors, add_doctor, add_mark, add_check_meter}) add(app, context);
  if (const auto settings = apply_settings(app, context); !settings) return report_error(settings.error());
  return parse_and_run(app, context, argc, argv);
}
