/* All ranks end together.
 *
 * RUN np=4
 * SILENT wait_at_finalize
 */
#include "common.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    finish(2, rank);
}
