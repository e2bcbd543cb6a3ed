/* A C program with markers. With "killed" it dies inside two open regions. */
#include <locale.h>
#include <signal.h>
#include <string.h>

#include "ergometer/region.h"

int main(int argc, char** argv) {
  ergometer_region train = ergometer_begin("train");
  for (int i = 0; i < 3; ++i) {
    ergometer_region epoch = ergometer_begin_indexed("epoch", i);
    ergometer_number(epoch, "loss", 1.0 / (i + 1));
    ergometer_text(epoch, "note", "a=b;c\\d");
    if (argc > 1 && strcmp(argv[1], "killed") == 0 && i == 2) raise(SIGKILL);
    ergometer_end(epoch);
  }
  ergometer_end(train);
  ergometer_end(train);
  ergometer_end(0);
  return 0;
}
