/* Regions that take all ranks the same, of which one of 5 instances takes longer: 80 ms where the
 * others take 20, and 40 where they take 20.
 */
#include "../common.h"
#include "laggard.h"

int main(int argc, char **argv)
{
    start(&argc, &argv);
    for (int round = 0; round < REPEATS; round++) {
        int is_last = round == REPEATS - 1;
        at(2 * round, 0);
        laggard_region_begin("varies");
        at(2 * round, is_last ? 80 : 20);
        laggard_region_end("varies");
        at(2 * round + 1, 0);
        laggard_region_begin("hardly");
        at(2 * round + 1, is_last ? 40 : 20);
        laggard_region_end("hardly");
    }
    finish(2 * REPEATS, rank);
    return 0;
}
