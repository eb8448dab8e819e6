/* Regions that are begun and ended as they should not be: never ended, ended twice, never begun,
 * ended after one around them; deeper than anybody nests them; with names of any length and
 * bytes; begun before MPI and ended after it, or before, very often. The program does not notice.
 */
#include "../common.h"
#include "laggard.h"

static void begin(const char *name)
{
    laggard_region_begin(name);
}

static void end(const char *name)
{
    laggard_region_end(name);
}

int main(int argc, char **argv)
{
    static char name[1000];
    memset(name, 'x', sizeof name - 1);
    for (int n = 0; n < 2000; n++) {
        begin("early");
        end("early");
    }
    begin("before");
    begin("around");
    start(&argc, &argv);
    end("before");

    begin("unended"); /* MARK unended */
    laggard_region_begin("twice");
    laggard_region_end("twice");
    laggard_region_end("twice"); /* MARK twice */
    laggard_region_end("unbegun");
    begin("outer");
    begin("inner");
    end("outer");
    end("inner");
    for (int n = 0; n < 3000; n++)
        begin("deep");
    for (int n = 0; n < 3000; n++)
        end("deep");
    begin(name);
    end(name);
    begin("\xff\xfe");
    end("\xff\xfe");
    begin("");
    end("");
    laggard_phase("one");
    laggard_phase("one");
    laggard_resume();
    MPI_Barrier(WORLD); /* MARK barrier */
    result(rank);
    MPI_Finalize();
    end("around");
    return 0;
}
