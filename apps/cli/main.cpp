// `ergometer`: one subcommand a file; this one only puts them together.
#include "control_places.hpp"
#include "settings.hpp"

int main(int argc, char** argv) {
  using namespace ergometer::cli;
  CLI::App app{"Measures the energy and the resource use of AI training and inference.", "ergometer"};
  Context context;
  add_global_options(app, context);
  for (const auto add : {add_run, add_step, add_show, add_list, add_export, add_import, add_merge, add_compare, add_report,
                         add_sensors, add_doctor, add_mark, add_calibrate, add_control, add_check_meter, add_study, add_bench,
                         add_job})
    add(app, context);
  // Whatever is asked for: what an earlier command left set must not stay unnoticed.
  app.parse_complete_callback([&] {
    if (!app.got_subcommand("control")) warn_about_changed_controls(context);
  });
  if (const auto settings = apply_settings(app, context); !settings) return report_error(settings.error());
  return parse_and_run(app, context, argc, argv);
}
